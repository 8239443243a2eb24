-- Clients and their projects.

-- name: find_scope
SELECT id FROM scope WHERE client = %(client)s AND project = %(project)s;

-- name: make_scope
INSERT INTO scope (client, project) VALUES (%(client)s, %(project)s)
ON CONFLICT (client, project) DO NOTHING
RETURNING id;

-- name: visible
SELECT visible_scopes(%(client)s, %(project)s);

-- name: list_clients
SELECT DISTINCT client FROM scope WHERE client <> '' ORDER BY client LIMIT %(limit)s;
