-- The audit log.

-- name: record
INSERT INTO audit (scope, caller, access_key, role, action, subject, details, address)
VALUES (%(scope)s, %(caller)s, %(key)s, %(role)s, %(action)s, %(subject)s, %(details)s::jsonb, %(address)s);

-- name: note_write
SELECT note_write(%(id)s);

-- name: list_audit
-- newest first; a client sees its own scopes, also where the server has no row-level security
SELECT a.id, a.at, a.caller, a.access_key AS key, a.role, s.client, s.project, a.action, a.subject, a.details, a.address
  FROM audit a JOIN scope s ON s.id = a.scope
 WHERE (%(client)s::text IS NULL OR s.client = %(client)s AND %(project)s::text IN ('', s.project))
   AND (%(before)s::bigint IS NULL OR a.id < %(before)s)
   AND (%(caller)s::text IS NULL OR a.caller = %(caller)s)
   AND (%(action)s::text IS NULL OR a.action = %(action)s)
   AND (%(subject)s::text IS NULL OR a.subject = %(subject)s)
   AND (%(since)s::timestamptz IS NULL OR a.at >= %(since)s)
 ORDER BY a.id DESC
 LIMIT %(limit)s;
