-- Removes closed tasks with all that is kept of them.

-- name: waiting_for
SELECT id FROM task WHERE wait = 'after' AND after = ANY (%(ids)s::bigint[]);

-- name: erase
WITH gone AS (
  DELETE FROM task WHERE id = ANY (%(ids)s::bigint[]) AND outcome IS NOT NULL RETURNING id
), counters AS (
  DELETE FROM task_group WHERE id = ANY (ARRAY(SELECT id FROM gone))
), progress AS (
  DELETE FROM task_progress WHERE task = ANY (ARRAY(SELECT id FROM gone))
), failures AS (
  DELETE FROM task_failure WHERE task = ANY (ARRAY(SELECT id FROM gone))
)
SELECT count(*) FROM gone;
