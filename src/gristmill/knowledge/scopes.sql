-- Clients and their projects.

-- name: find_scope
SELECT id FROM scope WHERE client = %(client)s AND project = %(project)s;

-- name: make_scope
INSERT INTO scope (client, project) VALUES (%(client)s, %(project)s)
ON CONFLICT (client, project) DO NOTHING
RETURNING id;

-- name: visible
SELECT visible_scopes(%(client)s, %(project)s);

-- name: holds_anything
SELECT EXISTS (
  SELECT FROM scope s
   WHERE s.client = %(client)s AND (%(project)s::text = '' OR s.project = %(project)s::text)
     AND (EXISTS (SELECT FROM document d WHERE d.scope = s.id) OR EXISTS (SELECT FROM entity e WHERE e.scope = s.id)));
