-- Names that say what a thing is: a lease is what one claim took, a journal is where a worker notes what it began.

ALTER TABLE hand RENAME TO lease;
ALTER TABLE lease RENAME COLUMN lease TO number;
ALTER INDEX hand_pkey RENAME TO lease_pkey;
ALTER TABLE worker RENAME COLUMN notes TO journal;

-- The tickets that a worker holds.
CREATE OR REPLACE VIEW leased AS
SELECT k.*, l.queues AS asked
  FROM lease l CROSS JOIN LATERAL unnest(l.tasks) AS t(id)
  JOIN ticket k ON k.id = t.id AND k.worker = l.worker AND k.lease = l.number;

-- Lets open tasks into the line, unless their time has not come or another task of their serial key is before them.
CREATE OR REPLACE FUNCTION admit(ids bigint[]) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
  moment timestamptz := clock();
  heads bigint[];
  told int;
BEGIN
  -- somebody may be ending one of them this very moment: what has ended must not become the head of its series
  ids := ARRAY (SELECT id FROM task WHERE id = ANY (ids) AND outcome IS NULL ORDER BY id FOR UPDATE);
  UPDATE task SET wait = 'time' WHERE id = ANY (ids) AND run_at > moment AND wait IS DISTINCT FROM 'time';
  IF EXISTS (SELECT FROM task WHERE id = ANY (ids) AND serial_key IS NOT NULL AND (run_at > moment) IS NOT TRUE) THEN
    -- DO UPDATE on purpose: it locks the row, so that the head cannot leave while we decide to stand behind it
    WITH first AS (
      SELECT DISTINCT ON (serial_key) serial_key, id FROM task
       WHERE id = ANY (ids) AND serial_key IS NOT NULL AND (run_at > moment) IS NOT TRUE ORDER BY serial_key, lane, id
    ), head AS (
      INSERT INTO serial_head AS h (key, task) SELECT serial_key, id FROM first ORDER BY serial_key
      ON CONFLICT (key) DO UPDATE SET task = h.task RETURNING h.task
    )
    SELECT array_agg(task) INTO heads FROM head;
    UPDATE task SET wait = 'serial'
     WHERE id = ANY (ids) AND serial_key IS NOT NULL AND (run_at > moment) IS NOT TRUE AND id <> ALL (heads);
  END IF;
  WITH free AS (
    UPDATE task SET wait = NULL
     WHERE id = ANY (ids) AND outcome IS NULL
       AND (wait IS NULL OR wait = 'after' OR wait = 'time' AND run_at <= moment OR wait = 'serial' AND id = ANY (heads))
    RETURNING id, lane, position, attempts, queue
  ), entered AS (
    INSERT INTO ticket (id, seq, lane, attempts, queue)
    SELECT f.id, coalesce(f.position, nextval('task_id')), f.lane, f.attempts, f.queue
      FROM (SELECT * FROM free ORDER BY lane, id) f
    RETURNING queue, lane, seq
  )
  SELECT count(pg_notify('gristmill', 'ready ' || queue || ' ' || lane || ' ' || first)::text) INTO told
    FROM (SELECT queue, lane, min(seq) AS first FROM entered GROUP BY queue, lane) e;
END $$;
