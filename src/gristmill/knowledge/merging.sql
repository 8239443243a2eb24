-- Merges of nodes, and how the graph was before.

-- name: note_merge
INSERT INTO node_merge (scope, alias, key, repointed)
SELECT %(scope)s, %(alias)s, %(key)s, ARRAY(SELECT alias FROM alias WHERE client = %(client)s AND key = %(alias)s)
RETURNING id, alias, key, merged_at, repointed;

-- name: note_mentions
-- of both nodes, in the chunks that name the first
INSERT INTO merged_mention (merge, chunk, key, scope, type, name, count, stated, properties)
SELECT %(merge)s, m.chunk, m.key, m.scope, m.type, m.name, m.count, m.stated, m.properties
  FROM mention o JOIN mention m ON m.chunk = o.chunk AND m.key IN (%(alias)s, %(key)s)
 WHERE o.key = %(alias)s AND o.scope IN (SELECT id FROM scope WHERE client = %(client)s);

-- name: note_relations
INSERT INTO merged_relation (merge, chunk, source, type, target, scope, extracted, stated, properties)
SELECT %(merge)s, r.chunk, r.source, r.type, r.target, r.scope, r.extracted, r.stated, r.properties
  FROM mention o JOIN relation r ON r.chunk = o.chunk AND (r.source IN (%(alias)s, %(key)s) OR r.target IN (%(alias)s, %(key)s))
 WHERE o.key = %(alias)s AND o.scope IN (SELECT id FROM scope WHERE client = %(client)s);

-- name: note_entities
INSERT INTO merged_entity (merge, scope, key, type, properties, linked)
SELECT %(merge)s, e.scope, e.key, e.type, e.properties, e.linked
  FROM entity o JOIN entity e ON e.scope = o.scope AND e.key IN (%(alias)s, %(key)s)
 WHERE o.key = %(alias)s AND o.scope IN (SELECT id FROM scope WHERE client = %(client)s);

-- name: list_merges
SELECT id, alias, key, merged_at FROM node_merge WHERE scope = %(scope)s ORDER BY id DESC LIMIT %(limit)s;

-- name: load_merge
SELECT id, alias, key, merged_at, repointed FROM node_merge WHERE id = %(merge)s AND scope = %(scope)s FOR UPDATE;

-- name: later_merge
SELECT min(id) FROM node_merge
 WHERE scope = %(scope)s AND id > %(merge)s
   AND (key IN (%(key)s, %(alias)s) OR alias IN (%(key)s, %(alias)s));

-- name: separate_aliases
-- the alias itself goes, and the other names that the first node had are its own again
WITH gone AS (DELETE FROM alias WHERE client = %(client)s AND alias = %(alias)s AND key = %(key)s)
UPDATE alias SET key = %(alias)s WHERE client = %(client)s AND key = %(key)s AND alias = ANY (%(repointed)s::text[]);

-- name: stated_mentions_since
SELECT m.chunk FROM mention m
 WHERE m.key = %(key)s AND m.stated AND m.chunk IN (SELECT chunk FROM merged_mention WHERE merge = %(merge)s)
   AND NOT EXISTS (SELECT FROM merged_mention o WHERE o.merge = %(merge)s AND o.chunk = m.chunk AND o.stated);

-- name: stated_relations_since
SELECT r.chunk, r.source, r.type, r.target FROM relation r
 WHERE r.stated AND (r.source = %(key)s OR r.target = %(key)s)
   AND r.chunk IN (SELECT chunk FROM merged_mention WHERE merge = %(merge)s)
   AND NOT EXISTS (SELECT FROM merged_relation o
                    WHERE o.merge = %(merge)s AND o.chunk = r.chunk AND o.stated AND o.type = r.type
                      AND CASE o.source WHEN %(alias)s THEN %(key)s ELSE o.source END = r.source
                      AND CASE o.target WHEN %(alias)s THEN %(key)s ELSE o.target END = r.target);

