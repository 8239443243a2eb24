-- Vectors of chunks, by model.

-- name: find_model
-- settled: search answers from it, and nothing is left of another
SELECT id, name, dimensions, current,
       current AND NOT EXISTS (SELECT FROM embedding_model o WHERE o.id <> m.id) AS settled
  FROM embedding_model m WHERE name = %(name)s AND dimensions = %(dimensions)s;

-- name: lock_models
SELECT pg_advisory_xact_lock(hashtext('gristmill embedding models'));

-- name: make_model
-- the first one is current at once; a later one when it is filled
INSERT INTO embedding_model (name, dimensions, current)
VALUES (%(name)s, %(dimensions)s, NOT EXISTS (SELECT FROM embedding_model WHERE current))
RETURNING id, name, dimensions, current, current AS settled;

-- name: make_index
-- the statement depends on the model: its number and dimensions are in the index
SELECT make_vector_index(%(model)s::smallint, %(dimensions)s::int);

-- name: current_model
SELECT id, name, dimensions, current FROM embedding_model WHERE current;

-- name: coming_model
-- the one that is being filled
SELECT name FROM embedding_model WHERE NOT current ORDER BY id DESC LIMIT 1;

-- name: has_other_model
SELECT EXISTS (SELECT FROM embedding_model WHERE name <> %(name)s);

-- name: known_vectors
-- Each hash costs one look into the index, however many chunks have it: every mail of a firm has the same signature. The
-- range of one value has the planner use the index even where it believes that all are alike. A chunk that has no vector
-- yet hides no other; yet when the first 256 have none, the text is as well embedded anew.
SELECT k.hash, v.vector
  FROM unnest(%(hashes)s::bytea[]) AS k (hash)
 CROSS JOIN LATERAL (
   SELECT vector_send(e.vector) AS vector
     FROM (SELECT id FROM chunk WHERE hash >= k.hash AND hash <= k.hash ORDER BY hash LIMIT 256) c
     JOIN embedding e ON e.chunk = c.id AND e.model = %(model)s::smallint
    LIMIT 1) v;

-- name: make_searchable
-- all of one chunk in one statement: many of them go to the server as one batch
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
-- By the index of one model. What is in braces is in the index, or decides on the plan; and nothing here depends on a
-- parameter that would (of `scope = ANY(…)` it matters how many there are): so the plan is kept, and to make one takes a
-- tenth of the time.
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
-- The scan goes on until enough pass the filter, or a narrow one would leave few or none of the first hundred.
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
    ORDER BY e.vector::vector({dimensions}) <=> %(near)s::vector LIMIT {most}) near;

-- name: nearest_of_chunks
-- exact, of these
SELECT chunk, 1 - (vector <=> %(near)s::vector) AS similarity
  FROM embedding WHERE chunk = ANY(%(chunks)s) AND model = %(model)s::smallint
 ORDER BY 2 DESC LIMIT %(most)s;

-- name: nearest_without_index
-- exact, of all that may be seen
SELECT e.chunk, 1 - (e.vector <=> %(near)s::vector) AS similarity
  FROM document d JOIN chunk c ON c.document = d.id JOIN embedding e ON e.chunk = c.id AND e.model = %(model)s::smallint
 WHERE d.scope = ANY(%(scopes)s::int[]) AND (%(types)s::text[] IS NULL OR d.type = ANY(%(types)s::text[]))
   AND coalesce(d.written_at, d.added_at) >= coalesce(%(after)s::timestamptz, '-infinity')
 ORDER BY 2 DESC LIMIT %(most)s;

-- name: few_chunks
-- the chunks of some scopes, if they are few enough to look at each
SELECT c.id FROM document d JOIN chunk c ON c.document = d.id WHERE d.scope = ANY(%(scopes)s::int[]) LIMIT %(most)s;

-- name: few_chunks_since
-- … that a filter leaves: an index knows the documents, so that a filter that leaves few looks at few
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

-- name: chunks_without_vector
-- Chunks that have a vector of whatever model, but none of this one; found in the index of vectors alone. Both sides say
-- where they begin: whoever merges them would walk over all that is filled otherwise.
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
-- unless its chunk went meanwhile
INSERT INTO embedding (model, chunk, scope, vector)
SELECT %(model)s::smallint, c.id, c.scope, %(vector)s::vector FROM chunk c WHERE c.id = %(chunk)s
    FOR KEY SHARE
ON CONFLICT (chunk, model) DO NOTHING;

-- name: unset_current
UPDATE embedding_model SET current = false WHERE current AND id <> %(model)s::smallint;

-- name: make_current
UPDATE embedding_model SET current = true WHERE id = %(model)s::smallint;

-- name: drop_other_vectors
-- of the next chunks, the vectors that one of this model stands for; how far they go
WITH next AS MATERIALIZED (
  SELECT id FROM chunk WHERE id > %(after)s ORDER BY id LIMIT %(most)s
), gone AS (
  DELETE FROM embedding e USING next
   WHERE e.chunk = next.id AND e.model <> %(model)s::smallint
     AND EXISTS (SELECT FROM embedding f WHERE f.chunk = e.chunk AND f.model = %(model)s::smallint)
)
SELECT max(id) FROM next;

-- name: drop_other_models
-- their indexes go with them; false if they have vectors, or somebody is using the table for longer than a moment
SELECT drop_other_vector_models(%(model)s::smallint);
