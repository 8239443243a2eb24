-- The queue: tasks, their places in line, groups, limits, workers and schedules.
-- needs: scopes

CREATE TYPE task_status AS ENUM ('pending', 'processing', 'completed', 'failed', 'skipped', 'cancelled');
CREATE TYPE task_wait AS ENUM ('time', 'after', 'serial', 'children');

-- Ids and places in line come from one sequence, so that both grow with time.
CREATE SEQUENCE task_id;

-- A task is what was asked for and what became of it. Between the two it is touched by nobody: who runs it is
-- written on its ticket. No index holds a column that finishing changes, and every page keeps room for the second
-- version, so that finishing a task is one heap-only update.
CREATE TABLE task (
  id           bigint PRIMARY KEY,
  created_at   timestamptz NOT NULL,
  run_at       timestamptz,
  started_at   timestamptz,
  finished_at  timestamptz,
  died_at      timestamptz,
  parent       bigint,
  after        bigint,
  position     bigint,
  unique_until timestamptz,
  worker       int,
  scope        int NOT NULL DEFAULT 1,             -- whose task it is; 1 is GLOBAL
  lane         int NOT NULL,
  priority     smallint NOT NULL DEFAULT 0,
  attempts     int NOT NULL DEFAULT 0,             -- a queue that never gives up tries for years
  max_attempts int,                                -- null: as the queue says
  outcome      task_status,                        -- null: still open
  wait         task_wait,                          -- null: closed, or it has a ticket
  foreground   boolean NOT NULL DEFAULT false,
  awaited      boolean NOT NULL DEFAULT false,     -- some other task comes after this one
  unique_held  boolean,
  queue        text COLLATE "C",
  kind         text COLLATE "C" NOT NULL,
  serial_key   text COLLATE "C",
  unique_key   text COLLATE "C",
  owner        text COLLATE "C",                   -- it lives as long as its owner, not as long as the queue keeps tasks
  payload      jsonb,
  result       jsonb,
  error        text,
  fingerprint  text COLLATE "C",
  CHECK (outcome NOT IN ('pending', 'processing')),
  CHECK ((outcome IS NULL) = (finished_at IS NULL)),
  CHECK ((died_at IS NOT NULL) = (outcome IS NOT DISTINCT FROM 'failed' AND queue IS NOT NULL)),
  CHECK (wait IS NULL OR outcome IS NULL),
  CHECK ((queue IS NULL) = (kind = 'group'))
) WITH (fillfactor = 45, toast_tuple_target = 256,
        autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.1);
CREATE INDEX task_by_queue ON task (queue, id);
CREATE INDEX task_due ON task (run_at) WHERE wait = 'time';
CREATE INDEX task_blocked ON task (after) WHERE wait = 'after';
CREATE INDEX task_in_series ON task (serial_key, scope, lane, id) WHERE wait = 'serial';
CREATE INDEX task_children ON task (parent) WHERE parent IS NOT NULL;
CREATE INDEX task_dead ON task (died_at) WHERE died_at IS NOT NULL;
CREATE UNIQUE INDEX task_unique ON task (unique_key, scope) WHERE unique_held;

-- A ticket is a task's place in line, and says which worker holds it. Only tasks that may run now have one.
CREATE TABLE ticket (
  id         bigint PRIMARY KEY,
  seq        bigint NOT NULL,
  claimed_at timestamptz,
  lane       int NOT NULL,
  worker     int,
  lease      bigint,                                -- the worker's own number of the claim: with worker, the fencing token
  attempts   int NOT NULL DEFAULT 0,
  suspect    boolean NOT NULL DEFAULT false,       -- it ran when a worker died: run it alone
  cancel     boolean NOT NULL DEFAULT false,
  queue      text COLLATE "C" NOT NULL,
  CHECK ((worker IS NULL) = (lease IS NULL)),
  CHECK ((worker IS NULL) = (claimed_at IS NULL))
) WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0.1);
-- No index holds a column that claiming changes, and every page keeps room for the second version: a claim is a heap-only
-- update. Leased tickets are found through the table `lease`.
CREATE INDEX ticket_ready ON ticket (queue, lane, seq, id) WHERE NOT suspect;
CREATE INDEX ticket_suspect ON ticket (queue, lane, seq, id) WHERE suspect;