-- name: drop_merged
-- Its relations go with it.
DELETE FROM mention
 WHERE key = %(key)s AND chunk IN (SELECT chunk FROM merged_mention WHERE merge = %(merge)s);

-- name: restore_mentions
INSERT INTO mention (chunk, key, scope, type, name, count, stated, properties)
SELECT chunk, key, scope, type, name, count, stated, properties FROM merged_mention WHERE merge = %(merge)s
    ON CONFLICT (chunk, key) DO NOTHING;

-- name: restore_relations
-- if what they lead to is still named there
INSERT INTO relation (chunk, source, type, target, scope, extracted, stated, properties)
SELECT r.chunk, r.source, r.type, r.target, r.scope, r.extracted, r.stated, r.properties
  FROM merged_relation r
 WHERE r.merge = %(merge)s
   AND EXISTS (SELECT FROM mention m WHERE m.chunk = r.chunk AND m.key = r.source)
   AND EXISTS (SELECT FROM mention m WHERE m.chunk = r.chunk AND m.key = r.target)
    ON CONFLICT (chunk, source, type, target) DO NOTHING;

-- name: link_again
INSERT INTO mention AS known (chunk, key, scope, type, name, count, stated)
SELECT c.id, %(key)s, c.scope, %(type)s, %(name)s, 0, true FROM chunk c WHERE c.id = ANY (%(chunks)s)
    ON CONFLICT (chunk, key) DO UPDATE SET stated = true WHERE NOT known.stated;

-- name: state_again
INSERT INTO relation AS known (chunk, source, type, target, scope, extracted, stated)
SELECT c.id, %(source)s, %(type)s, %(target)s, c.scope, false, true FROM chunk c
 WHERE c.id = %(chunk)s
   AND EXISTS (SELECT FROM mention m WHERE m.chunk = c.id AND m.key = %(source)s)
   AND EXISTS (SELECT FROM mention m WHERE m.chunk = c.id AND m.key = %(target)s)
    ON CONFLICT (chunk, source, type, target) DO UPDATE SET stated = true;

-- name: restore_kept_entities
-- The kept node loses the properties that it has from the other one alone.
UPDATE entity e
   SET properties = (SELECT coalesce(jsonb_object_agg(p.key, p.value), '{}') FROM jsonb_each(e.properties) p
                      WHERE NOT (o.properties ? p.key AND NOT coalesce(k.properties, '{}') ? p.key
                                 AND o.properties -> p.key = p.value)),
       linked = CASE WHEN k.key IS NULL THEN e.linked ELSE k.linked END
  FROM merged_entity o LEFT JOIN merged_entity k ON k.merge = o.merge AND k.scope = o.scope AND k.key = %(key)s
 WHERE o.merge = %(merge)s AND o.key = %(alias)s AND e.scope = o.scope AND e.key = %(key)s;

-- name: drop_made_entities
-- The merge stated the kept node where only the other one was stated.
DELETE FROM entity e USING merged_entity o
 WHERE o.merge = %(merge)s AND o.key = %(alias)s AND e.scope = o.scope AND e.key = %(key)s AND e.properties = '{}'
   AND NOT EXISTS (SELECT FROM merged_entity k WHERE k.merge = o.merge AND k.scope = o.scope AND k.key = %(key)s);

-- name: restore_entities
-- What was stated with evidence comes back if there is evidence left.
INSERT INTO entity (scope, key, type, properties, linked)
SELECT o.scope, o.key, o.type, o.properties, o.linked
  FROM merged_entity o JOIN scope s ON s.id = o.scope
 WHERE o.merge = %(merge)s AND o.key = %(alias)s
   AND (NOT o.linked OR EXISTS (SELECT FROM mention m JOIN scope c ON c.id = m.scope
                                 WHERE m.key = o.key AND may_rest_on(s, c)))
    ON CONFLICT (key, scope) DO NOTHING;

-- name: forget_merge
DELETE FROM node_merge WHERE id = %(merge)s;
