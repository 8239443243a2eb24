-- Settling: how a task leaves `processing`. A comment after the name says which way it goes.

-- name: complete
-- processing -> completed: all of these, or none
WITH moment AS MATERIALIZED (
  SELECT clock() AS now  -- once: clock() for each row would be slow
), gone AS (
  DELETE FROM ticket k USING unnest(%(ids)s::bigint[], %(leases)s::bigint[]) AS g(id, lease)
   WHERE k.id = g.id AND k.worker = %(worker)s AND k.lease = g.lease
  RETURNING k.id, k.attempts, k.claimed_at
), closed AS (
  UPDATE task t
     SET outcome = 'completed', finished_at = c.now, started_at = gone.claimed_at, attempts = gone.attempts,
         worker = %(worker)s, error = NULL, fingerprint = NULL,
         unique_held = CASE WHEN t.unique_until > c.now THEN t.unique_held END
    FROM gone, moment c WHERE t.id = gone.id
  RETURNING t.id, t.parent, t.awaited OR t.serial_key IS NOT NULL AS followed
), counted AS (
  INSERT INTO queue_tally AS q (queue, scope, worker, completed, prunable)
  SELECT queue, scope, %(worker)s, completed, prunable
    FROM unnest(%(queues)s::text[], %(scopes)s::int[], %(completed)s::bigint[], %(prunable)s::bigint[])
      AS r(queue, scope, completed, prunable)
   ORDER BY queue, scope
  ON CONFLICT (queue, scope, worker) DO UPDATE
     SET completed = q.completed + excluded.completed, prunable = q.prunable + excluded.prunable
), ended AS MATERIALIZED (
  SELECT bubble(array_agg(parent), array_agg('processing'::task_status), array_agg('completed'::task_status), array_agg(n)) AS ids
    FROM (SELECT parent, count(*)::int AS n FROM closed WHERE parent IS NOT NULL GROUP BY parent) p
  HAVING count(*) > 0
)
SELECT fence(%(n)s::int, count(*)::int),
       CASE WHEN bool_or(followed) OR (SELECT ids <> '{}' FROM ended)
            THEN follow(coalesce(array_agg(id) FILTER (WHERE followed), '{}') || coalesce((SELECT ids FROM ended), '{}')) END
  FROM closed;

-- name: close
-- processing -> completed | failed | skipped | cancelled, each with its own result or error; a failed task becomes cancelled if
-- somebody asked for that meanwhile: perhaps its write failed because its group is sealed
WITH moment AS MATERIALIZED (
  SELECT clock() AS now  -- once: clock() for each row would be slow
), given AS (
  SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS g(
    id bigint, lease bigint, outcome task_status, result jsonb, error text, fingerprint text, clear boolean)
), gone AS (
  DELETE FROM ticket k USING given g WHERE k.id = g.id AND k.worker = %(worker)s AND k.lease = g.lease
  RETURNING k.id, k.attempts, k.claimed_at, k.cancel AND g.outcome = 'failed' AS stopped
), closed AS (
  UPDATE task t
     SET outcome = CASE WHEN gone.stopped THEN 'cancelled' ELSE g.outcome END, finished_at = c.now,
         started_at = gone.claimed_at, attempts = gone.attempts,
         died_at = CASE WHEN g.outcome = 'failed' AND NOT gone.stopped THEN c.now END, worker = %(worker)s, result = g.result,
         error = CASE WHEN gone.stopped THEN %(stopped)s ELSE g.error END,
         fingerprint = CASE WHEN NOT gone.stopped THEN g.fingerprint END,
         payload = CASE WHEN g.clear AND g.outcome <> 'failed' THEN NULL ELSE t.payload END,
         unique_held = CASE WHEN t.unique_until > c.now THEN t.unique_held END
    FROM gone JOIN given g USING (id), moment c WHERE t.id = gone.id
  RETURNING t.id, t.scope, t.queue, t.kind, t.died_at, t.error, t.fingerprint, gone.stopped,
            t.parent IS NULL AND t.owner IS NULL AS prunable,
            t.parent IS NOT NULL OR t.awaited OR t.serial_key IS NOT NULL AS followed
), counted AS (  -- `tally` counts these as failed: take them out there
  INSERT INTO queue_tally AS y (queue, scope, worker, cancelled, failed, prunable)
  SELECT queue, scope, %(worker)s, count(*), -count(*), count(*) FILTER (WHERE prunable)
    FROM closed WHERE stopped GROUP BY queue, scope ORDER BY queue, scope
  ON CONFLICT (queue, scope, worker) DO UPDATE
     SET cancelled = y.cancelled + excluded.cancelled, failed = y.failed + excluded.failed,
         prunable = y.prunable + excluded.prunable
), clustered AS (
  INSERT INTO dead_tally (queue, scope, kind, fingerprint, n, first_at, last_at, error, examples)
  SELECT queue, scope, kind, coalesce(fingerprint, ''), count(*), min(died_at), max(died_at), max(error),
         (array_agg(id ORDER BY id DESC))[1:5]
    FROM closed WHERE died_at IS NOT NULL GROUP BY 1, 2, 3, 4
), remembered AS (
  INSERT INTO task_failure (task, scope, attempt, at, worker, error, fingerprint)
  SELECT gone.id, closed.scope, gone.attempts, clock(), %(worker)s, g.error, g.fingerprint
    FROM gone JOIN given g USING (id) JOIN closed USING (id) WHERE g.outcome = 'failed'
)
SELECT fence(%(n)s::int, count(*)::int),
       CASE WHEN bool_or(followed) THEN conclude(array_agg(id) FILTER (WHERE followed), 'processing') END
  FROM closed;

