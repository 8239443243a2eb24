-- Groups: opened, joined by children, sealed, and told when a child ends.

-- name: open_groups
WITH made AS MATERIALIZED (
  SELECT nextval('task_id') AS id, payload FROM unnest(%(payloads)s::text[]) AS payload
), counters AS (
  INSERT INTO task_group (id, parent, scope) SELECT id, %(parent)s::bigint, %(scope)s FROM made
), opened AS (
  INSERT INTO task (id, created_at, parent, scope, lane, wait, kind, owner, payload)
  SELECT id, clock(), %(parent)s::bigint, %(scope)s, 0, 'children', 'group', %(owner)s, payload::jsonb FROM made
)
SELECT id FROM made ORDER BY id;

-- name: lock_groups
SELECT id, sealed FROM task_group WHERE id = ANY (%(ids)s) ORDER BY id DESC FOR NO KEY UPDATE;

-- name: joined
-- a group's children grow by `counts`
SELECT bubble(array_agg(g.id), array_agg(NULL::task_status), array_agg('pending'::task_status), array_agg(c.n))
  FROM unnest(%(ids)s::bigint[], %(counts)s::int[]) AS c(id, n) JOIN task_group g ON g.id = c.id  -- those that the caller sees
HAVING count(*) > 0;

-- name: seal
UPDATE task_group SET sealed = true WHERE id = %(id)s AND NOT sealed RETURNING id, parent, status, pending, processing;

-- name: sealed_empty
-- a group with nothing left open reaches its end the moment it is sealed
WITH done AS (
  UPDATE task_group
     SET status = group_status(sealed, pending, processing, completed, failed, skipped, cancelled), finished_at = clock()
   WHERE id = %(id)s AND sealed AND pending + processing = 0 AND finished_at IS NULL
  RETURNING id, status, finished_at
)
UPDATE task t SET outcome = done.status, finished_at = done.finished_at, wait = NULL
  FROM done WHERE t.id = done.id
RETURNING t.id;

-- name: conclude
SELECT conclude(array_agg(t.id), %(was)s::task_status)
  FROM task t WHERE t.id = ANY (%(ids)s::bigint[])  -- those that the caller sees
HAVING count(*) > 0;
