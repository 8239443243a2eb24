-- Ends tasks that nobody wants any more.

-- name: known
SELECT id, queue IS NULL AS is_group FROM task WHERE id = ANY (%(ids)s::bigint[]);

-- name: groups_below
-- these groups and all groups within them
WITH RECURSIVE tree AS (
  SELECT id FROM task WHERE id = ANY (%(ids)s::bigint[]) AND queue IS NULL
  UNION
  SELECT t.id FROM tree JOIN task t ON t.parent = tree.id WHERE t.queue IS NULL
)
SELECT id FROM tree;

-- name: open_tasks
SELECT id FROM task WHERE id = ANY (%(ids)s::bigint[]) AND queue IS NOT NULL AND outcome IS NULL
UNION
SELECT id FROM task WHERE parent = ANY (%(groups)s::bigint[]) AND queue IS NOT NULL AND outcome IS NULL
 ORDER BY id;

-- name: lock_tickets
-- tickets before tasks before groups: the order in which settling takes them, too
SELECT id FROM ticket WHERE id = ANY (%(ids)s::bigint[]) ORDER BY id FOR UPDATE;

-- name: lock_tasks
SELECT id FROM task WHERE id = ANY (%(ids)s::bigint[]) ORDER BY id FOR UPDATE;

-- name: ask
-- processing: the worker is asked to stop it; its answer ends it
UPDATE ticket SET cancel = true WHERE id = ANY (%(ids)s::bigint[]) AND worker IS NOT NULL
RETURNING id, pg_notify('gristmill', 'cancel ' || id);

-- name: cancel_pending
-- pending -> cancelled, whatever it waits for; `conclude` is a statement of its own, as it may change the same rows
WITH moment AS MATERIALIZED (
  SELECT clock() AS now
), removed AS (
  DELETE FROM ticket WHERE id = ANY (%(ids)s::bigint[]) AND worker IS NULL RETURNING id, attempts
), closed AS (
  UPDATE task t
     SET outcome = 'cancelled', finished_at = m.now, wait = NULL, unique_held = NULL, error = %(reason)s, fingerprint = NULL,
         attempts = coalesce(l.attempts, t.attempts)
    FROM moment m, unnest(%(ids)s::bigint[]) AS g(id) LEFT JOIN removed l ON l.id = g.id
   WHERE t.id = g.id AND t.outcome IS NULL AND t.queue IS NOT NULL AND (t.wait IS NOT NULL OR l.id IS NOT NULL)
  RETURNING t.id, t.queue, t.scope, t.parent IS NULL AND t.owner IS NULL AS prunable
), counted AS (
  INSERT INTO queue_tally AS y (queue, scope, worker, cancelled, prunable)
  SELECT queue, scope, 0, count(*), count(*) FILTER (WHERE prunable) FROM closed GROUP BY 1, 2 ORDER BY 1, 2
  ON CONFLICT (queue, scope, worker) DO UPDATE
     SET cancelled = y.cancelled + excluded.cancelled, prunable = y.prunable + excluded.prunable
)
SELECT id FROM closed;

-- name: seal_groups
WITH held AS (
  SELECT id FROM task_group WHERE id = ANY (%(ids)s::bigint[]) AND NOT sealed ORDER BY id DESC FOR NO KEY UPDATE
)
UPDATE task_group g SET sealed = true FROM held WHERE g.id = held.id AND NOT g.sealed RETURNING g.id;

-- name: end_sealed
-- pending -> completed | failed | cancelled: groups whose last open child ended before they were sealed
WITH ended AS (
  UPDATE task_group
     SET status = group_status(sealed, pending, processing, completed, failed, skipped, cancelled), finished_at = clock()
   WHERE id = ANY (%(ids)s::bigint[]) AND sealed AND pending + processing = 0 AND finished_at IS NULL
  RETURNING id, status, finished_at
), closed AS (
  UPDATE task t SET outcome = e.status, finished_at = e.finished_at, wait = NULL FROM ended e WHERE t.id = e.id
  RETURNING t.id
)
SELECT conclude(array_agg(id), 'pending') FROM closed HAVING count(*) > 0;
