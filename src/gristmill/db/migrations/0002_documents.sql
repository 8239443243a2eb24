-- Documents: where they come from, their bytes, their pages, and how far each phase has come.

-- Whose knowledge it is. The empty client is GLOBAL; the empty project is the client as a whole.
CREATE TABLE scope (
  id      int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  client  text COLLATE "C" NOT NULL DEFAULT '',
  project text COLLATE "C" NOT NULL DEFAULT '',
  UNIQUE (client, project),
  CHECK (project = '' OR client <> '')
);

-- The bytes of documents, once for each content, in pieces that fit into memory.
CREATE TABLE blob (
  hash bytea PRIMARY KEY CHECK (length(hash) = 32),
  size bigint NOT NULL CHECK (size >= 0)
);
CREATE TABLE blob_piece (
  hash  bytea NOT NULL REFERENCES blob ON DELETE CASCADE,
  n     int NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (hash, n)
);
ALTER TABLE blob_piece ALTER bytes SET STORAGE EXTERNAL;

-- One version of one source. Its phases are groups of tasks, which know how far they are.
CREATE TABLE document (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope        int NOT NULL REFERENCES scope,
  urn          text NOT NULL,                      -- where it comes from: file:///…, message-id:…, document:7#attachment=2
  version      int NOT NULL CHECK (version > 0),
  hash         bytea NOT NULL REFERENCES blob,
  container    bigint REFERENCES document ON DELETE CASCADE,  -- the mail it was attached to, the mailbox it lay in
  name         text NOT NULL,                      -- the name of its file
  type         text COLLATE "C",                   -- by content: pdf, image, markdown, mail …; null until it was opened
  title        text,
  meta         jsonb NOT NULL DEFAULT '{}',        -- what its format says of it: sender, author, subject …
  written_at   timestamptz,                        -- the date it bears itself
  added_at     timestamptz NOT NULL DEFAULT clock(),
  completed_at timestamptz,
  pages        int,                                -- null until it was opened
  task         bigint NOT NULL,                    -- the group of all its work; 0: it was written down as a whole, not read
  opening      bigint NOT NULL,                    -- the task that opens it
  UNIQUE (scope, urn, version)
);
CREATE INDEX document_by_container ON document (container) WHERE container IS NOT NULL;
CREATE INDEX document_by_hash ON document (hash);
CREATE INDEX document_by_scope ON document (scope, id);
CREATE INDEX document_incomplete ON document (id) WHERE completed_at IS NULL;

-- The group of each phase of a document. A new phase is a new row, not a new column.
CREATE TABLE phase (
  document bigint NOT NULL REFERENCES document ON DELETE CASCADE,
  name     text COLLATE "C" NOT NULL,
  ordinal  smallint NOT NULL,
  task     bigint NOT NULL,
  PRIMARY KEY (document, name)
);

CREATE TABLE page (
  document bigint NOT NULL REFERENCES document ON DELETE CASCADE,
  number   int NOT NULL CHECK (number > 0),
  method   text COLLATE "C" NOT NULL,              -- text: it carried its text; ocr: it was read from its picture
  text     text NOT NULL,                          -- Markdown
  key      bytea NOT NULL,                         -- what it was derived from: input, code, model, parameters
  divided  bytea,                                  -- and its chunks; null until there are any
  PRIMARY KEY (document, number)
);
CREATE INDEX page_by_key ON page (key);
CREATE INDEX page_divided ON page (divided) WHERE divided IS NOT NULL;

-- From a page or chunk to the task of one of its phases.
CREATE INDEX task_unit ON task (owner, kind, ((payload ->> 'page')::int), ((payload ->> 'ordinal')::int))
  WHERE owner IS NOT NULL;
DROP INDEX task_owner;  -- this one begins with the owner, too

CREATE VIEW phase_progress AS
SELECT p.document, p.name AS phase, p.ordinal, p.task,
       CASE WHEN g.status = 'completed' AND g.skipped > 0 AND g.completed = 0 THEN 'skipped' ELSE g.status END AS status,
       g.pending, g.processing, g.completed, g.failed, g.skipped, g.cancelled,
       g.pending + g.processing + g.completed + g.failed + g.skipped + g.cancelled AS total, g.finished_at
  FROM phase p JOIN task_group g ON g.id = p.task;
