-- Vectors of chunks, by model.

-- name: find_model
-- Settled means: search answers from it, and no other model is left.
SELECT id, name, dimensions, current,
       current AND NOT EXISTS (SELECT FROM embedding_model o WHERE o.id <> m.id) AS settled
  FROM embedding_model m WHERE name = %(name)s AND dimensions = %(dimensions)s;

-- name: lock_models
SELECT pg_advisory_xact_lock(hashtext('gristmill embedding models'));

-- name: make_model
-- The first model is current at once, a later one when it is filled.
INSERT INTO embedding_model (name, dimensions, current)
VALUES (%(name)s, %(dimensions)s, NOT EXISTS (SELECT FROM embedding_model WHERE current))
RETURNING id, name, dimensions, current, current AS settled;

-- name: make_index
-- A function, because the statement itself contains the number and dimensions of the model.
SELECT make_vector_index(%(model)s::smallint, %(dimensions)s::int);

-- name: current_model
SELECT id, name, dimensions, current FROM embedding_model WHERE current;

-- name: coming_model
-- The model that is being filled.
SELECT name FROM embedding_model WHERE NOT current ORDER BY id DESC LIMIT 1;

-- name: has_other_model
SELECT EXISTS (SELECT FROM embedding_model WHERE name <> %(name)s);

-- name: known_vectors
-- Each hash costs one look into the index, however many chunks have it: every mail of a firm ends with the same signature.
-- The range of one value makes the planner use the index even where it believes that all hashes are equal. A chunk without
-- a vector does not hide another one that has it; but if the first 256 have none, the text is embedded again.
SELECT k.hash, v.vector
  FROM unnest(%(hashes)s::bytea[]) AS k (hash)
 CROSS JOIN LATERAL (
   SELECT vector_send(e.vector) AS vector
     FROM (SELECT id FROM chunk WHERE hash >= k.hash AND hash <= k.hash ORDER BY hash LIMIT 256) c
     JOIN embedding e ON e.chunk = c.id AND e.model = %(model)s::smallint
    LIMIT 1) v;

-- name: make_searchable
-- One statement for all rows of a chunk: the statements of many chunks go to the server as one batch.
WITH vectors AS (
  INSERT INTO embedding (model, chunk, scope, vector)
  SELECT v.model, %(chunk)s::bigint, %(scope)s, v.vector::vector
    FROM unnest(%(models)s::smallint[], %(vectors)s::text[]) AS v (model, vector)
  ON CONFLICT (chunk, model) DO NOTHING
)
INSERT INTO fresh_terms (chunk, scope, language, length, terms)
VALUES (%(chunk)s, %(scope)s, %(language)s, %(length)s, %(terms)s::jsonb)
ON CONFLICT (chunk) DO NOTHING;

-- name: nearest_by_index
-- By the index of one model. The numbers in braces are part of the index, or decide on the plan, so they are no parameters.
-- No real parameter influences the plan (`scope = ANY(…)` would, by the length of its array). So PostgreSQL keeps the plan:
-- making one takes a tenth of the time of the query.
WITH patience AS MATERIALIZED (
  SELECT set_config('hnsw.ef_search', least(greatest({most}, 40), 1000)::text, true) IS NOT NULL
     AND set_config('hnsw.iterative_scan', 'relaxed_order', true) IS NOT NULL
     AND set_config('hnsw.max_scan_tuples', '{most_scanned}', true) IS NOT NULL
     AND set_config('hnsw.scan_mem_multiplier', '8', true) IS NOT NULL AS given
)
SELECT near.chunk, near.similarity
  FROM patience
 CROSS JOIN LATERAL (
   SELECT e.chunk, 1 - (e.vector::vector({dimensions}) <=> %(near)s::vector) AS similarity
     FROM embedding e
    WHERE patience.given AND e.model = {model} AND array_position(%(scopes)s::int[], e.scope) IS NOT NULL
    ORDER BY e.vector::vector({dimensions}) <=> %(near)s::vector LIMIT {most}) near;

-- name: nearest_filtered
-- The scan goes on until enough vectors pass the filter: a narrow filter would leave few of the first hundred, or none.
WITH patience AS MATERIALIZED (
  SELECT set_config('hnsw.ef_search', least(greatest({most}, 40), 1000)::text, true) IS NOT NULL
     AND set_config('hnsw.iterative_scan', 'relaxed_order', true) IS NOT NULL
     AND set_config('hnsw.max_scan_tuples', '{most_scanned}', true) IS NOT NULL
     AND set_config('hnsw.scan_mem_multiplier', '8', true) IS NOT NULL AS given
)
SELECT near.chunk, near.similarity
  FROM patience
 CROSS JOIN LATERAL (
   SELECT e.chunk, 1 - (e.vector::vector({dimensions}) <=> %(near)s::vector) AS similarity
     FROM embedding e
    WHERE patience.given AND e.model = {model} AND array_position(%(scopes)s::int[], e.scope) IS NOT NULL
      AND EXISTS (SELECT FROM chunk c JOIN document d ON d.id = c.document
                   WHERE c.id = e.chunk AND (%(types)s::text[] IS NULL OR d.type = ANY(%(types)s::text[]))
                     AND coalesce(d.written_at, d.added_at) >= coalesce(%(after)s::timestamptz, '-infinity'))
      AND (%(columns)s::jsonb IS NULL
           OR EXISTS (SELECT FROM chunk_columns f WHERE f.chunk = e.chunk AND f.columns @> %(columns)s::jsonb))
    ORDER BY e.vector::vector({dimensions}) <=> %(near)s::vector LIMIT {most}) near;