-- name: again
-- processing -> pending (retry, snooze), or -> cancelled if somebody asked for that meanwhile
WITH moment AS MATERIALIZED (
  SELECT clock() AS now  -- once: clock() for each row would be slow
), given AS (
  SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS g(
    id bigint, lease bigint, wait interval, counts boolean, first boolean, error text, fingerprint text)
), gone AS (
  DELETE FROM ticket k USING given g WHERE k.id = g.id AND k.worker = %(worker)s AND k.lease = g.lease
  RETURNING k.id, k.attempts, k.claimed_at, k.cancel
), moved AS (
  UPDATE task t
     SET outcome = CASE WHEN gone.cancel THEN 'cancelled'::task_status END,
         finished_at = CASE WHEN gone.cancel THEN c.now END,
         wait = CASE WHEN NOT gone.cancel THEN 'time'::task_wait END,
         run_at = c.now + g.wait, started_at = gone.claimed_at, worker = %(worker)s,
         attempts = gone.attempts - CASE WHEN g.counts THEN 0 ELSE 1 END,
         lane = CASE WHEN g.first THEN t.lane & ~1 ELSE t.lane END,
         unique_held = CASE WHEN gone.cancel THEN NULL ELSE t.unique_held END,
         -- an error without a fingerprint is no failure: the reason of a snooze
         error = coalesce(g.error, t.error), fingerprint = CASE WHEN g.error IS NULL THEN t.fingerprint ELSE g.fingerprint END
    FROM gone JOIN given g USING (id), moment c WHERE t.id = gone.id
  RETURNING t.id, t.scope, t.queue, t.parent, t.outcome, g.counts, t.parent IS NULL AND t.owner IS NULL AS prunable,
            t.parent IS NOT NULL OR t.awaited OR t.serial_key IS NOT NULL AS followed
), counted AS (  -- `tally` counts these as retried: take them out there
  INSERT INTO queue_tally AS y (queue, scope, worker, cancelled, retried, prunable)
  SELECT queue, scope, %(worker)s, count(*), -count(*) FILTER (WHERE counts), count(*) FILTER (WHERE prunable)
    FROM moved WHERE outcome IS NOT NULL GROUP BY queue, scope ORDER BY queue, scope
  ON CONFLICT (queue, scope, worker) DO UPDATE
     SET cancelled = y.cancelled + excluded.cancelled, retried = y.retried + excluded.retried,
         prunable = y.prunable + excluded.prunable
), remembered AS (
  INSERT INTO task_failure (task, scope, attempt, at, worker, error, fingerprint)
  SELECT gone.id, moved.scope, gone.attempts, clock(), %(worker)s, g.error, g.fingerprint
    FROM gone JOIN given g USING (id) JOIN moved USING (id) WHERE g.counts
), forgotten AS (
  -- a queue that never gives up keeps the last hundred failures
  DELETE FROM task_failure f USING gone WHERE f.task = gone.id AND f.attempt <= gone.attempts - 100
), back AS (
  SELECT bubble(array_agg(parent), array_agg('processing'::task_status), array_agg('pending'::task_status), array_agg(n))
    FROM (SELECT parent, count(*)::int AS n FROM moved WHERE parent IS NOT NULL AND outcome IS NULL GROUP BY parent) p
  HAVING count(*) > 0
)
SELECT fence(%(n)s::int, count(*)::int),
       CASE WHEN bool_or(followed AND outcome IS NOT NULL)
            THEN conclude(array_agg(id) FILTER (WHERE followed AND outcome IS NOT NULL), 'processing') END,
       (SELECT count(*) FROM back)
  FROM moved;

-- name: lock_families
-- all locks of the statements that follow, in the order that everybody keeps: tickets, tasks from low to high ids, groups from
-- high to low
WITH RECURSIVE mine AS MATERIALIZED (
  SELECT id FROM ticket WHERE id = ANY (%(ids)s::bigint[]) AND worker = %(worker)s ORDER BY id FOR UPDATE
), touched AS MATERIALIZED (
  SELECT t.id, t.parent FROM task t WHERE t.id = ANY (ARRAY(SELECT id FROM mine) || %(tasks)s::bigint[])
   ORDER BY t.id FOR NO KEY UPDATE
), family(id) AS (
  SELECT t.parent FROM mine JOIN touched t USING (id) WHERE t.parent IS NOT NULL
  UNION
  SELECT unnest(%(groups)s::bigint[])
  UNION
  SELECT g.parent FROM family JOIN task_group g USING (id) WHERE g.parent IS NOT NULL
)
SELECT g.id FROM task_group g WHERE g.id = ANY (ARRAY(SELECT id FROM family)) ORDER BY g.id DESC FOR NO KEY UPDATE;

-- name: tally
INSERT INTO queue_tally AS t (queue, scope, worker, completed, failed, skipped, cancelled, retried, prunable)
SELECT queue, scope, %(worker)s, completed, failed, skipped, cancelled, retried, prunable
  FROM jsonb_to_recordset(%(rows)s::jsonb) AS r(
    queue text, scope int, completed bigint, failed bigint, skipped bigint, cancelled bigint, retried bigint, prunable bigint)
 ORDER BY queue, scope
ON CONFLICT (queue, scope, worker) DO UPDATE
   SET completed = t.completed + excluded.completed, failed = t.failed + excluded.failed,
       skipped = t.skipped + excluded.skipped, cancelled = t.cancelled + excluded.cancelled,
       retried = t.retried + excluded.retried, prunable = t.prunable + excluded.prunable;
