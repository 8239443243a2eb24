-- The duties of a worker beside claiming and settling.

-- name: promote
-- pending -> pending: tasks whose time has come get a ticket
WITH due AS MATERIALIZED (
  SELECT id FROM task WHERE wait = 'time' AND run_at <= clock() ORDER BY run_at LIMIT %(n)s FOR UPDATE SKIP LOCKED
)
SELECT count(*) AS promoted, CASE WHEN count(*) > 0 THEN admit(array_agg(id)) END FROM due;

-- name: next_due
SELECT extract(epoch FROM run_at - clock())::float8 FROM task WHERE wait = 'time' ORDER BY run_at LIMIT 1;

-- name: note_progress
INSERT INTO task_progress AS p (task, scope, at, current, total, message)
SELECT r.task, t.scope, clock(), r.current, r.total, r.message
  FROM jsonb_to_recordset(%(rows)s::jsonb) AS r(task bigint, current bigint, total bigint, message text)
  JOIN ticket k ON k.id = r.task AND k.worker = %(worker)s
  JOIN task t ON t.id = k.id
ON CONFLICT (task) DO UPDATE
   SET at = excluded.at, current = excluded.current, total = excluded.total, message = excluded.message;

-- name: cancelled_in_hand
SELECT id FROM leased WHERE worker = %(worker)s AND cancel;

-- name: anything_left
-- a task of a paused queue does not run by itself, unless it runs already
WITH open AS (SELECT unnest(%(queues)s::text[]) AS name EXCEPT SELECT name FROM queue WHERE paused)
SELECT EXISTS (SELECT FROM ticket WHERE queue = ANY (%(queues)s) AND (worker IS NOT NULL OR queue IN (SELECT name FROM open)))
    OR EXISTS (SELECT FROM task WHERE wait = 'time' AND queue IN (SELECT name FROM open) AND (%(scheduled)s OR run_at <= clock()));

-- name: depths
SELECT q.queue, (SELECT count(*) FROM (SELECT FROM ticket t WHERE t.queue = q.queue AND t.worker IS NULL AND NOT t.suspect
                                        LIMIT 100000) x) AS depth
  FROM unnest(%(queues)s::text[]) AS q(queue);
