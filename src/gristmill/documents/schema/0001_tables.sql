-- Documents: where they come from, their bytes, their pages, and how far each phase has come.
-- needs: queue

-- The bytes of documents, once for each content, in pieces that fit into memory. Bytes that arrive in many transactions have
-- no hash until the last of them is there.
CREATE TABLE blob (
  hash bytea UNIQUE CHECK (length(hash) = 32),     -- null: they are still arriving
  size bigint NOT NULL CHECK (size >= 0),
  id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY
);
CREATE TABLE blob_piece (
  blob  bigint NOT NULL REFERENCES blob ON DELETE CASCADE,
  n     int NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (blob, n)
);
ALTER TABLE blob_piece ALTER bytes SET STORAGE EXTERNAL;

-- Bytes that somebody staged and that are no document's yet. As long as a pin is there, its bytes stay. A pin is a secret: a
-- client that knows it has had the bytes in its hands.
CREATE TABLE staged_blob (
  pin  uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  blob bigint NOT NULL REFERENCES blob,
  at   timestamptz NOT NULL DEFAULT clock()
);
CREATE INDEX staged_blob_by_blob ON staged_blob (blob);

-- Which bytes a client has had in its hands, for as long as its transaction lasts: it may make documents of these bytes.
-- Functions of the owner write this table, because a client could write any setting of its session itself.
CREATE UNLOGGED TABLE claimed_blob (
  transaction xid8 NOT NULL,
  hash        bytea NOT NULL,
  PRIMARY KEY (transaction, hash)
);

-- One version of one source. Its phases are groups of tasks, which know how far they are.
CREATE TABLE document (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope        int NOT NULL REFERENCES scope,
  urn          text NOT NULL,                      -- where it comes from: file:///…, message-id:…, document:7#attachment=2
  version      int NOT NULL CHECK (version > 0),
  hash         bytea NOT NULL REFERENCES blob (hash),
  container    bigint,                             -- the mail it was attached to, the mailbox it lay in
  name         text NOT NULL,                      -- the name of its file
  type         text COLLATE "C",                   -- by content: pdf, image, markdown, mail …; null until it was opened
  title        text,
  meta         jsonb NOT NULL DEFAULT '{}',        -- what its format says of it: sender, author, subject …
  given        jsonb NOT NULL DEFAULT '{}',        -- what its source says of it: type, title, written_at, metadata
  written_at   timestamptz,                        -- the date it bears itself
  added_at     timestamptz NOT NULL DEFAULT clock(),
  completed_at timestamptz,
  pages        int,                                -- null until it was opened
  task         bigint NOT NULL,                    -- the group of all its work; 0: a program wrote it down as a whole
  opening      bigint NOT NULL,                    -- the task that opens it
  UNIQUE (scope, urn, version),
  UNIQUE (scope, id),                              -- rows that belong to a document have its scope: their keys name both
  FOREIGN KEY (container, scope) REFERENCES document (id, scope) ON DELETE CASCADE
);
CREATE INDEX document_by_container ON document (container) WHERE container IS NOT NULL;
CREATE INDEX document_by_hash ON document (hash);
CREATE INDEX document_incomplete ON document (id) WHERE completed_at IS NULL;

-- The phases that documents go through, in this order. A row here and a handler for its letter are all that a phase is: the
-- views, the seals, the progress and the commands go by these rows. They are part of the schema, and not stated by whoever
-- starts first, because commands add and list documents also where no worker has ever run.
CREATE TABLE phase_kind (
  name    text COLLATE "C" PRIMARY KEY,
  ordinal smallint NOT NULL UNIQUE,
  label   text NOT NULL,                           -- as people see it
  unit    text COLLATE "C" NOT NULL CHECK (unit IN ('page', 'chunk')),  -- no page comes after a chunk
  kind    text COLLATE "C" NOT NULL UNIQUE,        -- of the letter about one unit; the queue is the part before the dot
  shown   boolean NOT NULL DEFAULT true,           -- a hidden phase is told of as a part of the shown one behind it
  written task_status NOT NULL DEFAULT 'skipped'   -- how it is shown of documents that were written down as a whole
);
INSERT INTO phase_kind (name, ordinal, label, unit, kind, shown, written)
VALUES ('ocr', 10, 'ocr', 'page', 'ocr.read', true, 'skipped'),
       ('split', 20, 'split', 'page', 'vector.split', false, 'skipped'),
       ('vector', 30, 'vector', 'chunk', 'vector.embed', true, 'completed'),
       ('graph', 40, 'graph', 'chunk', 'graph.build', true, 'skipped');

-- The group of each phase of a document. Place, unit and visibility stand here as well: listing many documents would take half
-- as long again if they were looked up for each.
CREATE TABLE phase (
  document bigint NOT NULL,
  ordinal  smallint NOT NULL,
  name     text COLLATE "C" NOT NULL REFERENCES phase_kind,
  unit     text COLLATE "C" NOT NULL,
  shown    boolean NOT NULL,
  scope    int NOT NULL,
  task     bigint NOT NULL,
  PRIMARY KEY (document, ordinal),                 -- in this order they are listed
  FOREIGN KEY (document, scope) REFERENCES document (id, scope) ON DELETE CASCADE
);

CREATE TABLE page (
  document bigint NOT NULL,
  number   int NOT NULL CHECK (number > 0),
  scope    int NOT NULL,
  method   text COLLATE "C" NOT NULL,              -- text: it carried its text; ocr: it was read from its picture
  text     text NOT NULL,                          -- Markdown
  key      bytea NOT NULL,                         -- what it was derived from: input, code, model, parameters
  divided  bytea,                                  -- and its chunks; null until there are any
  PRIMARY KEY (document, number),
  FOREIGN KEY (document, scope) REFERENCES document (id, scope) ON DELETE CASCADE
);
ALTER TABLE page ALTER text SET STORAGE EXTERNAL;  -- to compress a page takes longer than to write it
CREATE INDEX page_by_key ON page (key);
CREATE INDEX page_divided ON page (divided) WHERE divided IS NOT NULL;

-- From a page or chunk to the task of one of its phases.
CREATE INDEX task_unit ON task (owner, kind, ((payload ->> 'page')::int), ((payload ->> 'ordinal')::int))
  WHERE owner IS NOT NULL;

-- Which parts a new version of a container has as they are: they become its own when it takes the place of the older one.
CREATE TABLE kept_part (
  container bigint NOT NULL,
  urn       text NOT NULL,                         -- of the part, whichever version of it is there then
  scope     int NOT NULL,
  PRIMARY KEY (container, urn),
  FOREIGN KEY (container, scope) REFERENCES document (id, scope) ON DELETE CASCADE
);

-- A filter of a search that leaves few documents finds them without looking at all of a scope.
CREATE INDEX document_by_type ON document (scope, type, (coalesce(written_at, added_at)));
CREATE INDEX document_by_date ON document (scope, (coalesce(written_at, added_at)));

-- How many documents there are, and how many are complete: the sum of all rows. Each change adds a row, so that no two
-- writers ever meet in one; the fold of a scope makes one row of many.
CREATE TABLE document_tally (
  scope     int NOT NULL,
  documents int NOT NULL,
  completed int NOT NULL
);
CREATE INDEX document_tally_by_scope ON document_tally (scope);