-- name: nearest_of_chunks
-- Exact, and only of these chunks.
SELECT chunk, 1 - (vector <=> %(near)s::vector) AS similarity
  FROM embedding WHERE chunk = ANY(%(chunks)s) AND model = %(model)s::smallint
 ORDER BY 2 DESC LIMIT %(most)s;

-- name: nearest_without_index
-- Exact, of all chunks that may be seen.
SELECT e.chunk, 1 - (e.vector <=> %(near)s::vector) AS similarity
  FROM document d JOIN chunk c ON c.document = d.id JOIN embedding e ON e.chunk = c.id AND e.model = %(model)s::smallint
 WHERE d.scope = ANY(%(scopes)s::int[]) AND (%(types)s::text[] IS NULL OR d.type = ANY(%(types)s::text[]))
   AND coalesce(d.written_at, d.added_at) >= coalesce(%(after)s::timestamptz, '-infinity')
   AND (%(columns)s::jsonb IS NULL
        OR EXISTS (SELECT FROM chunk_columns f WHERE f.chunk = c.id AND f.columns @> %(columns)s::jsonb))
 ORDER BY 2 DESC LIMIT %(most)s;

-- name: few_chunks
-- The chunks of some scopes, as long as they are few enough to compare each.
SELECT c.id FROM document d JOIN chunk c ON c.document = d.id WHERE d.scope = ANY(%(scopes)s::int[]) LIMIT %(most)s;

-- name: few_chunks_since
-- The same behind a filter. An index finds the documents, so that a filter which leaves few documents reads few.
SELECT c.id
  FROM document d JOIN chunk c ON c.document = d.id
 WHERE d.scope = ANY(%(scopes)s::int[]) AND coalesce(d.written_at, d.added_at) >= %(after)s::timestamptz
 LIMIT %(most)s;

-- name: few_chunks_of_type
SELECT c.id
  FROM document d JOIN chunk c ON c.document = d.id
 WHERE d.scope = ANY(%(scopes)s::int[]) AND d.type = ANY(%(types)s::text[])
   AND coalesce(d.written_at, d.added_at) >= coalesce(%(after)s::timestamptz, '-infinity')
 LIMIT %(most)s;

-- name: few_chunks_with_columns
-- A function of the records finds them by an index of its own, which row-level security would keep from being used.
SELECT c.id
  FROM chunks_by_columns(%(columns)s::jsonb, %(scopes)s::int[], %(most)s) AS f (chunk) JOIN chunk c ON c.id = f.chunk
  JOIN document d ON d.id = c.document
 WHERE c.scope = ANY(%(scopes)s::int[]) AND (%(types)s::text[] IS NULL OR d.type = ANY(%(types)s::text[]))
   AND coalesce(d.written_at, d.added_at) >= coalesce(%(after)s::timestamptz, '-infinity');

-- name: chunks_without_vector
-- Chunks that have a vector of some model, but none of this one; read from the primary key of the vectors alone. Both sides
-- of the comparison say after which chunk they begin: otherwise a merge would walk over all chunks that are filled already.
WITH next AS MATERIALIZED (
  SELECT DISTINCT e.chunk
    FROM embedding e
   WHERE e.chunk > %(after)s AND e.model <> %(model)s::smallint
     AND NOT EXISTS (
       SELECT FROM embedding f WHERE f.chunk = e.chunk AND f.chunk > %(after)s AND f.model = %(model)s::smallint)
   ORDER BY e.chunk LIMIT %(most)s
)
SELECT c.id, c.scope, c.document, c.page, c.ordinal, c.start, c.stop, c.tokens, c.kind, c.language, c.heading,
       c.text, c.hash
  FROM next JOIN chunk c ON c.id = next.chunk
 ORDER BY c.id;

-- name: add_vector
-- Nothing is written if the chunk is gone meanwhile.
INSERT INTO embedding (model, chunk, scope, vector)
SELECT %(model)s::smallint, c.id, c.scope, %(vector)s::vector FROM chunk c WHERE c.id = %(chunk)s
    FOR KEY SHARE
ON CONFLICT (chunk, model) DO NOTHING;

-- name: unset_current
UPDATE embedding_model SET current = false WHERE current AND id <> %(model)s::smallint;

-- name: make_current
UPDATE embedding_model SET current = true WHERE id = %(model)s::smallint;

-- name: drop_other_vectors
-- Drops other models' vectors of the next chunks, where this model has one; returns the last of these chunks.
WITH next AS MATERIALIZED (
  SELECT id FROM chunk WHERE id > %(after)s ORDER BY id LIMIT %(most)s
), gone AS (
  DELETE FROM embedding e USING next
   WHERE e.chunk = next.id AND e.model <> %(model)s::smallint
     AND EXISTS (SELECT FROM embedding f WHERE f.chunk = e.chunk AND f.model = %(model)s::smallint)
)
SELECT max(id) FROM next;

-- name: drop_other_models
-- Drops the other models with their indexes. False if they still have vectors, or if somebody uses the table for longer
-- than a moment.
SELECT drop_other_vector_models(%(model)s::smallint);
