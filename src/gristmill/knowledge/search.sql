-- Search: the details of a hit, and the chunks that the graph adds.

-- name: details
-- The scopes are checked once more: nothing outside of them is ever shown, whatever seemed to match.
SELECT c.id, c.document, c.page, c.start, c.stop, c.kind, c.language, c.heading, c.text, d.name, d.title, d.type,
       d.urn, (SELECT name FROM document WHERE id = d.container) AS part_of, d.version, s.client, s.project,
       f.record, f.columns,
       EXISTS (SELECT FROM document n WHERE n.scope = d.scope AND n.urn = d.urn AND n.version > d.version) AS outdated
  FROM chunk c JOIN document d ON d.id = c.document JOIN scope s ON s.id = d.scope
  LEFT JOIN chunk_columns f ON f.chunk = c.id
 WHERE c.id = ANY(%(chunks)s) AND c.scope = ANY(%(scopes)s::int[])
   AND (%(types)s::text[] IS NULL OR d.type = ANY(%(types)s::text[]))
   AND (%(after)s::timestamptz IS NULL OR coalesce(d.written_at, d.added_at) >= %(after)s::timestamptz)
   AND (%(columns)s::jsonb IS NULL OR f.columns @> %(columns)s::jsonb);

-- name: expand
-- Chunks that name neighbours of the nodes that the hits name, under any alias of the client. Near ones come first, then
-- those that name more such nodes.
WITH RECURSIVE related (key, hops) AS (
  SELECT DISTINCT coalesce(a.key, m.key), 0
    FROM mention m LEFT JOIN alias a ON a.client = %(client)s AND a.alias = m.key
   WHERE m.chunk = ANY(%(chunks)s) AND m.scope = ANY(%(scopes)s::int[])
  UNION
  SELECT coalesce(a.key, n.key), r.hops + 1
    FROM related r
   CROSS JOIN LATERAL (
     (SELECT target AS key FROM relation
       WHERE source = ANY(names_of(%(client)s, ARRAY[r.key])) AND scope = ANY(%(scopes)s::int[]) LIMIT %(fan)s)
     UNION
     (SELECT source FROM relation
       WHERE target = ANY(names_of(%(client)s, ARRAY[r.key])) AND scope = ANY(%(scopes)s::int[]) LIMIT %(fan)s)) n
    LEFT JOIN alias a ON a.client = %(client)s AND a.alias = n.key
   WHERE r.hops < %(hops)s
), nearest AS (
  SELECT key, min(hops) AS hops FROM related GROUP BY key
), led AS (
  SELECT m.chunk, min(n.hops) AS hops, array_agg(n.key ORDER BY n.hops, n.key) AS keys
    FROM nearest n
   CROSS JOIN LATERAL (SELECT chunk FROM mention
                        WHERE key = ANY(names_of(%(client)s, ARRAY[n.key])) AND scope = ANY(%(scopes)s::int[])
                          AND chunk <> ALL(%(chunks)s)
                        ORDER BY chunk DESC LIMIT %(naming)s) m
   WHERE n.hops > 0
   GROUP BY m.chunk
)
SELECT chunk, hops, keys
  FROM led
 WHERE %(types)s::text[] IS NULL AND %(after)s::timestamptz IS NULL AND %(columns)s::jsonb IS NULL
    OR EXISTS (SELECT FROM chunk c JOIN document d ON d.id = c.document
                WHERE c.id = led.chunk AND (%(types)s::text[] IS NULL OR d.type = ANY(%(types)s::text[]))
                  AND (%(after)s::timestamptz IS NULL OR coalesce(d.written_at, d.added_at) >= %(after)s::timestamptz)
                  AND (%(columns)s::jsonb IS NULL
                       OR EXISTS (SELECT FROM chunk_columns f WHERE f.chunk = c.id AND f.columns @> %(columns)s::jsonb)))
 ORDER BY hops, cardinality(keys) DESC, chunk
 LIMIT %(most)s;
