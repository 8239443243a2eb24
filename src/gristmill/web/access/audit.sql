-- The audit log.

-- name: record
INSERT INTO audit (scope, caller, access_key, role, action, subject, details, address)
VALUES (%(scope)s, %(caller)s, %(key)s, %(role)s, %(action)s, %(subject)s, %(details)s::jsonb, %(address)s);

-- name: record_of_operator
SELECT record_of_operator(%(caller)s, %(key)s, %(role)s, %(action)s, %(subject)s, %(details)s::jsonb, %(address)s);

-- name: confirm_write
SELECT confirm_write(%(id)s, %(whole)s);

-- Lists of the log: a stream of lines, newest first, from the index that fits best; then those of them that fit the filter.

-- name: newest
SELECT id, at FROM audit WHERE id < %(before)s ORDER BY id DESC LIMIT %(look)s;

-- name: newest_of_subject
SELECT id, at FROM audit WHERE subject = %(subject)s AND id < %(before)s ORDER BY id DESC LIMIT %(look)s;

-- name: newest_of_caller
SELECT id, at FROM audit WHERE caller = %(caller)s AND id < %(before)s ORDER BY id DESC LIMIT %(look)s;

-- name: newest_of_action
SELECT id, at FROM audit WHERE action = %(action)s AND id < %(before)s ORDER BY id DESC LIMIT %(look)s;

-- name: newest_of_client
-- a client sees its own scopes, also where the server has no row-level security; bounds instead of `=`, so that the order comes
-- from the index of scopes, and not from the primary key, behind the lines of all others
SELECT l.id, l.at FROM scope s, LATERAL (
  SELECT id, at FROM audit WHERE (scope, id) < (s.id, %(before)s) AND scope >= s.id
   ORDER BY scope DESC, id DESC LIMIT %(look)s) l
 WHERE s.client = %(client)s AND %(project)s::text IN ('', s.project)
 ORDER BY l.id DESC LIMIT %(look)s;

-- name: fitting
SELECT a.id, a.at, a.caller, a.access_key AS key, a.role, s.client, s.project, a.action, a.subject, a.details, a.address
  FROM audit a JOIN scope s ON s.id = a.scope
 WHERE a.id = ANY (%(ids)s::bigint[])
   AND (%(caller)s::text IS NULL OR a.caller = %(caller)s::text) AND (%(action)s::text IS NULL OR a.action = %(action)s::text)
   AND (%(subject)s::text IS NULL OR a.subject = %(subject)s::text) AND (%(since)s::timestamptz IS NULL OR a.at >= %(since)s)
 ORDER BY a.id DESC LIMIT %(limit)s;
