-- Items: what came in and what becomes of it, with its events, memory, messages, results and checkpoint.
-- needs: queue, documents, sources

-- One thing that came in: a mail with its attachments, a file, a ticket, a wish of a person, or a copy that waits for its time.
-- Every change of its state is made by move_item, which writes an event beside it.
CREATE TABLE item (
  id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope             int NOT NULL REFERENCES scope,
  type              text COLLATE "C" NOT NULL CHECK (type IN ('email', 'wiki', 'bugtracker', 'git', 'user_input', 'user_task',
                                                              'scheduled', 'link', 'meeting', 'document')),
  urn               text,                          -- of the document that it began with; null: it was not read from a document
  document          bigint,                        -- its newest document: the last version, the last mail of its thread
  message           text COLLATE "C",              -- of a mail: its message id, by which its thread is found
  title             text NOT NULL,
  text              text,                          -- its own words; null: its documents have them
  note              jsonb NOT NULL DEFAULT '{}',   -- what is known beside the text: sender, recipients, headers, fields
  state             text COLLATE "C" NOT NULL CHECK (state IN ('new', 'ready_for_qualification', 'qualifying', 'done', 'scheduled',
                      'ready_for_execution', 'dispatched', 'running', 'waiting_for_user', 'waiting_for_children', 'completed', 'error')),
  outcome           text COLLATE "C" CHECK (outcome IN ('info_only', 'handled', 'consolidated', 'scheduled', 'cancelled')),
  foreground        boolean NOT NULL DEFAULT false,  -- a person waits for it
  position          bigint,                        -- where a person put it in line
  urgency           text COLLATE "C" NOT NULL DEFAULT 'normal' CHECK (urgency IN ('low', 'normal', 'high', 'critical')),
  written_at        timestamptz NOT NULL,          -- its own date: relative dates are counted from here
  created_at        timestamptz NOT NULL DEFAULT clock(),
  changed_at        timestamptz NOT NULL DEFAULT clock(),  -- when its state changed last
  deadline          timestamptz,
  scheduled_at      timestamptz,
  cron              text,
  zone              text NOT NULL DEFAULT 'UTC',
  parent            bigint,                        -- the item that was decomposed into this one and others
  origin            bigint,                        -- the item that this one is a copy of
  merged_into       bigint,                        -- the open item about the same thing
  added_by          text,                          -- the person or program that added it
  warning           text,
  error             text,
  question          text,
  task              bigint,                        -- the task that decides it or runs it
  decision          bigint,                        -- the last one
  step              int NOT NULL DEFAULT 0,        -- one more with each change of state: a writer that was overtaken writes nothing
  run               int NOT NULL DEFAULT 0,        -- how often an executor has begun it
  started_at        timestamptz,                   -- when the last run began
  heard             bigint NOT NULL DEFAULT 0,     -- the last message that the last run knew
  dispatch_failures int NOT NULL DEFAULT 0,        -- in a row
  UNIQUE (scope, id),                              -- rows that belong to an item have its scope: their keys name both
  FOREIGN KEY (parent, scope) REFERENCES item (id, scope) ON DELETE CASCADE,
  FOREIGN KEY (origin, scope) REFERENCES item (id, scope) ON DELETE CASCADE,
  CHECK ((outcome IS NOT NULL) = (state = 'done')),
  CHECK ((error IS NOT NULL) = (state = 'error')),
  CHECK ((question IS NOT NULL) = (state = 'waiting_for_user')),
  CHECK (state <> 'scheduled' OR scheduled_at IS NOT NULL),
  CHECK (state NOT IN ('dispatched', 'running') OR task IS NOT NULL),
  CHECK (state <> 'running' OR started_at IS NOT NULL AND run > 0),
  CHECK (cron IS NULL OR type = 'scheduled')
) WITH (fillfactor = 70);
CREATE INDEX item_by_state ON item (state, id);
CREATE INDEX item_of_scope ON item (scope, state, id);
-- the order in which they are executed: where people put them, then urgent ones, then by age
CREATE INDEX item_in_line ON item
    (position, foreground DESC, (CASE urgency WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'normal' THEN 2 ELSE 3 END), task, id)
  WHERE state = 'ready_for_execution';
CREATE INDEX item_due ON item (scheduled_at) WHERE state = 'scheduled';
CREATE INDEX item_at_work ON item (changed_at)
  WHERE state IN ('new', 'ready_for_qualification', 'qualifying', 'ready_for_execution', 'dispatched', 'running');
CREATE INDEX item_by_message ON item (scope, message) WHERE message IS NOT NULL;
CREATE INDEX item_by_parent ON item (parent) WHERE parent IS NOT NULL;
CREATE INDEX item_by_origin ON item (origin) WHERE origin IS NOT NULL;
CREATE INDEX item_merged ON item (merged_into) WHERE merged_into IS NOT NULL;

-- Which item a source belongs to: the document that the item began with, and mails of the same thread that came later.
CREATE TABLE item_source (
  scope int NOT NULL,
  urn   text NOT NULL,
  item  bigint NOT NULL,
  known text,                                      -- the documents, and how many pages of each, that the last decision knew
  PRIMARY KEY (scope, urn),
  FOREIGN KEY (item, scope) REFERENCES item (id, scope) ON DELETE CASCADE
);
CREATE INDEX item_source_by_item ON item_source (item);