-- The tasks that one claim of a worker took. It is written with the claim, and deleted some time after all of them are
-- settled: every leased ticket stands in one of these rows, and a row may also name tasks that were settled since.
CREATE TABLE lease (
  worker int NOT NULL,
  number bigint NOT NULL,                          -- the worker's own number of the claim
  queues text[] COLLATE "C" NOT NULL,              -- the queues that the claim asked for
  tasks  bigint[] NOT NULL,
  PRIMARY KEY (worker, number)
) WITH (toast_tuple_target = 8160, autovacuum_vacuum_cost_delay = 0);  -- a batch of ids stays on its page

-- Counters of a group, changed in the transaction of the child that moved.
CREATE TABLE task_group (
  id          bigint PRIMARY KEY,
  parent      bigint,
  finished_at timestamptz,
  scope       int NOT NULL DEFAULT 1,
  pending     int NOT NULL DEFAULT 0 CHECK (pending >= 0),
  processing  int NOT NULL DEFAULT 0 CHECK (processing >= 0),
  completed   int NOT NULL DEFAULT 0 CHECK (completed >= 0),
  failed      int NOT NULL DEFAULT 0 CHECK (failed >= 0),
  skipped     int NOT NULL DEFAULT 0 CHECK (skipped >= 0),
  cancelled   int NOT NULL DEFAULT 0 CHECK (cancelled >= 0),
  sealed      boolean NOT NULL DEFAULT false,
  status      task_status NOT NULL DEFAULT 'pending'
) WITH (fillfactor = 30, autovacuum_vacuum_cost_delay = 0);

-- The task whose turn it is within each serial key of each scope: clients never wait for each other.
CREATE TABLE serial_head (
  key   text COLLATE "C" NOT NULL,
  scope int NOT NULL,
  task  bigint NOT NULL UNIQUE,
  PRIMARY KEY (key, scope)
) WITH (fillfactor = 50);

CREATE TABLE queue (
  name              text COLLATE "C" PRIMARY KEY CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
  paused            boolean NOT NULL DEFAULT false,
  concurrency       int CHECK (concurrency > 0),
  rate_count        int CHECK (rate_count > 0),
  rate_period       interval CHECK (rate_period > '0'),
  max_attempts      int DEFAULT 3 CHECK (max_attempts > 0),            -- null: never give up
  retry_base        interval NOT NULL DEFAULT '10 s',
  retry_cap         interval NOT NULL DEFAULT '5 min',
  retries_first     boolean NOT NULL DEFAULT false,
  timeout           interval NOT NULL DEFAULT '300 s' CHECK (timeout > '0'),
  clear_payload     boolean NOT NULL DEFAULT false,
  keep_for          interval,                                               -- null: as the settings say
  keep              int CHECK (keep >= 0),
  breaker_threshold real DEFAULT 0.3 CHECK (breaker_threshold > 0 AND breaker_threshold <= 1),  -- null: no breaker
  breaker_window    interval NOT NULL DEFAULT '60 s',
  breaker_minimum   int NOT NULL DEFAULT 20 CHECK (breaker_minimum > 0),
  breaker_reset     interval NOT NULL DEFAULT '5 min',
  breaker_state     text NOT NULL DEFAULT 'closed' CHECK (breaker_state IN ('closed', 'open', 'half-open')),
  breaker_since     timestamptz,
  breaker_reason    text,
  recent_at         timestamptz[] NOT NULL DEFAULT '{}',                    -- the starts within the rate period …
  recent_n          int[] NOT NULL DEFAULT '{}',                            -- … and how many at each
  CHECK ((rate_count IS NULL) = (rate_period IS NULL))
) WITH (fillfactor = 50);

-- What became of the tasks of a queue, counted in the transaction that settles them: for each scope, and for each worker a
-- row of its own, so that no worker waits for another.
CREATE TABLE queue_tally (
  queue     text COLLATE "C" NOT NULL,
  scope     int NOT NULL DEFAULT 1,
  worker    int NOT NULL,
  completed bigint NOT NULL DEFAULT 0,
  failed    bigint NOT NULL DEFAULT 0,
  skipped   bigint NOT NULL DEFAULT 0,
  cancelled bigint NOT NULL DEFAULT 0,
  retried   bigint NOT NULL DEFAULT 0,
  prunable  bigint NOT NULL DEFAULT 0,             -- finished tasks that retention may delete, less those it did
  PRIMARY KEY (queue, scope, worker)
) WITH (fillfactor = 30);

