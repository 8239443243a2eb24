-- The graph a portion at a time, in the order of its indexes.

-- name: nodes
SELECT key, max(type) AS type, min(name) AS name, sum(count)::bigint AS mentions, count(chunk) AS chunks
  FROM (SELECT key, type, name, count, chunk FROM mention WHERE scope = ANY(%(scopes)s) AND key > %(after)s
        UNION ALL
        SELECT key, type, NULL, 0, NULL FROM entity WHERE scope = ANY(%(scopes)s) AND key > %(after)s) AS one
 GROUP BY key ORDER BY key LIMIT %(limit)s;

-- name: edges
SELECT source, type, target, count(*) AS evidence
  FROM relation
 WHERE scope = ANY(%(scopes)s) AND source >= %(source)s AND (source, type, target) > (%(source)s, %(type)s, %(target)s)
 GROUP BY source, type, target ORDER BY source, type, target LIMIT %(limit)s;
