-- What somebody states about nodes and edges.

-- name: own
-- the chunks of one's own client; for a project its own and those of its client's level
SELECT c.id FROM chunk c JOIN scope s ON s.id = c.scope
 WHERE c.id = ANY(%(chunks)s) AND s.client = %(client)s AND (%(project)s = '' OR s.project IN ('', %(project)s));

-- name: state_node
INSERT INTO entity (scope, key, type, properties) VALUES (%(scope)s, %(key)s, %(type)s, %(properties)s::jsonb)
    ON CONFLICT (key, scope) DO UPDATE SET type = excluded.type, properties = entity.properties || excluded.properties;

-- name: link
INSERT INTO mention AS known (chunk, key, scope, type, name, count, stated)
SELECT c.id, %(key)s, c.scope,
       coalesce((SELECT e.type FROM entity e WHERE e.key = %(key)s AND e.scope = c.scope), %(type)s), %(name)s, 0, true
  FROM chunk c WHERE c.id = ANY(%(chunks)s)
    ON CONFLICT (chunk, key) DO UPDATE SET stated = true WHERE NOT known.stated;

-- name: state_edge
INSERT INTO relation AS known (chunk, source, type, target, scope, drawn, stated, properties)
SELECT c.id, %(source)s, %(type)s, %(target)s, c.scope, false, true, %(properties)s::jsonb
  FROM chunk c WHERE c.id = ANY(%(chunks)s)
    ON CONFLICT (chunk, source, type, target) DO UPDATE
   SET stated = true, properties = known.properties || excluded.properties;
