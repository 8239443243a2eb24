-- Reads nodes and edges; every statement is confined to the scopes that its reader may see.

-- name: node
SELECT coalesce((SELECT e.type FROM entity e WHERE e.key = %(key)s AND e.scope = ANY(%(scopes)s) ORDER BY e.scope DESC LIMIT 1),
                mode() WITHIN GROUP (ORDER BY m.type)) AS type,
       mode() WITHIN GROUP (ORDER BY m.name) AS name, coalesce(sum(m.count), 0)::bigint AS mentions,
       count(m.chunk) AS chunks, count(DISTINCT c.document) AS documents,
       (SELECT jsonb_agg(e.properties ORDER BY e.scope) FROM entity e
         WHERE e.key = %(key)s AND e.scope = ANY(%(scopes)s)) AS stated
  FROM mention m JOIN chunk c ON c.id = m.chunk
 WHERE m.key = %(key)s AND m.scope = ANY(%(scopes)s);

-- name: neighbours
SELECT near.*, other.type AS other_type, other.name
  FROM (SELECT key, type, outward, count(*) AS evidence, count(*) OVER () AS total
          FROM (SELECT target AS key, type, true AS outward FROM relation
                 WHERE source = %(key)s AND scope = ANY(%(scopes)s)
                UNION ALL
                SELECT source, type, false FROM relation
                 WHERE target = %(key)s AND scope = ANY(%(scopes)s)) AS one
         GROUP BY key, type, outward
         ORDER BY evidence DESC, type = 'RELATED_TO', key, type, outward
         LIMIT %(limit)s) AS near
  CROSS JOIN LATERAL (SELECT m.type, m.name FROM mention m WHERE m.key = near.key AND m.scope = ANY(%(scopes)s) LIMIT 1) AS other
 ORDER BY near.evidence DESC, near.type = 'RELATED_TO', near.key, near.type, near.outward;

-- name: evidence
SELECT m.chunk, c.document, d.name AS file, d.title, d.urn, c.page, c.start, c.stop, m.name, c.text,
       substr(p.text, c.start + 1, c.stop - c.start) AS passage
  FROM mention m
  JOIN chunk c ON c.id = m.chunk
  JOIN document d ON d.id = c.document
  LEFT JOIN page p ON p.document = c.document AND p.number = c.page
 WHERE m.key = %(key)s AND m.scope = ANY(%(scopes)s)
 ORDER BY m.count DESC, m.chunk LIMIT %(limit)s;

-- name: proof
SELECT r.chunk, c.document, d.name AS file, d.title, d.urn, c.page, c.start, c.stop, m.name, c.text,
       substr(p.text, c.start + 1, c.stop - c.start) AS passage
  FROM relation r
  JOIN mention m ON m.chunk = r.chunk AND m.key = r.source
  JOIN chunk c ON c.id = r.chunk
  JOIN document d ON d.id = c.document
  LEFT JOIN page p ON p.document = c.document AND p.number = c.page
 WHERE r.source = %(source)s AND r.target = %(target)s AND r.type = %(type)s AND r.scope = ANY(%(scopes)s)
 ORDER BY r.chunk LIMIT %(limit)s;

-- name: find_beginning
-- by ranges: a pattern that is no constant would not use the index
SELECT key, max(type) AS type, mode() WITHIN GROUP (ORDER BY name) AS name, sum(count)::bigint AS mentions,
       count(chunk) AS chunks
  FROM (SELECT scope, key, type, name, count, chunk FROM mention
        UNION ALL
        SELECT scope, key, type, substr(key, strpos(key, '::') + 2), 0, NULL FROM entity) AS one
 WHERE scope = ANY(%(scopes)s) AND substr(key, strpos(key, '::') + 2) >= %(text)s
   AND substr(key, strpos(key, '::') + 2) < %(text)s || U&'\+10FFFF'
 GROUP BY key
 ORDER BY substr(key, strpos(key, '::') + 2) = %(text)s DESC, sum(count) DESC, key LIMIT %(limit)s;

-- name: find_within
SELECT key, max(type) AS type, mode() WITHIN GROUP (ORDER BY name) AS name, sum(count)::bigint AS mentions,
       count(chunk) AS chunks
  FROM (SELECT key, type, name, count, chunk FROM mention WHERE scope = ANY(%(scopes)s)
        UNION ALL
        SELECT key, type, substr(key, strpos(key, '::') + 2), 0, NULL FROM entity WHERE scope = ANY(%(scopes)s)) AS one
 WHERE strpos(CASE WHEN %(text)s LIKE '%%::%%' THEN key ELSE substr(key, strpos(key, '::') + 2) END, %(text)s) > 0
    OR strpos(lower(name), %(text)s) > 0
 GROUP BY key
 ORDER BY sum(count) DESC, key LIMIT %(limit)s;

-- name: exists
SELECT EXISTS (SELECT FROM mention WHERE key = %(key)s AND scope = ANY(%(scopes)s))
    OR EXISTS (SELECT FROM entity WHERE key = %(key)s AND scope = ANY(%(scopes)s));

-- name: around
-- One level of a search in breadth: who is next to any of these, by which edge, and how well that is known.
SELECT DISTINCT ON (key) key, origin, type, outward, evidence
  FROM (SELECT key, origin, type, outward, count(*) AS evidence
          FROM (SELECT target AS key, source AS origin, type, true AS outward FROM relation
                 WHERE source = ANY(%(keys)s) AND scope = ANY(%(scopes)s)
                UNION ALL
                SELECT source, target, type, false FROM relation
                 WHERE target = ANY(%(keys)s) AND scope = ANY(%(scopes)s)) AS one
         GROUP BY key, origin, type, outward) AS edges
 ORDER BY key, evidence DESC, type = 'RELATED_TO', type, origin, outward
 LIMIT %(limit)s;

-- name: counts
SELECT (SELECT count(DISTINCT key) FROM (SELECT key FROM mention WHERE scope = ANY(%(scopes)s)
                                         UNION SELECT key FROM entity WHERE scope = ANY(%(scopes)s)) AS all_keys) AS nodes,
       (SELECT count(*) FROM (SELECT DISTINCT source, type, target FROM relation WHERE scope = ANY(%(scopes)s)) AS e) AS edges,
       (SELECT coalesce(sum(count), 0)::bigint FROM mention WHERE scope = ANY(%(scopes)s)) AS mentions,
       (SELECT count(*) FROM relation WHERE scope = ANY(%(scopes)s)) AS evidence;

-- name: node_types
SELECT type, count(*) AS n
  FROM (SELECT key, max(type) AS type FROM mention WHERE scope = ANY(%(scopes)s) GROUP BY key) AS nodes
 GROUP BY type ORDER BY n DESC, type;

-- name: edge_types
SELECT type, count(*) AS n
  FROM (SELECT DISTINCT source, type, target FROM relation WHERE scope = ANY(%(scopes)s)) AS edges
 GROUP BY type ORDER BY n DESC, type LIMIT 30;
