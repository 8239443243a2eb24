-- Nodes and edges that somebody states.

-- name: own_chunks
-- The chunks of one's own client; for a project, its own chunks and those of its client's level.
SELECT c.id FROM chunk c JOIN scope s ON s.id = c.scope JOIN scope own ON own.id = %(scope)s
 WHERE c.id = ANY(%(chunks)s) AND may_rest_on(own, s);

-- name: state_node
INSERT INTO entity (scope, key, type, properties, linked)
VALUES (%(scope)s, %(key)s, %(type)s, %(properties)s::jsonb, %(linked)s)
    ON CONFLICT (key, scope) DO UPDATE
   SET type = excluded.type, properties = entity.properties || excluded.properties, linked = entity.linked OR excluded.linked;

-- name: link_chunks
INSERT INTO mention AS known (chunk, key, scope, type, name, count, stated)
SELECT c.id, %(key)s, c.scope,
       coalesce((SELECT e.type FROM entity e WHERE e.key = %(key)s AND e.scope = c.scope), %(type)s), %(name)s, 0, true
  FROM chunk c WHERE c.id = ANY(%(chunks)s)
    ON CONFLICT (chunk, key) DO UPDATE SET stated = true WHERE NOT known.stated;

-- name: state_edge
INSERT INTO relation AS known (chunk, source, type, target, scope, extracted, stated, properties)
SELECT c.id, %(source)s, %(type)s, %(target)s, c.scope, false, true, %(properties)s::jsonb
  FROM chunk c WHERE c.id = ANY(%(chunks)s)
    ON CONFLICT (chunk, source, type, target) DO UPDATE
   SET stated = true, properties = known.properties || excluded.properties;

-- name: hand_down_statements
-- Copies statements from chunks of a document to its newer version: to the chunk with the same text, and of several such to
-- the one in the same place. Two equal chunks may have become one, so a statement may arrive twice.
WITH heir AS (
  SELECT DISTINCT ON (old.id) old.id AS chunk, new.id AS heir, new.scope
    FROM document o
    JOIN document n ON n.scope = o.scope AND n.urn = o.urn AND n.version > o.version
    JOIN chunk old ON old.document = o.id
    JOIN chunk new ON new.document = n.id AND new.hash = old.hash
   WHERE o.id = ANY(%(documents)s) AND n.id <> ALL(%(documents)s) AND n.completed_at IS NOT NULL
     AND EXISTS (SELECT FROM mention m WHERE m.chunk = old.id AND m.stated)
   ORDER BY old.id, n.version DESC, (new.page, new.ordinal) = (old.page, old.ordinal) DESC, new.page, new.ordinal
), linked AS (
  INSERT INTO mention AS known (chunk, key, scope, type, name, count, stated)
  SELECT DISTINCT ON (h.heir, m.key) h.heir, m.key, h.scope, m.type, m.name, 0, true
    FROM heir h JOIN mention m ON m.chunk = h.chunk
   WHERE m.stated
   ORDER BY h.heir, m.key, m.chunk
      ON CONFLICT (chunk, key) DO UPDATE SET stated = true WHERE NOT known.stated
)
INSERT INTO relation AS known (chunk, source, type, target, scope, extracted, stated, properties)
SELECT DISTINCT ON (h.heir, r.source, r.type, r.target) h.heir, r.source, r.type, r.target, h.scope, false, true, r.properties
  FROM heir h JOIN relation r ON r.chunk = h.chunk
 WHERE r.stated
 ORDER BY h.heir, r.source, r.type, r.target, r.chunk
    ON CONFLICT (chunk, source, type, target) DO UPDATE
   SET stated = true, properties = known.properties || excluded.properties;

-- name: statements_at_stake
-- The statements with evidence in these documents.
SELECT e.scope, e.key
  FROM entity e JOIN scope s ON s.id = e.scope
 WHERE e.linked
   AND EXISTS (SELECT FROM chunk c JOIN mention m ON m.chunk = c.id JOIN scope o ON o.id = m.scope
                WHERE c.document = ANY(%(documents)s) AND m.key = e.key AND may_rest_on(s, o));

-- name: lock_statements
SELECT lock_statements(%(scopes)s, %(keys)s);

-- name: retract_statements
SELECT retract_statements(%(scopes)s, %(keys)s);

-- name: find_statements
SELECT DISTINCT s.client, e.key
  FROM unnest(%(scopes)s::int[], %(keys)s::text[]) AS lost (scope, key)
  JOIN entity e ON e.scope = lost.scope AND e.key = lost.key JOIN scope s ON s.id = e.scope;