-- Up to which task the janitor has looked through each queue ('': the groups); whoever holds the row is the one that cleans.
CREATE TABLE sweep (
  queue text COLLATE "C" PRIMARY KEY,
  mark  bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- Errors over time, for the breakers.
CREATE TABLE queue_health (
  queue  text COLLATE "C" NOT NULL,
  bucket timestamptz NOT NULL,
  ok     int NOT NULL DEFAULT 0,
  failed int NOT NULL DEFAULT 0,
  timed_out int NOT NULL DEFAULT 0,
  PRIMARY KEY (queue, bucket)
);

-- Named limiters that handlers take from before they call the outside. Those that only handlers made are removed when no
-- handler takes from them any more; those that people set stay.
CREATE TABLE limiter (
  name        text COLLATE "C" PRIMARY KEY,
  concurrency int CHECK (concurrency > 0),
  rate_count  int CHECK (rate_count > 0),
  rate_period interval CHECK (rate_period > '0'),
  gap_min     interval NOT NULL DEFAULT '0' CHECK (gap_min >= '0'),
  gap_max     interval NOT NULL DEFAULT '0',
  next_at     timestamptz,
  recent_at   timestamptz[] NOT NULL DEFAULT '{}',
  recent_n    int[] NOT NULL DEFAULT '{}',
  configured  boolean NOT NULL DEFAULT false,      -- a person set it
  used_at     timestamptz NOT NULL DEFAULT clock(),
  CHECK (gap_max >= gap_min),
  CHECK ((rate_count IS NULL) = (rate_period IS NULL))
) WITH (fillfactor = 50);
CREATE TABLE limiter_hold (
  id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  limiter  text COLLATE "C" NOT NULL REFERENCES limiter ON DELETE CASCADE,
  worker   int,
  until    timestamptz NOT NULL
);
CREATE INDEX limiter_hold_by_limiter ON limiter_hold (limiter);

-- A worker lives as long as its heartbeat; its leases live as long as it does.
CREATE TABLE worker (
  id           int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name         text NOT NULL,
  process      text NOT NULL,                      -- machine, pid and start: whether it is gone can be seen on its machine
  journal      text NOT NULL DEFAULT '',           -- the file in which its machine finds the tasks that it had begun
  queues       text[] NOT NULL,
  concurrency  int NOT NULL,
  solo         boolean NOT NULL DEFAULT false,
  state        text NOT NULL DEFAULT 'live' CHECK (state IN ('live', 'stopping', 'stopped', 'lost')),
  lease_for    interval NOT NULL,
  started_at   timestamptz NOT NULL DEFAULT clock(),
  heartbeat_at timestamptz NOT NULL DEFAULT clock()
) WITH (fillfactor = 50);
CREATE TABLE task_progress (
  task    bigint PRIMARY KEY,
  scope   int NOT NULL,
  at      timestamptz NOT NULL,
  current bigint NOT NULL,
  total   bigint,
  message text
) WITH (fillfactor = 50);

-- Every failure of every attempt.
CREATE TABLE task_failure (
  task        bigint NOT NULL,
  scope       int NOT NULL,
  attempt     int NOT NULL,
  at          timestamptz NOT NULL,
  worker      int,
  error       text NOT NULL,
  fingerprint text COLLATE "C" NOT NULL
);
CREATE INDEX task_failure_by_task ON task_failure (task);

CREATE TABLE schedule (
  name        text NOT NULL CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
  kind        text NOT NULL,
  queue       text NOT NULL,
  scope       int NOT NULL DEFAULT 1,              -- whose tasks it sends
  payload     jsonb NOT NULL,
  cron        text,
  zone        text NOT NULL DEFAULT 'UTC',
  once_at     timestamptz,
  follows     text,                                -- another schedule of the same scope
  delay       interval,
  enabled     boolean NOT NULL DEFAULT true,
  next_at     timestamptz,
  last_at     timestamptz,
  last_task   bigint,
  created_at  timestamptz NOT NULL DEFAULT clock(),
  PRIMARY KEY (scope, name),
  FOREIGN KEY (scope, follows) REFERENCES schedule (scope, name) ON DELETE CASCADE,
  CHECK (num_nonnulls(cron, once_at, follows) = 1),
  CHECK ((follows IS NULL) = (delay IS NULL))
);
CREATE INDEX schedule_due ON schedule (next_at) WHERE enabled AND next_at IS NOT NULL;
