-- Finds tasks: a stream of ids, newest first, from the index that fits best; then those of them that fit the filter.

-- name: newest
-- ids of tasks and groups; `id` alone is read from the index
SELECT id FROM task WHERE id < %(before)s AND id > %(floor)s ORDER BY id DESC LIMIT %(look)s;

-- name: newest_of_queue
SELECT id FROM task WHERE queue = %(queue)s AND id < %(before)s AND id > %(floor)s ORDER BY queue DESC, id DESC LIMIT %(look)s;

-- name: newest_of_scopes
SELECT t.id FROM unnest(%(scopes)s::int[]) AS s(id), LATERAL (
  SELECT id FROM task WHERE scope = s.id AND scope <> 1 AND task.id < %(before)s AND task.id > %(floor)s
   ORDER BY scope DESC, id DESC LIMIT %(look)s) t
 ORDER BY t.id DESC LIMIT %(look)s;

-- name: newest_children
SELECT id FROM task WHERE parent = %(parent)s AND id < %(before)s AND id > %(floor)s ORDER BY parent DESC, id DESC LIMIT %(look)s;

-- name: newest_of_owner
SELECT id FROM task WHERE owner = %(owner)s AND id < %(before)s AND id > %(floor)s ORDER BY id DESC LIMIT %(look)s;

-- name: newest_processing
-- from the leases: there are few of them; a group is processing as long as a task within it is
WITH RECURSIVE running(id, parent) AS (
  SELECT t.id, t.parent FROM leased k JOIN task t ON t.id = k.id
  UNION
  SELECT g.id, g.parent FROM running r JOIN task_group g ON g.id = r.parent
)
SELECT id FROM running
 WHERE id < %(before)s AND id > %(floor)s ORDER BY id DESC LIMIT %(look)s;

-- name: newest_open
-- pending and processing tasks and groups: by their tickets, and by the index of those that wait
SELECT id FROM (
  (SELECT id FROM ticket WHERE id < %(before)s AND id > %(floor)s ORDER BY id DESC LIMIT %(look)s)
  UNION ALL
  SELECT w.id FROM queue q, LATERAL (
    SELECT id FROM task t WHERE t.queue = q.name AND t.wait IS NOT NULL AND t.id < %(before)s AND t.id > %(floor)s
     ORDER BY t.queue DESC, t.id DESC LIMIT %(look)s) w
  UNION ALL
  (SELECT id FROM task WHERE queue IS NULL AND wait IS NOT NULL AND id < %(before)s AND id > %(floor)s
    ORDER BY queue DESC, id DESC LIMIT %(look)s)) o
 ORDER BY id DESC LIMIT %(look)s;

-- name: newest_open_of_queue
-- for a queue with few of them
SELECT id FROM (
  SELECT id FROM ticket WHERE queue = %(queue)s AND NOT suspect
  UNION ALL
  SELECT id FROM ticket WHERE queue = %(queue)s AND suspect
  UNION ALL
  SELECT id FROM task WHERE queue = %(queue)s AND wait IS NOT NULL) o
 WHERE id < %(before)s AND id > %(floor)s ORDER BY id DESC LIMIT %(look)s;

-- name: latest_dead
-- by the time of death, the latest first
SELECT id, died_at FROM task
 WHERE died_at IS NOT NULL AND (died_at, id) < (coalesce(%(died_at)s::timestamptz, 'infinity'), %(before)s)
 ORDER BY died_at DESC, id DESC LIMIT %(look)s;

-- name: latest_dead_of_scopes
SELECT t.id, t.died_at FROM unnest(%(scopes)s::int[]) AS s(id), LATERAL (
  SELECT id, died_at FROM task
   WHERE scope = s.id AND died_at IS NOT NULL
     AND (died_at, task.id) < (coalesce(%(died_at)s::timestamptz, 'infinity'), %(before)s)
   ORDER BY scope DESC, died_at DESC, id DESC LIMIT %(look)s) t
 ORDER BY t.died_at DESC, t.id DESC LIMIT %(look)s;

-- The same, the oldest first: they begin behind `after` and end before `ceiling`.

-- name: oldest
SELECT id FROM task WHERE id > %(after)s AND id < %(ceiling)s ORDER BY id LIMIT %(look)s;

