-- Removes closed tasks with all that is kept of them.

-- name: waiting_for
SELECT id FROM task WHERE wait = 'after' AND after = ANY (%(ids)s::bigint[]);

-- name: erase
WITH gone AS (
  DELETE FROM task WHERE id = ANY (%(ids)s::bigint[]) AND outcome IS NOT NULL
  RETURNING id, queue, scope, kind, outcome, fingerprint
), counted AS (
  INSERT INTO queue_depth (queue, scope, completed, failed, skipped, cancelled)
  SELECT queue, scope, -count(*) FILTER (WHERE outcome = 'completed'), -count(*) FILTER (WHERE outcome = 'failed'),
         -count(*) FILTER (WHERE outcome = 'skipped'), -count(*) FILTER (WHERE outcome = 'cancelled')
    FROM gone WHERE queue IS NOT NULL GROUP BY queue, scope
), clustered AS (
  INSERT INTO dead_tally (queue, scope, kind, fingerprint, n)
  SELECT queue, scope, kind, coalesce(fingerprint, ''), -count(*)
    FROM gone WHERE queue IS NOT NULL AND outcome = 'failed' GROUP BY 1, 2, 3, 4
), counters AS (
  DELETE FROM task_group WHERE id = ANY (ARRAY(SELECT id FROM gone))
), progress AS (
  DELETE FROM task_progress WHERE task = ANY (ARRAY(SELECT id FROM gone))
), failures AS (
  DELETE FROM task_failure WHERE task = ANY (ARRAY(SELECT id FROM gone))
)
SELECT count(*) FROM gone;
