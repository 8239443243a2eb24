-- Reads nodes and edges. Every statement reads only the scopes that its reader may see, and names nodes by the reader's aliases.

-- name: nodes
SELECT key, type, name, mentions, chunks, stated FROM visible_nodes(%(client)s, %(scopes)s::int[], %(keys)s::text[]);

-- name: count_places
SELECT count(DISTINCT m.chunk) AS chunks, count(DISTINCT c.document) AS documents
  FROM mention m JOIN chunk c ON c.id = m.chunk
 WHERE m.key = ANY(names_of(%(client)s, %(keys)s)) AND m.scope = ANY(%(scopes)s);

-- name: neighbours
SELECT coalesce(a.key, one.key) AS key, one.type, outward, count(DISTINCT chunk) AS evidence, count(*) OVER () AS total
  FROM (SELECT target AS key, type, true AS outward, chunk FROM relation
         WHERE source = ANY(names_of(%(client)s, %(keys)s)) AND scope = ANY(%(scopes)s)
        UNION ALL
        SELECT source, type, false, chunk FROM relation
         WHERE target = ANY(names_of(%(client)s, %(keys)s)) AND scope = ANY(%(scopes)s)) AS one
  LEFT JOIN alias a ON a.client = %(client)s AND a.alias = one.key
 WHERE coalesce(a.key, one.key) <> ALL(%(keys)s)
 GROUP BY 1, 2, 3
 ORDER BY evidence DESC, one.type = 'RELATED_TO', 1, 2, 3
 LIMIT %(limit)s;

-- name: node_evidence
SELECT m.chunk, c.document, d.name AS file, d.title, d.urn, c.page, c.start, c.stop, m.name, c.text,
       substr(p.text, c.start + 1, c.stop - c.start) AS passage
  FROM mention m
  JOIN chunk c ON c.id = m.chunk
  JOIN document d ON d.id = c.document
  LEFT JOIN page p ON p.document = c.document AND p.number = c.page
 WHERE m.key = ANY(names_of(%(client)s, %(keys)s)) AND m.scope = ANY(%(scopes)s)
 ORDER BY m.count DESC, m.chunk LIMIT %(limit)s;

-- name: edge_evidence
SELECT r.chunk, c.document, d.name AS file, d.title, d.urn, c.page, c.start, c.stop, m.name, c.text,
       substr(p.text, c.start + 1, c.stop - c.start) AS passage
  FROM relation r
  JOIN mention m ON m.chunk = r.chunk AND m.key = r.source
  JOIN chunk c ON c.id = r.chunk
  JOIN document d ON d.id = c.document
  LEFT JOIN page p ON p.document = c.document AND p.number = c.page
 WHERE r.source = ANY(names_of(%(client)s, ARRAY[%(source)s])) AND r.target = ANY(names_of(%(client)s, ARRAY[%(target)s]))
   AND r.type = %(type)s AND r.scope = ANY(%(scopes)s)
 ORDER BY r.chunk LIMIT %(limit)s;

-- name: find_beginning
-- By ranges, because a pattern that is no constant would not use the index.
SELECT coalesce(a.key, found.key) AS key
  FROM (SELECT key, sum(count) AS mentions
          FROM (SELECT scope, key, count FROM mention UNION ALL SELECT scope, key, 0 FROM entity) AS one
         WHERE scope = ANY(%(scopes)s) AND plain_name(key) >= lower(%(text)s) COLLATE "C"
           AND plain_name(key) < lower(%(text)s) || U&'\+10FFFF' COLLATE "C"
         GROUP BY key
         ORDER BY plain_name(key) = lower(%(text)s) COLLATE "C" DESC, mentions DESC, key LIMIT %(limit)s) AS found
  LEFT JOIN alias a ON a.client = %(client)s AND a.alias = found.key
 ORDER BY plain_name(found.key) = lower(%(text)s) COLLATE "C" DESC, found.mentions DESC, found.key;

-- name: find_within
SELECT coalesce(a.key, found.key) AS key
  FROM (SELECT key, sum(count) AS mentions
          FROM (SELECT key, name, count FROM mention WHERE scope = ANY(%(scopes)s)
                UNION ALL
                SELECT key, properties ->> 'name', 0 FROM entity WHERE scope = ANY(%(scopes)s)) AS one
         WHERE strpos(CASE WHEN %(text)s LIKE '%%::%%' THEN lower(key COLLATE "default") ELSE plain_name(key) END, lower(%(text)s)) > 0
            OR strpos(lower(name), lower(%(text)s)) > 0
         GROUP BY key
         ORDER BY mentions DESC, key LIMIT %(limit)s) AS found
  LEFT JOIN alias a ON a.client = %(client)s AND a.alias = found.key
 ORDER BY found.mentions DESC, found.key;

-- name: present_keys
-- Those of these keys under whose names the graph has anything.
SELECT k.key FROM unnest(%(keys)s::text[]) AS k (key)
 WHERE EXISTS (SELECT FROM mention m WHERE m.key = ANY(names_of(%(client)s, ARRAY[k.key])) AND m.scope = ANY(%(scopes)s))
    OR EXISTS (SELECT FROM entity e WHERE e.key = ANY(names_of(%(client)s, ARRAY[k.key])) AND e.scope = ANY(%(scopes)s));

-- name: next_level
-- One level of a breadth-first search: the neighbours of these nodes, each by the edge with most evidence.
SELECT DISTINCT ON (key) key, origin, type, outward, evidence
  FROM (SELECT coalesce(a.key, one.key) AS key, coalesce(o.key, one.origin) AS origin, type, outward, count(DISTINCT chunk) AS evidence
          FROM (SELECT target AS key, source AS origin, type, true AS outward, chunk FROM relation
                 WHERE source = ANY(names_of(%(client)s, %(keys)s)) AND scope = ANY(%(scopes)s)
                UNION ALL
                SELECT source, target, type, false, chunk FROM relation
                 WHERE target = ANY(names_of(%(client)s, %(keys)s)) AND scope = ANY(%(scopes)s)) AS one
          LEFT JOIN alias a ON a.client = %(client)s AND a.alias = one.key
          LEFT JOIN alias o ON o.client = %(client)s AND o.alias = one.origin
         GROUP BY 1, 2, 3, 4) AS edges
 WHERE key <> origin
 ORDER BY key, evidence DESC, type = 'RELATED_TO', type, origin, outward
 LIMIT %(limit)s;

-- name: counts
SELECT (SELECT coalesce(sum(count), 0)::bigint FROM mention WHERE scope = ANY(%(scopes)s)) AS mentions,
       (SELECT count(*) FROM relation WHERE scope = ANY(%(scopes)s)) AS evidence;

-- name: node_types
SELECT type, count(*) AS n FROM visible_nodes(%(client)s, %(scopes)s::int[], NULL) GROUP BY type ORDER BY n DESC, type;

-- name: edge_types
SELECT type, count(*) AS n FROM visible_edges(%(client)s, %(scopes)s::int[]) GROUP BY type ORDER BY n DESC, type;
