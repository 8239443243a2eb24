-- Aliases, and the merging of nodes that turn out to be one.

-- name: resolve_keys
SELECT alias, key FROM alias WHERE client = %(client)s AND alias = ANY(%(aliases)s);

-- name: keys_with_name
-- By the name of the key itself as well: the graph may not have the node yet.
SELECT DISTINCT key FROM alias
 WHERE client = %(client)s
   AND (substr(alias, strpos(alias, '::') + 2) = ANY(%(names)s) OR substr(key, strpos(key, '::') + 2) = ANY(%(names)s))
 ORDER BY key;

-- name: list_aliases
SELECT alias, key FROM alias WHERE client = %(client)s ORDER BY key, alias;

-- name: target_of_alias
SELECT key FROM alias WHERE client = %(client)s AND alias = %(alias)s;

-- name: block_mention_writers
-- Readers go on.
SELECT block_mention_writers();

-- name: block_alias_changes
-- Other writers go on.
SELECT block_alias_changes();

-- name: repoint_aliases
UPDATE alias SET key = %(key)s WHERE client = %(client)s AND key = %(alias)s;

-- name: add_alias
INSERT INTO alias (client, alias, key) VALUES (%(client)s, %(alias)s, %(key)s) ON CONFLICT (client, alias) DO NOTHING;

-- name: remove_alias
DELETE FROM alias WHERE client = %(client)s AND alias = %(alias)s RETURNING key;

-- name: merge_entities
INSERT INTO entity (scope, key, type, properties, linked)
SELECT scope, %(key)s, type, properties, linked FROM entity
 WHERE key = %(alias)s AND scope IN (SELECT id FROM scope WHERE client = %(client)s)
    ON CONFLICT (key, scope) DO UPDATE
   SET properties = excluded.properties || entity.properties, linked = entity.linked OR excluded.linked;

-- name: merge_mentions
INSERT INTO mention AS kept (chunk, key, scope, type, name, count, stated, properties)
SELECT chunk, %(key)s, scope, type, name, count, stated, properties FROM mention
 WHERE key = %(alias)s AND scope IN (SELECT id FROM scope WHERE client = %(client)s)
    ON CONFLICT (chunk, key) DO UPDATE
   SET count = kept.count + excluded.count, stated = kept.stated OR excluded.stated,
       properties = excluded.properties || kept.properties
RETURNING 1;

-- name: merge_relations
-- In one chunk, both names may have the same relation, or one to each other.
INSERT INTO relation AS kept (chunk, source, type, target, scope, extracted, stated, properties)
SELECT DISTINCT ON (1, 2, 3, 4) chunk, source, type, target, scope, extracted, stated, properties
  FROM (SELECT chunk, CASE source WHEN %(alias)s THEN %(key)s ELSE source END AS source, type,
               CASE target WHEN %(alias)s THEN %(key)s ELSE target END AS target, scope, extracted, stated, properties
          FROM relation
         WHERE (source = %(alias)s OR target = %(alias)s) AND scope IN (SELECT id FROM scope WHERE client = %(client)s)
       ) AS renamed
 WHERE source <> target
 ORDER BY 1, 2, 3, 4, stated DESC
    ON CONFLICT (chunk, source, type, target) DO UPDATE
   SET extracted = kept.extracted OR excluded.extracted, stated = kept.stated OR excluded.stated
RETURNING 1;

-- name: drop_mentions
-- Their relations go with them.
DELETE FROM mention WHERE key = %(alias)s AND scope IN (SELECT id FROM scope WHERE client = %(client)s);

-- name: drop_entities
DELETE FROM entity WHERE key = %(alias)s AND scope IN (SELECT id FROM scope WHERE client = %(client)s);

-- name: forget_extraction_keys
-- These extractions are kept under the names that the alias stood for. Without their key they are not reused for a chunk
-- of today, whose names are no longer merged.
UPDATE extraction SET key = ''
 WHERE chunk IN (SELECT chunk FROM mention
                  WHERE key = %(key)s AND scope IN (SELECT id FROM scope WHERE client = %(client)s));
