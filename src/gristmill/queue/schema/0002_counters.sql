-- Counters of tasks, their history, dead letters by error, runs of schedules, bulk actions, and indexes for lists.

-- How many tasks a queue holds, together with queue_tally. Every statement that opens tasks, or takes ended ones away, adds a
-- row, so that no two writers ever meet in one; the janitor makes one row of many. Settling adds nothing here: it counts in
-- queue_tally already. The view `queue_count` puts both together.
CREATE TABLE queue_depth (
  queue     text COLLATE "C" NOT NULL,
  scope     int NOT NULL,
  opened    bigint NOT NULL DEFAULT 0,             -- tasks that were sent or reopened
  completed bigint NOT NULL DEFAULT 0,             -- ended tasks that came (or, below zero, went) beside queue_tally
  failed    bigint NOT NULL DEFAULT 0,
  skipped   bigint NOT NULL DEFAULT 0,
  cancelled bigint NOT NULL DEFAULT 0
) WITH (autovacuum_vacuum_cost_delay = 0);

-- Dead letters by their error: how many there are is the sum of `n`. Rows are added and folded as those of queue_depth.
CREATE TABLE dead_tally (
  queue       text COLLATE "C" NOT NULL,
  scope       int NOT NULL,
  kind        text COLLATE "C" NOT NULL,
  fingerprint text COLLATE "C" NOT NULL,
  n           bigint NOT NULL,
  first_at    timestamptz,                         -- null in rows that only take away
  last_at     timestamptz,
  error       text,
  examples    bigint[] NOT NULL DEFAULT '{}'       -- the latest tasks; some may be alive again, or gone
) WITH (autovacuum_vacuum_cost_delay = 0);

-- What happened in each minute, later in each hour. A minute in which nothing happened has no row.
CREATE TABLE queue_sample (
  queue     text COLLATE "C" NOT NULL,
  scope     int NOT NULL,
  at        timestamptz NOT NULL,                  -- the start of the minute or hour
  hourly    boolean NOT NULL DEFAULT false,
  opened    bigint NOT NULL,
  completed bigint NOT NULL,
  failed    bigint NOT NULL,
  skipped   bigint NOT NULL,
  cancelled bigint NOT NULL,
  retried   bigint NOT NULL,
  dead      bigint NOT NULL,                       -- dead letters that came, less those that went
  PRIMARY KEY (at, queue, scope, hourly)
);

-- The totals up to which each queue was sampled.
CREATE TABLE queue_sampled (
  queue     text COLLATE "C" NOT NULL,
  scope     int NOT NULL,
  opened    bigint NOT NULL,
  completed bigint NOT NULL,
  failed    bigint NOT NULL,
  skipped   bigint NOT NULL,
  cancelled bigint NOT NULL,
  retried   bigint NOT NULL,
  dead      bigint NOT NULL,
  PRIMARY KEY (queue, scope)
) WITH (fillfactor = 50);

-- Every run of a schedule, by its time or by hand.
CREATE TABLE schedule_run (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope   int NOT NULL,
  name    text NOT NULL,
  at      timestamptz NOT NULL,
  due     timestamptz,                             -- null: by hand
  task    bigint NOT NULL,
  problem text,
  FOREIGN KEY (scope, name) REFERENCES schedule (scope, name) ON DELETE CASCADE
);
CREATE INDEX schedule_run_by_name ON schedule_run (scope, name, id);

