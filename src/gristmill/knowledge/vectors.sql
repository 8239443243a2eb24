-- Vectors of chunks, by model.

-- name: find_model
SELECT id, name, dimensions, current FROM embedding_model WHERE name = %(name)s AND dimensions = %(dimensions)s;

-- name: lock_models
SELECT pg_advisory_xact_lock(hashtext('gristmill embedding models'));

-- name: make_model
-- the first one is current at once; a later one when it is filled
INSERT INTO embedding_model (name, dimensions, current)
VALUES (%(name)s, %(dimensions)s, NOT EXISTS (SELECT FROM embedding_model WHERE current))
RETURNING id, name, dimensions, current;

-- name: make_index
-- the statement depends on the model: its number and dimensions are in the index
SELECT make_vector_index(%(model)s::smallint, %(dimensions)s::int);

-- name: current_model
SELECT id, name, dimensions, current FROM embedding_model WHERE current;

-- name: known
SELECT DISTINCT ON (c.hash) c.hash, vector_send(e.vector) AS vector
  FROM chunk c JOIN embedding e ON e.chunk = c.id AND e.model = %(model)s::smallint
 WHERE c.hash = ANY(%(hashes)s);

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
