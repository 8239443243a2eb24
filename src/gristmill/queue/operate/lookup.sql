-- What is known of one task.

-- name: get
SELECT * FROM tasks WHERE id = %(id)s;

-- name: group
SELECT g.*, t.payload ->> 'label' AS label, t.created_at FROM task_group g JOIN task t ON t.id = g.id WHERE g.id = %(id)s;

-- name: errors_within
-- goes down only into groups in which a task failed
WITH RECURSIVE tree AS (
  SELECT g.id FROM task_group g WHERE g.id = %(id)s
  UNION
  SELECT g.id FROM tree JOIN task t ON t.parent = tree.id AND t.queue IS NULL JOIN task_group g ON g.id = t.id AND g.failed > 0
)
SELECT t.id, t.kind, t.queue, t.attempts, t.finished_at AS at, t.error
  FROM tree JOIN task t ON t.parent = tree.id AND t.died_at IS NOT NULL
 ORDER BY t.died_at DESC LIMIT %(limit)s;

-- name: history
WITH mine AS MATERIALIZED (
  SELECT * FROM task WHERE id = %(id)s
), event AS (
  SELECT 1 AS place, created_at AS at, 'sent' AS what, NULL::int AS attempt, NULL::int AS worker, NULL AS text FROM mine
  UNION ALL
  SELECT 2, f.at, 'failed', f.attempt, f.worker, f.error FROM task_failure f JOIN mine ON mine.id = f.task
  UNION ALL
  SELECT 3, k.claimed_at, 'claimed', k.attempts, k.worker, NULL FROM ticket k JOIN mine USING (id) WHERE k.worker IS NOT NULL
  UNION ALL
  SELECT 4, started_at, 'claimed', attempts, worker, NULL FROM mine WHERE outcome IS NOT NULL AND started_at IS NOT NULL
  UNION ALL
  SELECT 5, finished_at, 'ended ' || outcome, attempts, worker, CASE WHEN outcome <> 'failed' THEN error END
    FROM mine WHERE outcome IS NOT NULL
)
SELECT at, what, attempt, worker, text FROM event ORDER BY at, place;
