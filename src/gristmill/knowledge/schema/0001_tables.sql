-- Knowledge: chunks of text, their vectors and terms, and the graph of people and things that they name.
-- needs: documents

CREATE TABLE chunk (
  id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope    int NOT NULL REFERENCES scope,
  document bigint NOT NULL,
  page     int NOT NULL,
  ordinal  int NOT NULL,                           -- its place on the page, from 0
  start    int NOT NULL CHECK (start >= 0),        -- where in the page's text it begins …
  stop     int NOT NULL,                           -- … and ends, in characters
  tokens   int NOT NULL,
  kind     text COLLATE "C" NOT NULL DEFAULT 'prose',  -- prose, table, code or log
  language text COLLATE "C",                       -- null: not known
  heading  text NOT NULL DEFAULT '',               -- the path of headings above it
  text     text NOT NULL,
  hash     bytea NOT NULL,                         -- of heading and text, as they are embedded
  UNIQUE (document, page, ordinal),
  UNIQUE (id, scope),                              -- rows that belong to a chunk have its scope: their keys name both
  FOREIGN KEY (document, scope) REFERENCES document (id, scope) ON DELETE CASCADE,
  CHECK (stop >= start)
);
CREATE INDEX chunk_by_hash ON chunk (hash);

-- The models that turn text into vectors. Search answers from the current one, also while another is being filled.
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
  chunk  bigint NOT NULL,
  scope  int NOT NULL,
  vector vector NOT NULL,
  PRIMARY KEY (chunk, model),
  FOREIGN KEY (chunk, scope) REFERENCES chunk (id, scope) ON DELETE CASCADE
);

-- Terms for BM25. A chunk's terms are written with the chunk, as one row. In the background, many such rows are gathered into
-- a segment, in which each term has all its postings side by side. Segments are made and removed, but never changed.
CREATE TABLE fresh_terms (
  chunk    bigint PRIMARY KEY,
  scope    int NOT NULL,
  language text COLLATE "C",
  length   int NOT NULL CHECK (length >= 0),       -- in words
  terms    jsonb NOT NULL,                         -- term → how often it stands there
  FOREIGN KEY (chunk, scope) REFERENCES chunk (id, scope) ON DELETE CASCADE
) WITH (toast_tuple_target = 8160);
CREATE INDEX fresh_terms_by_scope ON fresh_terms (scope, chunk);

CREATE TABLE segment (
  id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope     int NOT NULL,
  size      int NOT NULL CHECK (size > 0),         -- in chunks
  length    bigint NOT NULL,                       -- of all its chunks, in words
  languages text[] NOT NULL,
  chunks    bytea NOT NULL,                        -- their ids, eight bytes each
  UNIQUE (scope, id),
  CHECK (length(chunks) = 8 * size)
);
ALTER TABLE segment ALTER chunks SET STORAGE EXTERNAL;

CREATE TABLE posting (
  segment bigint NOT NULL,
  term    text COLLATE "C" NOT NULL,
  scope   int NOT NULL,
  data    bytea NOT NULL,                          -- chunk, its length and the count of the term, nine bytes each
  PRIMARY KEY (segment, term),
  FOREIGN KEY (segment, scope) REFERENCES segment (id, scope) ON DELETE CASCADE
);
ALTER TABLE posting ALTER data SET STORAGE EXTERNAL;

-- Deleted chunks that may still stand in a segment.
CREATE TABLE gone_chunk (
  chunk bigint NOT NULL,
  scope int NOT NULL,
  at    timestamptz NOT NULL DEFAULT clock()
);
CREATE INDEX gone_chunk_by_scope ON gone_chunk (scope, chunk);

-- The graph: the names and relations of each chunk. A node exists by its mentions, and an edge by its evidence. So neither
-- can outlive its chunks, and no two writers ever change the same row.

