-- Writes with an Idempotency-Key, and allowances of callers.

-- name: begin_write
WITH old AS (
  DELETE FROM web_write WHERE id IN
    (SELECT id FROM web_write WHERE began_at <= clock() - interval '1 day' AND (caller, key) <> (%(caller)s, %(key)s)
      ORDER BY began_at LIMIT 20
        FOR UPDATE SKIP LOCKED)
)
INSERT INTO web_write AS w (caller, key, head) VALUES (%(caller)s, %(key)s, %(head)s)
ON CONFLICT (caller, key) DO UPDATE
   SET id = DEFAULT, -- a process that did it before and still lives confirms an id that is gone, and changes nothing
       began_at = clock(), head = excluded.head, body = NULL, status = NULL, headers = NULL, answer = NULL,
       is_committed = false
 WHERE w.began_at <= clock() - interval '1 day'
    -- its process died before anything was changed
    OR w.status IS NULL AND NOT w.is_committed AND w.began_at <= clock() - %(patience)s::interval
RETURNING id;

-- name: find_write
SELECT head, body, is_committed, status, headers, answer, began_at <= clock() - %(patience)s::interval AS is_abandoned
  FROM web_write WHERE caller = %(caller)s AND key = %(key)s;

-- name: finish_write
UPDATE web_write SET body = %(body)s, status = %(status)s, headers = %(headers)s::jsonb, answer = %(answer)s
 WHERE id = %(id)s AND status IS NULL;

-- name: forget_write
DELETE FROM web_write WHERE id = %(id)s AND status IS NULL AND NOT is_committed;
