-- Changes the place of a pending task.

-- name: lock_place
SELECT t.id, t.priority, t.foreground, t.position, t.lane, t.outcome, t.queue, k.worker
  FROM task t LEFT JOIN ticket k ON k.id = t.id
 WHERE t.id = %(id)s FOR UPDATE OF t;

-- name: wake
-- pending -> pending: its time has come; `admit` gives it a ticket if nothing else holds it back
UPDATE task SET run_at = clock() WHERE id = %(id)s AND outcome IS NULL AND wait = 'time' RETURNING id;

-- name: admit
SELECT admit(array_agg(t.id)) FROM task t WHERE t.id = ANY (%(ids)s::bigint[])  -- those that the caller sees
HAVING count(*) > 0;

-- name: move
-- pending -> pending, at another place
WITH placed AS (
  UPDATE task SET position = %(position)s, priority = %(priority)s, foreground = %(foreground)s, lane = %(lane)s
   WHERE id = %(id)s AND outcome IS NULL
), moved AS (
  UPDATE ticket
     SET lane = %(lane)s, seq = coalesce(%(position)s, CASE WHEN %(by_age)s THEN id ELSE seq END)
   WHERE id = %(id)s AND worker IS NULL
  RETURNING queue, lane, seq
)
SELECT pg_notify('gristmill', 'ready ' || queue || ' ' || lane || ' ' || seq) FROM moved;
