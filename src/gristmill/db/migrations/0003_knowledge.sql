-- Knowledge: chunks of text, their vectors and terms, and the graph of who and what they name.

CREATE TABLE chunk (
  id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope    int NOT NULL REFERENCES scope,
  document bigint NOT NULL REFERENCES document ON DELETE CASCADE,
  page     int NOT NULL,
  ordinal  int NOT NULL,                           -- its place on the page, from 0
  start    int NOT NULL CHECK (start >= 0),        -- where in the page's text it begins …
  stop     int NOT NULL,                           -- … and ends, in characters
  tokens   int NOT NULL,
  kind     text COLLATE "C" NOT NULL DEFAULT 'prose',  -- prose, table, code or log
  language text COLLATE "C",                       -- null: not known
  heading  text NOT NULL DEFAULT '',               -- the path of headings above it
  text     text NOT NULL,
  hash     bytea NOT NULL,                         -- of what is embedded: heading and text
  UNIQUE (document, page, ordinal),
  CHECK (stop >= start)
);
CREATE INDEX chunk_by_hash ON chunk (hash);

-- What turns text into vectors. One is current; while another is being filled, search answers from the current one.
CREATE TABLE embedding_model (
  id         smallint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name       text NOT NULL,
  dimensions int NOT NULL CHECK (dimensions BETWEEN 1 AND 2000),
  current    boolean NOT NULL DEFAULT false,
  UNIQUE (name, dimensions)
);
CREATE UNIQUE INDEX embedding_model_current ON embedding_model (current) WHERE current;

-- Each model has its own HNSW index over its own rows, made when the model is first used.
CREATE TABLE embedding (
  model  smallint NOT NULL REFERENCES embedding_model ON DELETE CASCADE,
  chunk  bigint NOT NULL REFERENCES chunk ON DELETE CASCADE,
  scope  int NOT NULL,
  vector vector NOT NULL,
  PRIMARY KEY (chunk, model)
);

-- Terms for BM25. A chunk's terms are written with it, as one row; in the background many such rows are gathered into a
-- segment, in which each term has all its postings side by side. Segments are only ever made and removed, never changed.
CREATE TABLE fresh_terms (
  chunk    bigint PRIMARY KEY REFERENCES chunk ON DELETE CASCADE,
  scope    int NOT NULL,
  language text COLLATE "C",
  length   int NOT NULL CHECK (length >= 0),       -- in words
  terms    jsonb NOT NULL                          -- term → how often it stands there
) WITH (toast_tuple_target = 8160);
CREATE INDEX fresh_terms_by_scope ON fresh_terms (scope, chunk);

CREATE TABLE segment (
  id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope     int NOT NULL,
  size      int NOT NULL CHECK (size > 0),         -- in chunks
  length    bigint NOT NULL,                       -- of all its chunks, in words
  languages text[] NOT NULL,
  chunks    bytea NOT NULL,                        -- their ids, eight bytes each
  CHECK (length(chunks) = 8 * size)
);
CREATE INDEX segment_by_scope ON segment (scope);
ALTER TABLE segment ALTER chunks SET STORAGE EXTERNAL;

CREATE TABLE posting (
  segment bigint NOT NULL REFERENCES segment ON DELETE CASCADE,
  term    text COLLATE "C" NOT NULL,
  data    bytea NOT NULL,                          -- chunk, its length and the count of the term, nine bytes each
  PRIMARY KEY (segment, term)
);
ALTER TABLE posting ALTER data SET STORAGE EXTERNAL;

-- Chunks that are gone and may still stand in a segment.
CREATE TABLE gone_chunk (
  chunk bigint NOT NULL,
  scope int NOT NULL,
  at    timestamptz NOT NULL DEFAULT clock()
);
CREATE INDEX gone_chunk_by_scope ON gone_chunk (scope, chunk);

CREATE FUNCTION remember_gone_chunks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO gone_chunk (chunk, scope) SELECT id, scope FROM gone;
  RETURN NULL;
END $$;
CREATE TRIGGER chunk_gone AFTER DELETE ON chunk REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION remember_gone_chunks();

-- An index over the vectors of one model. It runs where the model is made: its number and dimensions are in the index.
CREATE FUNCTION make_vector_index(model smallint, dimensions int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE INDEX IF NOT EXISTS embedding_near_%1$s ON embedding '
                 'USING hnsw ((vector::vector(%2$s)) vector_cosine_ops) WHERE model = %1$s', model, dimensions);
END $$;

