-- Sources: where items come from by themselves, the items that came, and their bytes until they are handed on.
-- needs: queue, documents

-- A place outside that is polled. Its options hold no secrets, only references to them (env:NAME, file:/path).
CREATE TABLE source (
  id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope         int NOT NULL REFERENCES scope,
  name          text NOT NULL CHECK (length(name) BETWEEN 1 AND 63),
  kind          text COLLATE "C" NOT NULL,
  options       jsonb NOT NULL,
  declared      boolean NOT NULL DEFAULT false,    -- gristmill.toml names it
  paused        boolean NOT NULL DEFAULT false,
  every         interval NOT NULL CHECK (every > '0'),
  listing_every interval NOT NULL CHECK (listing_every > '0'),
  checkpoint    jsonb,                             -- where the next poll begins; null: at the beginning
  step          bigint NOT NULL DEFAULT 0,         -- one more with each checkpoint: a poller that was overtaken writes nothing
  created_at    timestamptz NOT NULL DEFAULT clock(),
  expected_from timestamptz NOT NULL DEFAULT clock(),  -- since when it ought to succeed: it was added or resumed
  polled_at     timestamptz,                       -- when a poll last began
  succeeded_at  timestamptz,                       -- when one last reached the end
  failures      int NOT NULL DEFAULT 0,            -- in a row
  error         text,                              -- of the last poll, if it failed
  waits_until   timestamptz,                       -- the other side, or a limiter of ours, said when to come again …
  waits_for     text,                              -- … and this is who
  listed_at     timestamptz,                       -- when all ids were last compared
  listing       jsonb,                             -- what that comparison found
  UNIQUE (scope, name),
  UNIQUE (scope, id),                              -- rows that belong to a source have its scope: their keys name both
  CHECK ((waits_until IS NULL) = (waits_for IS NULL)),
  CHECK ((failures > 0) = (error IS NOT NULL))
);

-- Something that a source has, or had: one row for each id there.
CREATE TABLE source_item (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  source     bigint NOT NULL,
  scope      int NOT NULL,
  external   text COLLATE "C" NOT NULL,            -- its id there: INBOX;7;4711, notes/a.eml, 3f2a…
  mark       text COLLATE "C",                     -- what the listing says of its version, if it says anything
  hash       bytea,                                -- of its bytes; null: they could not be had
  size       bigint NOT NULL DEFAULT 0,
  note       jsonb NOT NULL DEFAULT '{}',          -- what the poller knows of it beside its bytes: folder, branches
  version    int NOT NULL DEFAULT 1,               -- one more each time its bytes change
  state      text COLLATE "C" NOT NULL CHECK (state IN ('NEW', 'INDEXING', 'INDEXED', 'SET_ASIDE', 'DELETED')),
  type       text COLLATE "C" CHECK (type IN ('email', 'wiki', 'bugtracker', 'git', 'user_input', 'user_task', 'scheduled',
                                              'link', 'meeting')),  -- known when it is indexed
  urn        text,                                 -- as its document has it; known when it is indexed
  digest     bytea,                                -- of what makes it the same thing elsewhere: a mail in two folders
  thread     text,                                 -- of a mail
  sent       boolean NOT NULL DEFAULT false,       -- we wrote it ourselves: it is indexed, and never a task
  document   bigint,                               -- the newest one that was made of it
  title      text,
  error      text,                                 -- why it was set aside
  removed    jsonb,                                -- what went with it when it was deleted
  first_at   timestamptz NOT NULL DEFAULT clock(),
  changed_at timestamptz NOT NULL DEFAULT clock(),
  UNIQUE (source, external),
  UNIQUE (scope, id),
  FOREIGN KEY (source, scope) REFERENCES source (id, scope) ON DELETE CASCADE,
  CHECK ((error IS NOT NULL) = (state = 'SET_ASIDE')),
  CHECK (state <> 'INDEXED' OR urn IS NOT NULL)
) WITH (fillfactor = 80);
CREATE INDEX source_item_by_urn ON source_item (scope, urn) WHERE urn IS NOT NULL AND state <> 'DELETED';
CREATE INDEX source_item_by_thread ON source_item (scope, thread) WHERE thread IS NOT NULL;
CREATE INDEX source_item_by_state ON source_item (source, state, id) WHERE state <> 'INDEXED';

-- The bytes of items that wait for the indexer, or that it set aside; gone when an item is indexed: its document has them.
CREATE TABLE source_raw (
  item  bigint NOT NULL,
  n     int NOT NULL,
  scope int NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (item, n),
  FOREIGN KEY (item, scope) REFERENCES source_item (id, scope) ON DELETE CASCADE
);
ALTER TABLE source_raw ALTER bytes SET STORAGE EXTERNAL;

-- How many items each source has in each state: the sum of all rows. Each change adds a row, so that no two writers meet in
-- one; the end of a poll makes one row of many.
CREATE TABLE source_tally (
  source bigint NOT NULL,
  scope  int NOT NULL,
  state  text COLLATE "C" NOT NULL,
  n      int NOT NULL
);
CREATE INDEX source_tally_by_source ON source_tally (source);

-- Which thread a message belongs to, also one that nobody has yet but others answer. A thread is named by the least of its ids,
-- so that its name does not depend on the order in which mails come.
CREATE TABLE mail_thread (
  scope   int NOT NULL REFERENCES scope,
  message text COLLATE "C" NOT NULL,
  thread  text COLLATE "C" NOT NULL,
  PRIMARY KEY (scope, message)
);
CREATE INDEX mail_thread_by_name ON mail_thread (scope, thread);