-- Mails that we sent ourselves: an item of the same thread that is older has been handled.
CREATE TABLE sent_mail (
  scope      int NOT NULL REFERENCES scope,
  urn        text NOT NULL,
  message    text COLLATE "C" NOT NULL,
  written_at timestamptz NOT NULL,
  PRIMARY KEY (scope, urn)
);
CREATE INDEX sent_mail_by_message ON sent_mail (scope, message);

-- What happened to an item: when, from which state to which, why, and by what or whom.
CREATE TABLE item_event (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  item    bigint NOT NULL,
  scope   int NOT NULL,
  at      timestamptz NOT NULL DEFAULT clock(),
  was     text COLLATE "C",                        -- null: it began
  state   text COLLATE "C" NOT NULL,
  outcome text COLLATE "C",
  why     text NOT NULL,
  by      text NOT NULL,
  task    bigint,
  FOREIGN KEY (item, scope) REFERENCES item (id, scope) ON DELETE CASCADE
);
CREATE INDEX item_event_by_item ON item_event (item, id);

-- What the qualifier hands to whatever executes an item.
CREATE TABLE item_memory (
  item      bigint PRIMARY KEY,
  scope     int NOT NULL,
  summary   text NOT NULL,
  node_keys text[] NOT NULL DEFAULT '{}',
  chunks    bigint[] NOT NULL DEFAULT '{}',
  data      jsonb NOT NULL DEFAULT '{}',
  routing   text COLLATE "C" NOT NULL,             -- the decision in one word: info_only, now …
  reason    text NOT NULL,
  source    text COLLATE "C",                      -- the type of its source: email, git …
  source_id text,                                  -- and its id there: the URN
  saved_at  timestamptz NOT NULL DEFAULT clock(),
  FOREIGN KEY (item, scope) REFERENCES item (id, scope) ON DELETE CASCADE
);

-- What was said to an item, by people, by mails of its thread, by items that were consolidated into it, and by its executor.
CREATE TABLE item_message (
  id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  item     bigint NOT NULL,
  scope    int NOT NULL,
  at       timestamptz NOT NULL DEFAULT clock(),
  kind     text COLLATE "C" NOT NULL CHECK (kind IN ('user', 'mail', 'item', 'question', 'answer')),
  by       text NOT NULL,
  text     text NOT NULL,
  document bigint,                                 -- of a mail
  FOREIGN KEY (item, scope) REFERENCES item (id, scope) ON DELETE CASCADE
);
CREATE INDEX item_message_by_item ON item_message (item, id);

-- Numbers that an item is about: an invoice, an order, an issue. An open item with the same number is about the same thing.
CREATE TABLE item_identifier (
  scope int NOT NULL,
  kind  text COLLATE "C" NOT NULL,
  value text COLLATE "C" NOT NULL,
  item  bigint NOT NULL,
  PRIMARY KEY (scope, kind, value, item),
  FOREIGN KEY (item, scope) REFERENCES item (id, scope) ON DELETE CASCADE
);
CREATE INDEX item_identifier_by_item ON item_identifier (item);

-- How far an executor is with an item: a run that was interrupted goes on from here.
CREATE TABLE item_checkpoint (
  item  bigint PRIMARY KEY,
  scope int NOT NULL,
  run   int NOT NULL,                              -- that wrote it
  at    timestamptz NOT NULL DEFAULT clock(),
  done  int NOT NULL,                              -- steps
  data  jsonb NOT NULL,
  FOREIGN KEY (item, scope) REFERENCES item (id, scope) ON DELETE CASCADE
);

-- What an executor made of an item, one row for each run that came to its end.
CREATE TABLE item_result (
  item      bigint NOT NULL,
  run       int NOT NULL,
  scope     int NOT NULL,
  at        timestamptz NOT NULL DEFAULT clock(),
  by        text NOT NULL,                         -- the executor, and the model that it asked
  summary   text NOT NULL,
  reply     text,                                  -- a draft
  asked     jsonb NOT NULL DEFAULT '[]',           -- what is asked, each with its citation
  citations jsonb NOT NULL DEFAULT '[]',           -- document, page, start, stop, words
  PRIMARY KEY (item, run),
  FOREIGN KEY (item, scope) REFERENCES item (id, scope) ON DELETE CASCADE
);

-- How many items of each scope are in each state: the sum of all rows. Each change adds rows, so that no two writers meet in
-- one; the fold of a scope makes one row of many.
CREATE TABLE item_tally (
  scope      int NOT NULL,
  state      text COLLATE "C" NOT NULL,
  outcome    text COLLATE "C" NOT NULL,            -- '': none
  foreground boolean NOT NULL,
  n          int NOT NULL
);
CREATE INDEX item_tally_by_scope ON item_tally (scope);

-- When a person last asked for something, and of which process: background work waits until nobody has asked for a while.
CREATE UNLOGGED TABLE person_request (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  at  timestamptz NOT NULL,
  by  text NOT NULL
) WITH (fillfactor = 50);

-- Whether the executor takes work: after some failures in a row nobody asks it for a while.
CREATE TABLE executor_health (
  name      text COLLATE "C" PRIMARY KEY,
  failures  int NOT NULL DEFAULT 0,                -- in a row
  opened_at timestamptz,                           -- when the breaker opened; null: it is closed
  probed_at timestamptz,                           -- when somebody last tried while it was open
  error     text,
  CHECK (opened_at IS NULL OR failures > 0)
) WITH (fillfactor = 50);

-- Up to when the sweep has looked for documents that could not be read.
CREATE TABLE item_sweep (
  one  boolean PRIMARY KEY DEFAULT true CHECK (one),
  mark timestamptz NOT NULL
);
