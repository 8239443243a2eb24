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
  task         bigint NOT NULL,                    -- the group of all its work
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

CREATE VIEW phase_progress AS
SELECT p.document, p.name AS phase, p.ordinal, p.task,
       CASE WHEN g.status = 'completed' AND g.skipped > 0 AND g.completed = 0 THEN 'skipped' ELSE g.status END AS status,
       g.pending, g.processing, g.completed, g.failed, g.skipped, g.cancelled,
       g.pending + g.processing + g.completed + g.failed + g.skipped + g.cancelled AS total, g.finished_at
  FROM phase p JOIN task_group g ON g.id = p.task;

-- How far each document is: from counters, so that listing many is cheap. What needs a look at single tasks (errors,
-- times, workers) is computed only for those who select it. OFFSET 0: by itself, the planner would count the phases of all
-- documents to show those of a few.
CREATE VIEW document_progress AS
SELECT d.id, d.name AS filename, c.client, c.project, d.urn, d.version, d.type, d.title, d.container, d.added_at, d.completed_at,
       CASE WHEN d.completed_at IS NOT NULL THEN 'completed'
            WHEN o.outcome = 'failed' THEN 'failed'
            WHEN a.processing > 0 THEN 'processing'
            WHEN o.outcome IS NULL THEN CASE WHEN k.worker IS NULL THEN 'pending' ELSE 'processing' END
            WHEN a.pending > 0 THEN CASE WHEN r.completed + r.skipped > 0 THEN 'processing' ELSE 'pending' END
            WHEN a.failed > 0 THEN 'failed'
            WHEN a.cancelled > 0 OR o.outcome = 'cancelled' THEN 'cancelled'
            ELSE 'processing' END::task_status AS status,
       d.pages AS total_pages,
       CASE WHEN o.outcome = 'failed' THEN 'failed' WHEN o.outcome IS NULL AND k.worker IS NOT NULL THEN 'processing'
            ELSE r.status END AS ocr_status,
       r.completed + r.skipped AS ocr_completed_pages, r.failed AS ocr_failed_pages,
       CASE WHEN s.failed > 0 AND v.pending + v.processing = 0 THEN 'failed' ELSE v.status END AS vector_index_status,
       v.total AS total_chunks,
       v.completed + v.skipped AS vector_completed_chunks, v.failed AS vector_failed_chunks,
       g.status AS graphrag_index_status, g.completed + g.skipped AS graphrag_completed_chunks, g.failed AS graphrag_failed_chunks,
       (SELECT min(coalesce(x.claimed_at, t.started_at)) FROM task t LEFT JOIN ticket x USING (id) WHERE t.parent = r.task) AS ocr_started_at,
       r.finished_at AS ocr_completed_at,
       coalesce(CASE WHEN o.outcome = 'failed' THEN o.error END,
                (SELECT t.error FROM task t WHERE t.parent = r.task AND t.outcome = 'failed' ORDER BY t.id LIMIT 1)) AS ocr_error,
       (SELECT min(coalesce(x.claimed_at, t.started_at)) FROM task t LEFT JOIN ticket x USING (id) WHERE t.parent = v.task) AS vector_started_at,
       v.finished_at AS vector_completed_at,
       (SELECT t.error FROM task t WHERE t.parent IN (s.task, v.task) AND t.outcome = 'failed' ORDER BY t.id LIMIT 1) AS vector_error,
       (SELECT min(coalesce(x.claimed_at, t.started_at)) FROM task t LEFT JOIN ticket x USING (id) WHERE t.parent = g.task) AS graphrag_started_at,
       g.finished_at AS graphrag_completed_at,
       (SELECT t.error FROM task t WHERE t.parent = g.task AND t.outcome = 'failed' ORDER BY t.id LIMIT 1) AS graphrag_error,
       (SELECT w.name FROM task t JOIN ticket x USING (id) JOIN worker w ON w.id = x.worker
         WHERE t.owner = 'document:' || d.id ORDER BY x.claimed_at DESC LIMIT 1) AS current_worker_id,
       (SELECT max(w.heartbeat_at) FROM task t JOIN ticket x USING (id) JOIN worker w ON w.id = x.worker
         WHERE t.owner = 'document:' || d.id) AS last_heartbeat,
       d.scope
  FROM document d
  JOIN scope c ON c.id = d.scope
  JOIN task o ON o.id = d.opening
  LEFT JOIN ticket k ON k.id = d.opening
  CROSS JOIN LATERAL (SELECT * FROM phase_progress WHERE document = d.id AND phase = 'ocr' OFFSET 0) r
  CROSS JOIN LATERAL (SELECT * FROM phase_progress WHERE document = d.id AND phase = 'split' OFFSET 0) s
  CROSS JOIN LATERAL (SELECT * FROM phase_progress WHERE document = d.id AND phase = 'vector' OFFSET 0) v
  CROSS JOIN LATERAL (SELECT * FROM phase_progress WHERE document = d.id AND phase = 'graph' OFFSET 0) g
  CROSS JOIN LATERAL (SELECT sum(pending) AS pending, sum(processing) AS processing, sum(failed) AS failed, sum(cancelled) AS cancelled
                        FROM phase p JOIN task_group x ON x.id = p.task WHERE p.document = d.id) a;
