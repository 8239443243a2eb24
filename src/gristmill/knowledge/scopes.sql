-- Clients and their projects.

-- name: find_scope
SELECT id FROM scope WHERE client = %(client)s AND project = %(project)s;

-- name: make_scope
INSERT INTO scope (client, project) VALUES (%(client)s, %(project)s)
ON CONFLICT (client, project) DO NOTHING
RETURNING id;

-- name: visible
SELECT id FROM scope
 WHERE client = '' OR (client = %(client)s AND (%(project)s = '' OR project IN ('', %(project)s)))
 ORDER BY id;