-- A name as people search for it: without its namespace and in small letters, by the database's own rules. It is ordered by
-- bytes, so that all names with one beginning are a range. Two indexes keep its results, so the function must never change:
-- it is part of the tables.
CREATE FUNCTION plain_name(key text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT lower(substr(key, strpos(key, '::') + 2) COLLATE "default") COLLATE "C"
$$;

-- Other names under which a node is known to a client.
CREATE TABLE alias (
  client text COLLATE "C" NOT NULL,
  alias  text COLLATE "C" NOT NULL,
  key    text COLLATE "C" NOT NULL,                -- never itself an alias
  PRIMARY KEY (client, alias),
  CHECK (alias <> key)
);
CREATE INDEX alias_by_key ON alias (client, key);

-- Nodes that somebody stated, with their properties. Nodes that are only mentioned need no row here.
CREATE TABLE entity (
  scope      int NOT NULL REFERENCES scope,
  key        text COLLATE "C" NOT NULL,
  type       text COLLATE "C" NOT NULL,
  properties jsonb NOT NULL DEFAULT '{}',
  linked     boolean NOT NULL DEFAULT false,       -- it was stated with chunks as evidence, and goes with the last of them
  PRIMARY KEY (key, scope)
);
CREATE INDEX entity_by_name ON entity (plain_name(key), scope);

CREATE TABLE mention (
  chunk      bigint NOT NULL,
  key        text COLLATE "C" NOT NULL,            -- namespace::name, normalised
  scope      int NOT NULL,                         -- of the chunk
  type       text COLLATE "C" NOT NULL,
  name       text NOT NULL,                        -- as it is written there
  count      int NOT NULL DEFAULT 1,               -- how often it was found there
  stated     boolean NOT NULL DEFAULT false,       -- somebody linked it: another extraction does not undo that
  properties jsonb NOT NULL DEFAULT '{}',
  PRIMARY KEY (chunk, key),
  FOREIGN KEY (chunk, scope) REFERENCES chunk (id, scope) ON DELETE CASCADE,
  CHECK (count > 0 OR (stated AND count = 0))
);
CREATE INDEX mention_by_key ON mention (key, scope);
CREATE INDEX mention_by_name ON mention (plain_name(key), scope);
CREATE INDEX mention_stated ON mention (chunk) WHERE stated;  -- small, because little is stated; read when a chunk goes

-- One piece of evidence: this chunk shows that `source` has this relation to `target`.
CREATE TABLE relation (
  chunk      bigint NOT NULL,
  source     text COLLATE "C" NOT NULL,
  type       text COLLATE "C" NOT NULL,
  target     text COLLATE "C" NOT NULL,
  scope      int NOT NULL,
  extracted  boolean NOT NULL,                     -- it was extracted from the text …
  stated     boolean NOT NULL DEFAULT false,       -- … or stated by somebody with this chunk as evidence, or both
  properties jsonb NOT NULL DEFAULT '{}',
  PRIMARY KEY (chunk, source, type, target),
  FOREIGN KEY (chunk, source) REFERENCES mention (chunk, key) ON DELETE CASCADE,
  FOREIGN KEY (chunk, target) REFERENCES mention (chunk, key) ON DELETE CASCADE,
  CHECK (extracted OR stated),
  CHECK (source <> target)
);
CREATE INDEX relation_by_source ON relation (source, scope);
CREATE INDEX relation_by_target ON relation (target, scope);
CREATE INDEX relation_chunk_target ON relation (chunk, target);  -- for the cascade

-- That a chunk was extracted, and from which input: for the same key, the result is reused.
CREATE TABLE extraction (
  chunk   bigint PRIMARY KEY,
  scope   int NOT NULL,
  key     bytea NOT NULL,                          -- of client, text, context, code and model
  silent  boolean,                                 -- the LLM that was asked found nothing; null: none was asked
  dropped int NOT NULL DEFAULT 0,                  -- how many of its answers do not stand in the text
  at      timestamptz NOT NULL DEFAULT clock(),
  FOREIGN KEY (chunk, scope) REFERENCES chunk (id, scope) ON DELETE CASCADE
);
CREATE INDEX extraction_by_key ON extraction (key);
CREATE INDEX extraction_by_llm ON extraction (at) WHERE silent IS NOT NULL;
