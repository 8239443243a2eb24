-- Finds the candidates for hits.

-- name: search_space
-- The scopes that are visible from one scope (without a client: all), their chunks counted, their languages (null: not known),
-- and the model that search answers from.
WITH seen AS MATERIALIZED (
  SELECT CASE WHEN %(client)s::text IS NULL THEN ARRAY(SELECT id FROM scope ORDER BY id)
              ELSE visible_scopes(%(client)s::text, %(project)s::text) END AS scopes
), old AS MATERIALIZED (
  SELECT size, languages FROM seen JOIN segment ON scope = ANY(scopes)
), fresh AS MATERIALIZED (
  SELECT language, count(*) AS size FROM seen JOIN fresh_terms ON scope = ANY(scopes) GROUP BY language
)
SELECT seen.scopes, m.id AS model, m.name, m.dimensions,
       ((SELECT coalesce(sum(size), 0) FROM old) + (SELECT coalesce(sum(size), 0) FROM fresh))::bigint AS size,
       ARRAY(SELECT unnest(languages) FROM old UNION SELECT language FROM fresh) AS languages
  FROM seen LEFT JOIN embedding_model m ON m.current;

-- name: passing_chunks
SELECT c.id
  FROM chunk c JOIN document d ON d.id = c.document
 WHERE c.id = ANY(%(chunks)s) AND (%(types)s::text[] IS NULL OR d.type = ANY(%(types)s::text[]))
   AND (%(after)s::timestamptz IS NULL OR coalesce(d.written_at, d.added_at) >= %(after)s::timestamptz)
   AND (%(columns)s::jsonb IS NULL
        OR EXISTS (SELECT FROM chunk_columns f WHERE f.chunk = c.id AND f.columns @> %(columns)s::jsonb));
