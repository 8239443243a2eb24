-- Finds tasks and tells what is known of them.

-- name: get
SELECT * FROM tasks WHERE id = %(id)s;

-- name: newest
SELECT * FROM tasks
 WHERE (%(queue)s::text IS NULL OR queue = %(queue)s) AND (%(kind)s::text IS NULL OR kind = %(kind)s)
   AND (%(status)s::task_status IS NULL OR status = %(status)s) AND (%(before)s::bigint IS NULL OR id < %(before)s)
 ORDER BY id DESC LIMIT %(limit)s;

-- name: newest_children
SELECT * FROM tasks
 WHERE parent = %(parent)s AND (%(queue)s::text IS NULL OR queue = %(queue)s)
   AND (%(kind)s::text IS NULL OR kind = %(kind)s) AND (%(status)s::task_status IS NULL OR status = %(status)s)
   AND (%(before)s::bigint IS NULL OR id < %(before)s)
 ORDER BY id DESC LIMIT %(limit)s;

-- name: newest_processing
-- from the leases: there are few of them, and pending or finished tasks need not be read
SELECT * FROM tasks
 WHERE id IN (SELECT k.id FROM leased k)
   AND (%(queue)s::text IS NULL OR queue = %(queue)s) AND (%(kind)s::text IS NULL OR kind = %(kind)s)
   AND (%(before)s::bigint IS NULL OR id < %(before)s)
 ORDER BY id DESC LIMIT %(limit)s;

-- name: newest_pending
-- from tickets and waiting tasks, so that finished ones need not be read
WITH waiting AS MATERIALIZED (
  SELECT id, queue, kind FROM task WHERE wait = 'time'
  UNION ALL SELECT id, queue, kind FROM task WHERE wait = 'after'
  UNION ALL SELECT id, queue, kind FROM task WHERE wait = 'serial'
), found AS (
  (SELECT k.id FROM ticket k
    WHERE k.worker IS NULL AND (%(queue)s::text IS NULL OR k.queue = %(queue)s)
      AND (%(kind)s::text IS NULL OR (SELECT t.kind FROM task t WHERE t.id = k.id) = %(kind)s)
      AND (%(before)s::bigint IS NULL OR k.id < %(before)s)
    ORDER BY k.id DESC LIMIT %(limit)s)
  UNION ALL
  (SELECT g.id FROM task_group g
    WHERE g.status = 'pending' AND %(queue)s::text IS NULL AND (%(kind)s::text IS NULL OR %(kind)s = 'group')
      AND (%(before)s::bigint IS NULL OR g.id < %(before)s)
    ORDER BY g.id DESC LIMIT %(limit)s)
  UNION ALL
  SELECT w.id FROM waiting w
   WHERE (%(queue)s::text IS NULL OR w.queue = %(queue)s) AND (%(kind)s::text IS NULL OR w.kind = %(kind)s)
     AND (%(before)s::bigint IS NULL OR w.id < %(before)s)
)
SELECT * FROM tasks
 WHERE id = ANY (ARRAY(SELECT f.id FROM found f ORDER BY f.id DESC LIMIT %(limit)s))
 ORDER BY id DESC;

-- name: newest_failed
SELECT * FROM tasks
 WHERE id IN (SELECT t.id FROM task t WHERE t.died_at IS NOT NULL)
   AND (%(queue)s::text IS NULL OR queue = %(queue)s) AND (%(kind)s::text IS NULL OR kind = %(kind)s)
   AND (%(before)s::bigint IS NULL OR id < %(before)s)
 ORDER BY id DESC LIMIT %(limit)s;

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