-- An action on all tasks that a filter fits, done in portions; `step` counts the portions and fences them.
CREATE TABLE bulk_action (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope       int NOT NULL,
  everywhere  boolean NOT NULL DEFAULT false,      -- by the operator: on tasks of all clients
  created_at  timestamptz NOT NULL DEFAULT clock(),
  finished_at timestamptz,
  created_by  text NOT NULL,
  action      text NOT NULL CHECK (action IN ('retry', 'cancel', 'purge', 'priority', 'foreground', 'position')),
  filter      jsonb NOT NULL,
  value       bigint,                              -- of the priority, the position, or 0 and 1 for the foreground
  status      text NOT NULL DEFAULT 'running'
              CHECK (status IN ('running', 'stopping', 'stopped', 'done', 'undoing', 'undone', 'failed')),
  step        bigint NOT NULL DEFAULT 0,
  spot        jsonb,                               -- where the next portion begins; null: at the newest
  last_id     bigint NOT NULL,                     -- tasks with a higher id are newer than the action
  expected    bigint,                              -- how many tasks the preview counted
  examined    bigint NOT NULL DEFAULT 0,
  changed     bigint NOT NULL DEFAULT 0,
  refused     bigint NOT NULL DEFAULT 0,
  undone      bigint NOT NULL DEFAULT 0,
  problem     text,
  CHECK ((finished_at IS NULL) = (status IN ('running', 'stopping', 'undoing')))
) WITH (fillfactor = 50);
CREATE INDEX bulk_action_by_scope ON bulk_action (scope, id);

-- What each changed task was before, so that the change can be undone.
CREATE TABLE bulk_change (
  bulk  bigint NOT NULL REFERENCES bulk_action ON DELETE CASCADE,
  scope int NOT NULL,
  task  bigint NOT NULL,
  was   jsonb NOT NULL,
  PRIMARY KEY (bulk, task)
);

-- Lists go through these, newest first. None holds a column that finishing a task changes.
DROP INDEX task_children;
CREATE INDEX task_children ON task (parent, id) WHERE parent IS NOT NULL;
DROP INDEX task_dead;
CREATE INDEX task_dead ON task (died_at, id) WHERE died_at IS NOT NULL;
CREATE INDEX task_dead_by_scope ON task (scope, died_at, id) WHERE died_at IS NOT NULL;
CREATE INDEX task_waiting ON task (queue, id) WHERE wait IS NOT NULL;
CREATE INDEX task_by_scope ON task (scope, id) WHERE scope <> 1;  -- GLOBAL is seen by its operator, who sees all

-- The counters begin with the tasks that are there.
INSERT INTO queue_depth (queue, scope, opened, completed, failed, skipped, cancelled)
SELECT queue, scope, sum(opened), sum(completed), sum(failed), sum(skipped), sum(cancelled)
  FROM (SELECT queue, scope, count(*) FILTER (WHERE outcome IS NULL) AS opened,
               count(*) FILTER (WHERE outcome = 'completed') AS completed, count(*) FILTER (WHERE outcome = 'failed') AS failed,
               count(*) FILTER (WHERE outcome = 'skipped') AS skipped, count(*) FILTER (WHERE outcome = 'cancelled') AS cancelled
          FROM task WHERE queue IS NOT NULL GROUP BY queue, scope
        UNION ALL
        SELECT queue, scope, completed + failed + skipped + cancelled, -completed, -failed, -skipped, -cancelled
          FROM queue_tally) t
 GROUP BY queue, scope;
INSERT INTO dead_tally (queue, scope, kind, fingerprint, n, first_at, last_at, error, examples)
SELECT queue, scope, kind, coalesce(fingerprint, ''), count(*), min(died_at), max(died_at),
       (array_agg(error ORDER BY died_at DESC, id DESC))[1], (array_agg(id ORDER BY died_at DESC, id DESC))[1:5]
  FROM task WHERE died_at IS NOT NULL GROUP BY 1, 2, 3, 4;
-- the history begins now: earlier work is in no minute
INSERT INTO queue_sampled
SELECT queue, scope, sum(opened), sum(completed), sum(failed), sum(skipped), sum(cancelled), sum(retried), sum(dead)
  FROM (SELECT queue, scope, opened, 0 AS completed, 0 AS failed, 0 AS skipped, 0 AS cancelled, 0 AS retried, failed AS dead
          FROM queue_depth
        UNION ALL
        SELECT queue, scope, 0, completed, failed, skipped, cancelled, retried, failed FROM queue_tally) t
 GROUP BY queue, scope;
