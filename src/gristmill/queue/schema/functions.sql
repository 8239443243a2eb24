-- What happens in the database when tasks move.

CREATE OR REPLACE FUNCTION group_status(sealed boolean, pending int, processing int, completed int, failed int, skipped int, cancelled int)
RETURNS task_status LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN processing > 0 THEN 'processing'
              WHEN pending > 0 OR NOT sealed THEN 'pending'
              WHEN failed > 0 THEN 'failed'
              WHEN cancelled > 0 AND completed + skipped = 0 THEN 'cancelled'
              ELSE 'completed' END::task_status $$;

-- Moves `counts` children of each group from one status to another (null: not there before) and carries what follows
-- up the tree. A group's id is always lower than its children's, so going from high to low ids is one order of locking
-- for everybody. Returns the groups that reached an end.
CREATE OR REPLACE FUNCTION bubble(groups bigint[], olds task_status[], news task_status[], counts int[])
RETURNS bigint[] LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
  ended bigint[] := '{}';
  ends bigint[];
  horizon bigint;
BEGIN
  WHILE cardinality(groups) > 0 LOOP
    -- whatever is carried up lands at or below the horizon: only groups above it are complete now
    SELECT coalesce(max(g.parent), 0) INTO horizon FROM task_group g WHERE g.id = ANY (groups);
    PERFORM FROM task_group g WHERE g.id = ANY (groups) AND g.id > horizon ORDER BY g.id DESC FOR NO KEY UPDATE;
    WITH move AS (
      SELECT * FROM unnest(groups, olds, news, counts) AS m(id, old, new, n)
    ), delta AS (
      SELECT id,
             sum(n * ((new = 'pending')::int    - coalesce((old = 'pending')::int, 0)))    AS pending,
             sum(n * ((new = 'processing')::int - coalesce((old = 'processing')::int, 0))) AS processing,
             sum(n * ((new = 'completed')::int  - coalesce((old = 'completed')::int, 0)))  AS completed,
             sum(n * ((new = 'failed')::int     - coalesce((old = 'failed')::int, 0)))     AS failed,
             sum(n * ((new = 'skipped')::int    - coalesce((old = 'skipped')::int, 0)))    AS skipped,
             sum(n * ((new = 'cancelled')::int  - coalesce((old = 'cancelled')::int, 0)))  AS cancelled
        FROM move WHERE id > horizon GROUP BY id
    ), was AS (
      SELECT g.id, g.status FROM task_group g JOIN delta USING (id)
    ), moved AS (
      UPDATE task_group g
         SET pending = g.pending + d.pending, processing = g.processing + d.processing,
             completed = g.completed + d.completed, failed = g.failed + d.failed,
             skipped = g.skipped + d.skipped, cancelled = g.cancelled + d.cancelled,
             status = s.status,
             finished_at = CASE WHEN s.status IN ('pending', 'processing') THEN NULL ELSE coalesce(g.finished_at, clock()) END
        FROM delta d, was,
             LATERAL (SELECT x.* FROM task_group x WHERE x.id = d.id) x,
             LATERAL (SELECT group_status(x.sealed, (x.pending + d.pending)::int, (x.processing + d.processing)::int,
                        (x.completed + d.completed)::int, (x.failed + d.failed)::int, (x.skipped + d.skipped)::int,
                        (x.cancelled + d.cancelled)::int) AS status) s
       WHERE g.id = d.id AND was.id = g.id
      RETURNING g.id, g.parent, was.status AS old, g.status AS new, g.finished_at
    ), changed AS (
      SELECT * FROM moved WHERE old <> new
    ), kept AS (
      UPDATE task t
         SET outcome = CASE WHEN c.finished_at IS NOT NULL THEN c.new END, finished_at = c.finished_at,
             wait = CASE WHEN c.finished_at IS NULL THEN 'children'::task_wait END
        FROM changed c
       WHERE t.id = c.id AND t.outcome IS DISTINCT FROM CASE WHEN c.finished_at IS NOT NULL THEN c.new END
    ), next AS (
      SELECT id, old, new, n FROM move WHERE id <= horizon
      UNION ALL
      SELECT parent, old, new, 1 FROM changed WHERE parent IS NOT NULL
    )
    SELECT (SELECT coalesce(array_agg(id), '{}') FROM changed WHERE finished_at IS NOT NULL),
           coalesce(array_agg(n.id), '{}'), array_agg(n.old), array_agg(n.new), array_agg(n.n)
      INTO ends, groups, olds, news, counts
      FROM next n;
    ended := ended || ends;
  END LOOP;
  RETURN ended;
