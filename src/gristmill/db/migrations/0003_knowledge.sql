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
