-- The whole graph, to be read a portion at a time.

-- name: nodes
SELECT key, max(type) AS type, min(name) AS name, sum(count)::bigint AS mentions, count(chunk) AS chunks
  FROM (SELECT key, type, name, count, chunk FROM mention WHERE scope = ANY(%(scopes)s)
        UNION ALL
        SELECT key, type, NULL, 0, NULL FROM entity WHERE scope = ANY(%(scopes)s)) AS one
 GROUP BY key ORDER BY key;

-- name: edges
SELECT source, type, target, count(*) AS evidence
  FROM relation WHERE scope = ANY(%(scopes)s)
 GROUP BY source, type, target ORDER BY source, type, target;