END $$;

-- Lets open tasks into the line, unless their time has not come or another task of their serial key is before them.
CREATE OR REPLACE FUNCTION admit(ids bigint[]) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
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
      SELECT DISTINCT ON (serial_key, scope) serial_key, scope, id FROM task
       WHERE id = ANY (ids) AND serial_key IS NOT NULL AND (run_at > moment) IS NOT TRUE ORDER BY serial_key, scope, lane, id
    ), head AS (
      INSERT INTO serial_head AS h (key, scope, task) SELECT serial_key, scope, id FROM first ORDER BY serial_key, scope
      ON CONFLICT (key, scope) DO UPDATE SET task = h.task RETURNING h.task
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

-- Those behind tasks and groups that have come to an end may go: the next of their serial key, and what came after them.
CREATE OR REPLACE FUNCTION follow(ended bigint[]) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
  next_ids bigint[];
  stranded bigint[];
  step record;
BEGIN
  FOR step IN SELECT h.key, h.scope, h.task FROM serial_head h WHERE h.task = ANY (ended) ORDER BY h.key, h.scope FOR UPDATE LOOP
    UPDATE serial_head SET task = n.id
      FROM (SELECT id FROM task WHERE serial_key = step.key AND scope = step.scope AND wait = 'serial'
             ORDER BY lane, id LIMIT 1 FOR UPDATE) n
     WHERE key = step.key AND scope = step.scope
    RETURNING n.id INTO step.task;
    IF FOUND THEN
      next_ids := next_ids || step.task;
    ELSE
      DELETE FROM serial_head WHERE key = step.key AND scope = step.scope;
    END IF;
  END LOOP;

  SELECT next_ids || array_agg(d.id) INTO next_ids
    FROM task d JOIN task a ON a.id = d.after
   WHERE d.after = ANY (ended) AND d.wait = 'after' AND a.outcome IN ('completed', 'skipped');
  IF cardinality(next_ids) > 0 THEN
    PERFORM admit(next_ids);
  END IF;

  WITH gone AS (
    UPDATE task d SET outcome = 'cancelled', finished_at = clock(), wait = NULL, unique_held = NULL,
                      error = 'cancelled because task ' || a.id || ', which it waited for, was cancelled'
      FROM task a
     WHERE a.id = ANY (ended) AND a.outcome = 'cancelled' AND d.after = a.id AND d.wait = 'after'
    RETURNING d.id, d.queue, d.scope, d.parent IS NULL AND d.owner IS NULL AS prunable
  ), counted AS (
    INSERT INTO queue_tally AS y (queue, scope, worker, cancelled, prunable)
    SELECT queue, scope, 0, count(*), count(*) FILTER (WHERE prunable) FROM gone GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (queue, scope, worker) DO UPDATE
       SET cancelled = y.cancelled + excluded.cancelled, prunable = y.prunable + excluded.prunable
  )
  SELECT array_agg(id) INTO stranded FROM gone;
  IF stranded IS NOT NULL THEN
    PERFORM conclude(stranded, 'pending');
  END IF;
END $$;

-- What follows when tasks have come to an end: their groups count, those behind them may go.
CREATE OR REPLACE FUNCTION conclude(ids bigint[], was task_status) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
  ended bigint[];
BEGIN
  SELECT bubble(array_agg(parent), array_agg(was), array_agg(outcome), array_agg(n)) INTO ended
    FROM (SELECT parent, outcome, count(*)::int AS n FROM task WHERE id = ANY (ids) AND parent IS NOT NULL GROUP BY 1, 2) m
  HAVING count(*) > 0;
  PERFORM follow(ids || coalesce(ended, '{}'));
END $$;

-- A worker that lost one of its leases writes nothing: the transaction ends here.
CREATE OR REPLACE FUNCTION fence(expected int, held int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF held <> expected THEN
    RAISE EXCEPTION '% of % leases are lost', expected - held, expected USING ERRCODE = 'GM001';
  END IF;
END $$;

-- Whether there is such a task, and this session may not change it.
CREATE OR REPLACE FUNCTION is_foreign_task(task_ bigint) RETURNS boolean LANGUAGE sql STABLE
SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT EXISTS (SELECT FROM task t WHERE t.id = task_ AND t.scope <> ALL (own_scopes()))
$$;

-- How many tasks of a queue run now, whoever they belong to: a limit is shared by all clients.
CREATE OR REPLACE FUNCTION count_running(of_queue text) RETURNS bigint LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  RETURN (SELECT count(*) FROM leased WHERE queue = of_queue);
END $$;