-- name: oldest_of_queue
SELECT id FROM task WHERE queue = %(queue)s AND id > %(after)s AND id < %(ceiling)s ORDER BY queue, id LIMIT %(look)s;

-- name: oldest_of_scopes
SELECT t.id FROM unnest(%(scopes)s::int[]) AS s(id), LATERAL (
  SELECT id FROM task WHERE scope = s.id AND scope <> 1 AND task.id > %(after)s AND task.id < %(ceiling)s
   ORDER BY scope, id LIMIT %(look)s) t
 ORDER BY t.id LIMIT %(look)s;

-- name: oldest_children
SELECT id FROM task WHERE parent = %(parent)s AND id > %(after)s AND id < %(ceiling)s ORDER BY parent, id LIMIT %(look)s;

-- name: oldest_of_owner
SELECT id FROM task WHERE owner = %(owner)s AND id > %(after)s AND id < %(ceiling)s ORDER BY id LIMIT %(look)s;

-- name: fitting
-- those of the given tasks that fit, in the order in which they were given
SELECT t.id
  FROM unnest(%(ids)s::bigint[]) WITH ORDINALITY AS g(id, place)
  JOIN task t ON t.id = g.id
  LEFT JOIN ticket k ON k.id = t.id AND t.outcome IS NULL
  LEFT JOIN task_group c ON c.id = t.id AND t.queue IS NULL
 WHERE (%(queue)s::text IS NULL OR t.queue = %(queue)s) AND (%(kind)s::text IS NULL OR t.kind = %(kind)s)
   AND (%(outcome)s::task_status IS NULL OR t.outcome = %(outcome)s) AND (NOT %(open)s OR t.outcome IS NULL)
   AND (%(status)s::task_status IS NULL OR %(status)s::task_status = coalesce(
         t.outcome, c.status, CASE WHEN k.worker IS NOT NULL THEN 'processing'::task_status ELSE 'pending' END))
   AND (%(fingerprint)s::text IS NULL OR t.fingerprint = %(fingerprint)s)
   AND (%(scopes)s::int[] IS NULL OR t.scope = ANY (%(scopes)s::int[]))
   AND (%(since)s::timestamptz IS NULL OR t.created_at >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR t.created_at <= %(until)s)
   AND (%(owner)s::text IS NULL OR t.owner = %(owner)s)
   AND (%(parent)s::bigint IS NULL OR t.parent = %(parent)s)
   AND (%(last_id)s::bigint IS NULL OR t.id <= %(last_id)s)
   AND (%(groups)s OR t.queue IS NOT NULL AND t.kind <> 'bulk.run')  -- a bulk action is not for groups, and not for itself
   AND (%(pattern)s::text IS NULL OR t.error ILIKE %(pattern)s OR t.payload::text ILIKE %(pattern)s
        OR t.result::text ILIKE %(pattern)s)
 ORDER BY g.place LIMIT %(limit)s;

-- name: load
-- for lists: of large payloads and results the beginning, as text; the first column of a name counts
SELECT CASE WHEN length(v.payload::text) > 2000 THEN to_jsonb(left(v.payload::text, 2000) || '…') ELSE v.payload END AS payload,
       CASE WHEN length(v.result::text) > 2000 THEN to_jsonb(left(v.result::text, 2000) || '…') ELSE v.result END AS result,
       v.*
  FROM tasks v WHERE v.id = ANY (%(ids)s::bigint[]);

-- name: clock
SELECT clock();

-- name: next_of_age
-- the first task from this id on, and when it was sent
SELECT id, created_at FROM task WHERE id >= %(id)s ORDER BY id LIMIT 1;

-- name: next_of_age_in_scope
SELECT id, created_at FROM task WHERE scope = %(scope)s AND scope <> 1 AND id >= %(id)s ORDER BY scope, id LIMIT 1;

-- name: last_id
-- not the highest that is there: a client would look for it among those of others
SELECT coalesce(pg_sequence_last_value('task_id'), 0);

-- name: has_more_open
-- whether a queue holds more open tasks than `most`
SELECT coalesce(sum(open), 0) > %(most)s FROM queue_count WHERE queue = %(queue)s;