CREATE FUNCTION drop_vector_models(except_model smallint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE old smallint;
BEGIN
  FOR old IN SELECT id FROM embedding_model WHERE id <> except_model LOOP
    EXECUTE format('DROP INDEX IF EXISTS embedding_near_%s', old);
    DELETE FROM embedding WHERE model = old;
    DELETE FROM embedding_model WHERE id = old;
  END LOOP;
END $$;

-- The nearest vectors of one model, by its index. The scan goes on until enough of them pass the filter: without that, a
-- narrow filter would leave few or none of the first hundred.
CREATE FUNCTION nearest(model smallint, dimensions int, query vector, scopes int[], kind text, since timestamptz, most int)
RETURNS TABLE (chunk bigint, similarity double precision) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('hnsw.ef_search', least(greatest(most, 40), 1000)::text, true),
          set_config('hnsw.iterative_scan', 'relaxed_order', true),
          set_config('hnsw.max_scan_tuples', '200000', true), set_config('hnsw.scan_mem_multiplier', '8', true);
  RETURN QUERY EXECUTE format(
    'SELECT e.chunk, 1 - (e.vector::vector(%2$s) <=> $1) FROM embedding e %3$s WHERE e.model = %1$s AND e.scope = ANY($2) '
    'ORDER BY e.vector::vector(%2$s) <=> $1 LIMIT $5', model, dimensions,
    CASE WHEN kind IS NULL AND since IS NULL THEN '' ELSE
      'JOIN chunk c ON c.id = e.chunk JOIN document d ON d.id = c.document AND ($3 IS NULL OR d.type = $3) '
      'AND ($4 IS NULL OR coalesce(d.written_at, d.added_at) >= $4)' END)
  USING query, scopes, kind, since, most;
END $$;

CREATE VIEW chunk_status AS
SELECT c.id, c.document AS document_id, c.page AS page_number, c.ordinal AS chunk_index, c.hash AS chunk_content_hash,
       c.start, c.stop, c.tokens, c.heading,
       coalesce(v.status, 'pending') AS vector_status, v.worker AS vector_worker_id, v.started_at AS vector_started_at,
       v.finished_at AS vector_completed_at, v.error AS vector_error, greatest(v.attempts - 1, 0) AS vector_retry_count,
       v.heartbeat_at AS vector_last_heartbeat,
       coalesce(g.status, 'pending') AS graphrag_status, g.worker AS graphrag_worker_id, g.started_at AS graphrag_started_at,
       g.finished_at AS graphrag_completed_at, g.error AS graphrag_error, greatest(g.attempts - 1, 0) AS graphrag_retry_count,
       g.heartbeat_at AS graphrag_last_heartbeat
  FROM chunk c
  LEFT JOIN tasks v ON v.owner = 'document:' || c.document AND v.kind = 'vector.embed'
                   AND (v.payload ->> 'page')::int = c.page AND (v.payload ->> 'ordinal')::int = c.ordinal
  LEFT JOIN tasks g ON g.owner = 'document:' || c.document AND g.kind = 'graph.build'
                   AND (g.payload ->> 'page')::int = c.page AND (g.payload ->> 'ordinal')::int = c.ordinal;

-- A page's later phases follow from its chunks, by the rules by which a group follows from its children.
CREATE VIEW page_status AS
SELECT d.id AS document_id, n.number AS page_number, p.method AS ocr_method,
       coalesce(t.status, 'pending') AS ocr_status, t.worker AS ocr_worker_id, t.started_at AS ocr_started_at,
       t.finished_at AS ocr_completed_at, t.error AS ocr_error, greatest(t.attempts - 1, 0) AS ocr_retry_count,
       t.heartbeat_at AS ocr_last_heartbeat,
       u.chunk_count,
       group_status(coalesce(s.status IN ('completed', 'skipped', 'failed'), false), u.vp, u.vr, u.vc,
                    u.vf + coalesce(s.status = 'failed', false)::int, 0, u.vx) AS vector_status,
       coalesce(s.error, u.vector_error) AS vector_error,
       group_status(coalesce(s.status IN ('completed', 'skipped'), false), u.gp, u.gr, u.gc, u.gf, 0, u.gx) AS graphrag_status, u.graphrag_error
  FROM document d
 CROSS JOIN LATERAL generate_series(1, d.pages) AS n (number)
  LEFT JOIN page p ON p.document = d.id AND p.number = n.number
  LEFT JOIN tasks t ON t.owner = 'document:' || d.id AND t.kind = 'ocr.read'
                   AND (t.payload ->> 'page')::int = n.number AND (t.payload ->> 'ordinal')::int IS NULL
  LEFT JOIN tasks s ON s.owner = 'document:' || d.id AND s.kind = 'vector.split'
                   AND (s.payload ->> 'page')::int = n.number AND (s.payload ->> 'ordinal')::int IS NULL
 CROSS JOIN LATERAL (
   SELECT count(*)::int AS chunk_count,
          count(*) FILTER (WHERE vector_status = 'pending')::int AS vp,
          count(*) FILTER (WHERE vector_status = 'processing')::int AS vr,
          count(*) FILTER (WHERE vector_status IN ('completed', 'skipped'))::int AS vc,
          count(*) FILTER (WHERE vector_status = 'failed')::int AS vf,
          count(*) FILTER (WHERE vector_status = 'cancelled')::int AS vx, min(vector_error) AS vector_error,
          count(*) FILTER (WHERE graphrag_status = 'pending')::int AS gp,
          count(*) FILTER (WHERE graphrag_status = 'processing')::int AS gr,
          count(*) FILTER (WHERE graphrag_status IN ('completed', 'skipped'))::int AS gc,
          count(*) FILTER (WHERE graphrag_status = 'failed')::int AS gf,
          count(*) FILTER (WHERE graphrag_status = 'cancelled')::int AS gx,
          min(graphrag_error) FILTER (WHERE graphrag_status = 'failed') AS graphrag_error
     FROM chunk_status c WHERE c.document_id = d.id AND c.page_number = n.number) u;
