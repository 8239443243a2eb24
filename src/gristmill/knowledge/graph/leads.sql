-- Ways from chunks to other chunks, seen and named as in `reading.sql`; without scopes, all of them are seen.

-- name: leads
-- What these chunks mention, and a few edges of each: a thing that everybody mentions has thousands, and is read as fast.
WITH here AS (
  SELECT m.chunk, coalesce(a.key, m.key) AS key, m.name
    FROM mention m LEFT JOIN alias a ON a.client = %(client)s AND a.alias = m.key
   WHERE m.chunk = ANY(%(chunks)s) AND (%(scopes)s::int[] IS NULL OR m.scope = ANY(%(scopes)s))
   ORDER BY m.count DESC, m.chunk, m.key LIMIT %(nodes)s
), led AS (
  SELECT chunk, name AS origin, key, false AS is_related FROM here
  UNION
  SELECT h.chunk, h.name, coalesce(a.key, n.key), true
    FROM here h
   CROSS JOIN LATERAL (
      SELECT key FROM (
        (SELECT r.target AS key, r.type FROM relation r
          WHERE r.source = ANY(names_of(%(client)s, ARRAY[h.key])) AND (%(scopes)s::int[] IS NULL OR r.scope = ANY(%(scopes)s))
          LIMIT %(edges)s)
        UNION ALL
        (SELECT r.source, r.type FROM relation r
          WHERE r.target = ANY(names_of(%(client)s, ARRAY[h.key])) AND (%(scopes)s::int[] IS NULL OR r.scope = ANY(%(scopes)s))
          LIMIT %(edges)s)) AS any_type
       WHERE any_type.type <> 'RELATED_TO' LIMIT %(typed)s) AS n
    LEFT JOIN alias a ON a.client = %(client)s AND a.alias = n.key
   WHERE coalesce(a.key, n.key) <> h.key
)
SELECT l.chunk, l.origin, l.is_related, usual.name
  FROM led l
 CROSS JOIN LATERAL (SELECT coalesce(max(few.name) FILTER (WHERE lower(few.name) = plain_name(l.key)), max(few.name)) AS name,
                            count(*) AS chunks
                       FROM (SELECT m.name FROM mention m
                              WHERE m.key = l.key AND (%(scopes)s::int[] IS NULL OR m.scope = ANY(%(scopes)s))
                              LIMIT %(few)s + 1) AS few) AS usual
 WHERE split_part(l.key, '::', 1) = ANY(%(kinds)s) AND usual.name IS NOT NULL
   AND (NOT l.is_related OR usual.chunks <= %(few)s)
 ORDER BY l.is_related, l.chunk, l.origin, usual.name;
