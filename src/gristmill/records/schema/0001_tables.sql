-- Records: rows of imported tables, the imports that brought them, and the rows that were turned away.
-- needs: knowledge

-- An import is a document of the type “record”: the chunks of its records hang on that document, and go with it.
CREATE TABLE data_import (
  id               bigint PRIMARY KEY,             -- of the document
  scope            int NOT NULL,
  name             text NOT NULL,                  -- of the file
  state            text COLLATE "C" NOT NULL CHECK (state IN ('draft', 'waiting', 'loading', 'loaded', 'failed')),
  plan             jsonb NOT NULL,                 -- how its rows are read, see records.Plan
  hash             bytea NOT NULL,                 -- of the file; its bytes are dropped when all rows are loaded
  size             bigint NOT NULL,
  file_offset      bigint NOT NULL DEFAULT 0,      -- where the next row begins
  file_row         int NOT NULL DEFAULT 0,         -- the last row that was read
  loaded           int NOT NULL DEFAULT 0,
  updated          int NOT NULL DEFAULT 0,
  duplicate        int NOT NULL DEFAULT 0,
  filtered         int NOT NULL DEFAULT 0,
  invalid          int NOT NULL DEFAULT 0,
  characters       bigint NOT NULL DEFAULT 0,      -- of the texts that were loaded
  estimated_rows   int NOT NULL,
  estimated_tokens bigint NOT NULL,
  estimated_cost   float8 NOT NULL,
  tokens           bigint NOT NULL DEFAULT 0,      -- that were embedded
  cost             float8 NOT NULL DEFAULT 0,
  error            text,
  task             bigint,
  created_at       timestamptz NOT NULL DEFAULT clock(),
  finished_at      timestamptz,
  UNIQUE (id, scope),
  FOREIGN KEY (id, scope) REFERENCES document (id, scope) ON DELETE CASCADE,
  CHECK ((finished_at IS NOT NULL) = (state IN ('loaded', 'failed'))),
  CHECK ((error IS NOT NULL) = (state = 'failed'))
);
CREATE INDEX data_import_by_scope ON data_import (scope, id);

-- No foreign key leads to the import: to check it for each row would take a third of the time of a load. Every writer locks the
-- row of its import instead, and a trigger removes the records of an import that goes. The hashes are the 16 bytes of BLAKE2;
-- uuid is the type that PostgreSQL keeps such bytes in without a length, and compares fastest.
CREATE TABLE data_records (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope       int NOT NULL,
  import      bigint NOT NULL,                     -- the one that wrote it last
  row         int NOT NULL,                        -- in the file of that import
  hash        uuid NOT NULL,                       -- of the text
  whole       uuid NOT NULL,                       -- of all cells
  category    text COLLATE "C" CHECK (category IN ('TOP_10', 'BOTTOM_10')),
  external_id text COLLATE "C",
  content     text NOT NULL,
  columns     jsonb NOT NULL,                      -- the other cells, by column
  embed       boolean NOT NULL,                    -- whether it is to be found by meaning
  created_at  timestamptz NOT NULL,
  updated_at  timestamptz NOT NULL,
  chunk       bigint,                              -- null: it cannot be found yet
  trouble     text,                                -- why it cannot be found
  CHECK (chunk IS NULL OR trouble IS NULL)
);
CREATE UNIQUE INDEX data_records_by_external_id ON data_records (scope, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX data_records_by_scope ON data_records (scope, id);
CREATE INDEX data_records_by_hash ON data_records (scope, hash);
CREATE INDEX data_records_by_import ON data_records (import, row);
CREATE INDEX data_records_to_embed ON data_records (scope, id) WHERE chunk IS NULL AND embed AND trouble IS NULL;
CREATE UNIQUE INDEX data_records_by_chunk ON data_records (chunk) WHERE chunk IS NOT NULL;
-- Only records that can be found are filtered by their columns: a load does not wait for this index.
CREATE INDEX data_records_by_columns ON data_records USING gin (columns jsonb_path_ops) WHERE chunk IS NOT NULL;

-- Changed rows on their way into data_records: they are there only while their transaction lasts.
CREATE UNLOGGED TABLE data_change (
  scope       int NOT NULL,
  import      bigint NOT NULL,
  row         int NOT NULL,
  hash        uuid NOT NULL,
  whole       uuid NOT NULL,
  category    text COLLATE "C",
  external_id text COLLATE "C" NOT NULL,
  content     text NOT NULL,
  columns     jsonb NOT NULL,
  embed       boolean NOT NULL,
  created_at  timestamptz NOT NULL,
  updated_at  timestamptz NOT NULL
);

-- The first rows that became no record, so that a person can mend them.
CREATE TABLE data_rejected (
  import bigint NOT NULL,
  row    int NOT NULL,
  scope  int NOT NULL,
  why    text COLLATE "C" NOT NULL CHECK (why IN ('filtered', 'invalid', 'duplicate')),
  reason text NOT NULL,
  cells  text[] NOT NULL,
  PRIMARY KEY (import, row),
  FOREIGN KEY (import, scope) REFERENCES data_import (id, scope) ON DELETE CASCADE
);

-- The account at the provider of embeddings: one row, while it is known to be empty or its balance has been asked.
CREATE TABLE embedding_account (
  only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  balance     float8,                              -- null: the provider does not tell
  checked_at  timestamptz,
  empty_since timestamptz,                         -- null: nothing is known to be wrong
  reason      text,
  pauses      text[] NOT NULL DEFAULT '{}'         -- queues that were paused because of it
);
INSERT INTO embedding_account DEFAULT VALUES;
