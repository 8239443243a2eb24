-- Parts of the graph that fit on one picture, seen and named as in `reading.sql`.

-- name: nodes_of_document
SELECT coalesce(a.key, m.key) AS key, count(*) OVER () AS total
  FROM chunk c JOIN mention m ON m.chunk = c.id
  LEFT JOIN alias a ON a.client = %(client)s AND a.alias = m.key
 WHERE c.document = %(document)s AND m.scope = ANY(%(scopes)s)
 GROUP BY 1 ORDER BY sum(m.count) DESC, 1 LIMIT %(limit)s;

-- name: edges_of_document
SELECT coalesce(s.key, r.source) AS source, r.type, coalesce(t.key, r.target) AS target, count(DISTINCT r.chunk) AS evidence
  FROM chunk c JOIN relation r ON r.chunk = c.id
  LEFT JOIN alias s ON s.client = %(client)s AND s.alias = r.source
  LEFT JOIN alias t ON t.client = %(client)s AND t.alias = r.target
 WHERE c.document = %(document)s AND r.scope = ANY(%(scopes)s)
   AND coalesce(s.key, r.source) = ANY(%(keys)s) AND coalesce(t.key, r.target) = ANY(%(keys)s)
   AND coalesce(s.key, r.source) <> coalesce(t.key, r.target)
 GROUP BY 1, 2, 3 ORDER BY 1, 3, 2;

-- name: recent_nodes
-- of the newest documents, and of long ones only the beginning
WITH recent AS (
  SELECT d.id FROM unnest(%(scopes)s::int[]) AS own (scope)
   CROSS JOIN LATERAL (SELECT id FROM document WHERE scope = own.scope ORDER BY id DESC LIMIT 20) d
   ORDER BY d.id DESC LIMIT 20
)
SELECT coalesce(a.key, m.key) AS key, count(*) OVER () AS total
  FROM recent r
 CROSS JOIN LATERAL (SELECT id FROM chunk WHERE document = r.id ORDER BY page, ordinal LIMIT 50) c
  JOIN mention m ON m.chunk = c.id
  LEFT JOIN alias a ON a.client = %(client)s AND a.alias = m.key
 WHERE m.scope = ANY(%(scopes)s)
 GROUP BY 1 ORDER BY sum(m.count) DESC, 1 LIMIT %(limit)s;

-- name: edges_between
SELECT coalesce(s.key, r.source) AS source, r.type, coalesce(t.key, r.target) AS target, count(DISTINCT r.chunk) AS evidence
  FROM relation r
  LEFT JOIN alias s ON s.client = %(client)s AND s.alias = r.source
  LEFT JOIN alias t ON t.client = %(client)s AND t.alias = r.target
 WHERE r.source = ANY(names_of(%(client)s, %(keys)s)) AND r.target = ANY(names_of(%(client)s, %(keys)s))
   AND r.scope = ANY(%(scopes)s) AND coalesce(s.key, r.source) <> coalesce(t.key, r.target)
 GROUP BY 1, 2, 3 ORDER BY 1, 3, 2;
