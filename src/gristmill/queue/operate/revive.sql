-- Brings closed tasks back.

-- name: known
SELECT id, queue, outcome FROM task WHERE id = ANY (%(ids)s::bigint[]);

-- name: failed_within
-- the tasks in this group, at any depth, that ended with one of these outcomes
WITH RECURSIVE tree AS (
  SELECT id FROM task WHERE id = %(group)s AND queue IS NULL
  UNION
  SELECT t.id FROM tree JOIN task t ON t.parent = tree.id WHERE t.queue IS NULL
)
SELECT t.id FROM tree JOIN task t ON t.parent = tree.id
 WHERE t.queue IS NOT NULL AND t.outcome = ANY (%(outcomes)s::task_status[])
   AND (%(kind)s::text IS NULL OR t.kind = %(kind)s) AND (%(queue)s::text IS NULL OR t.queue = %(queue)s)
 ORDER BY t.id;

-- name: lock_closed
SELECT t.id, t.queue, t.kind, t.outcome, t.payload IS NULL AS emptied, t.unique_key, t.scope, t.after, a.outcome AS after_outcome
  FROM task t LEFT JOIN task a ON a.id = t.after
 WHERE t.id = ANY (%(ids)s::bigint[]) ORDER BY t.id FOR UPDATE OF t;

-- name: other_holders
SELECT unique_key, scope, id FROM task
 WHERE unique_key = ANY (%(keys)s) AND unique_held AND id <> ALL (%(ids)s::bigint[]);

-- name: reopen
-- failed | cancelled | completed | skipped -> pending, as if it had never run; `admit` gives it a ticket
WITH was AS MATERIALIZED (
  SELECT t.id, t.outcome, t.fingerprint, q.retries_first
    FROM task t LEFT JOIN queue q ON q.name = t.queue
   WHERE t.id = ANY (%(ids)s::bigint[]) AND t.outcome IS NOT NULL AND t.queue IS NOT NULL
), opened AS (
  UPDATE task t
     SET outcome = NULL, finished_at = NULL, died_at = NULL, started_at = NULL, run_at = NULL, worker = NULL, attempts = 0,
         result = NULL, error = NULL, fingerprint = NULL, wait = CASE WHEN t.after IS NOT NULL THEN 'after'::task_wait END,
         lane = CASE WHEN was.retries_first THEN t.lane & ~1 ELSE t.lane END,
         unique_held = CASE WHEN t.unique_key IS NOT NULL THEN true END
    FROM was WHERE t.id = was.id AND t.outcome IS NOT NULL
  RETURNING t.id, t.parent, t.queue, t.scope, t.kind, was.outcome, was.fingerprint,
            t.parent IS NULL AND t.owner IS NULL AND was.outcome <> 'failed' AS prunable
), counted AS (
  INSERT INTO queue_tally AS y (queue, scope, worker, prunable)
  SELECT queue, scope, 0, -count(*) FROM opened WHERE prunable GROUP BY 1, 2 ORDER BY 1, 2
  ON CONFLICT (queue, scope, worker) DO UPDATE SET prunable = y.prunable + excluded.prunable
), opening AS (
  INSERT INTO queue_depth (queue, scope, opened, completed, failed, skipped, cancelled)
  SELECT queue, scope, count(*), -count(*) FILTER (WHERE outcome = 'completed'), -count(*) FILTER (WHERE outcome = 'failed'),
         -count(*) FILTER (WHERE outcome = 'skipped'), -count(*) FILTER (WHERE outcome = 'cancelled')
    FROM opened GROUP BY queue, scope
), clustered AS (
  INSERT INTO dead_tally (queue, scope, kind, fingerprint, n)
  SELECT queue, scope, kind, coalesce(fingerprint, ''), -count(*) FROM opened WHERE outcome = 'failed' GROUP BY 1, 2, 3, 4
), undone AS (
  DELETE FROM task_progress p USING opened o WHERE p.task = o.id
), groups AS MATERIALIZED (
  SELECT bubble(array_agg(parent), array_agg(outcome), array_agg('pending'::task_status), array_agg(n))
    FROM (SELECT parent, outcome, count(*)::int AS n FROM opened WHERE parent IS NOT NULL GROUP BY 1, 2) p
  HAVING count(*) > 0
)
SELECT count(*) AS opened, (SELECT count(*) FROM groups) AS told FROM opened;

-- name: lock_prerequisites
-- a shared lock: a prerequisite cannot end before our task waits for it
SELECT id, outcome FROM task WHERE id = ANY (%(ids)s::bigint[]) ORDER BY id FOR SHARE;

-- name: admit
SELECT admit(array_agg(t.id)) FROM task t WHERE t.id = ANY (%(ids)s::bigint[])  -- those that the caller sees
HAVING count(*) > 0;
