-- The queue: tasks, their places in line, groups, limits, workers and schedules.

-- One clock. Tests move it with SET gristmill.clock_offset = '2 hours'.
CREATE FUNCTION clock() RETURNS timestamptz LANGUAGE sql STABLE AS
$$ SELECT clock_timestamp() + coalesce(nullif(current_setting('gristmill.clock_offset', true), ''), '0')::interval $$;

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
  lane         int NOT NULL,
  priority     smallint NOT NULL DEFAULT 0,
  attempts     smallint NOT NULL DEFAULT 0,
  max_attempts smallint,                           -- null: as the queue says
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
CREATE INDEX task_in_series ON task (serial_key, lane, id) WHERE wait = 'serial';
CREATE INDEX task_children ON task (parent) WHERE parent IS NOT NULL;
CREATE INDEX task_owner ON task (owner) WHERE owner IS NOT NULL;
CREATE INDEX task_dead ON task (died_at) WHERE died_at IS NOT NULL;
CREATE UNIQUE INDEX task_unique ON task (unique_key) WHERE unique_held;

-- A ticket is a task's place in line, and in whose hand it is. Only tasks that may run now have one.
CREATE TABLE ticket (
  id         bigint PRIMARY KEY,
  seq        bigint NOT NULL,
  claimed_at timestamptz,
  lane       int NOT NULL,
  worker     int,
  lease      int,                                  -- the worker's own number of the claim: with worker, the fencing token
  attempts   smallint NOT NULL DEFAULT 0,
  suspect    boolean NOT NULL DEFAULT false,       -- it ran when a worker died: run it alone
  cancel     boolean NOT NULL DEFAULT false,
  queue      text COLLATE "C" NOT NULL,
  CHECK ((worker IS NULL) = (lease IS NULL)),
  CHECK ((worker IS NULL) = (claimed_at IS NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.1);
CREATE INDEX ticket_ready ON ticket (queue, lane, seq) WHERE worker IS NULL AND NOT suspect;
CREATE INDEX ticket_suspect ON ticket (queue, lane, seq) WHERE worker IS NULL AND suspect;
CREATE INDEX ticket_leased ON ticket (worker) WHERE worker IS NOT NULL;

-- Counters of a group, changed in the transaction of the child that moved.
CREATE TABLE task_group (
  id          bigint PRIMARY KEY,
  parent      bigint,
  finished_at timestamptz,
  pending     int NOT NULL DEFAULT 0 CHECK (pending >= 0),
  processing  int NOT NULL DEFAULT 0 CHECK (processing >= 0),
  completed   int NOT NULL DEFAULT 0 CHECK (completed >= 0),
  failed      int NOT NULL DEFAULT 0 CHECK (failed >= 0),
  skipped     int NOT NULL DEFAULT 0 CHECK (skipped >= 0),
  cancelled   int NOT NULL DEFAULT 0 CHECK (cancelled >= 0),
  sealed      boolean NOT NULL DEFAULT false,
  status      task_status NOT NULL DEFAULT 'pending'
) WITH (fillfactor = 30, autovacuum_vacuum_cost_delay = 0);

-- Whose turn it is within each serial key.
CREATE TABLE serial_head (
  key  text COLLATE "C" PRIMARY KEY,
  task bigint NOT NULL UNIQUE
) WITH (fillfactor = 50);

CREATE TABLE queue (
  name              text COLLATE "C" PRIMARY KEY CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
  paused            boolean NOT NULL DEFAULT false,
  concurrency       int CHECK (concurrency > 0),
  rate_count        int CHECK (rate_count > 0),
  rate_period       interval CHECK (rate_period > '0'),
  max_attempts      smallint DEFAULT 3 CHECK (max_attempts > 0),            -- null: never give up
  retry_base        interval NOT NULL DEFAULT '10 s',
  retry_cap         interval NOT NULL DEFAULT '5 min',
  retries_first     boolean NOT NULL DEFAULT false,
  timeout           interval NOT NULL DEFAULT '300 s' CHECK (timeout > '0'),
  clear_payload     boolean NOT NULL DEFAULT false,
  keep_for          interval,                                               -- null: as the settings say
  keep              int CHECK (keep >= 0),
  breaker_threshold real CHECK (breaker_threshold > 0 AND breaker_threshold <= 1),  -- null: no breaker
  breaker_window    interval NOT NULL DEFAULT '60 s',
  breaker_minimum   int NOT NULL DEFAULT 10 CHECK (breaker_minimum > 0),
  breaker_reset     interval NOT NULL DEFAULT '5 min',
  breaker_state     text NOT NULL DEFAULT 'closed' CHECK (breaker_state IN ('closed', 'open', 'half-open')),
  breaker_since     timestamptz,
  breaker_reason    text,
  recent_at         timestamptz[] NOT NULL DEFAULT '{}',                    -- the starts within the rate period …
  recent_n          int[] NOT NULL DEFAULT '{}',                            -- … and how many at each
  CHECK ((rate_count IS NULL) = (rate_period IS NULL))
) WITH (fillfactor = 50);

-- What became of a queue's tasks, counted in the transaction that settles them; one row per worker, so that none waits.
CREATE TABLE queue_tally (
  queue     text COLLATE "C" NOT NULL,
  worker    int NOT NULL,
  completed bigint NOT NULL DEFAULT 0,
  failed    bigint NOT NULL DEFAULT 0,
  skipped   bigint NOT NULL DEFAULT 0,
  cancelled bigint NOT NULL DEFAULT 0,
  retried   bigint NOT NULL DEFAULT 0,
  prunable  bigint NOT NULL DEFAULT 0,             -- finished tasks that retention may delete, less those it did
  PRIMARY KEY (queue, worker)
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
  PRIMARY KEY (queue, bucket)
);

-- Named limiters that handlers take from before they call the outside.
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
  notes        text NOT NULL DEFAULT '',           -- the file in which its machine finds what it had begun
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
  at      timestamptz NOT NULL,
  current bigint NOT NULL,
  total   bigint,
  message text
) WITH (fillfactor = 50);

-- Every failure of every attempt.
CREATE TABLE task_failure (
  task        bigint NOT NULL,
  attempt     smallint NOT NULL,
  at          timestamptz NOT NULL,
  worker      int,
  error       text NOT NULL,
  fingerprint text COLLATE "C" NOT NULL
);
CREATE INDEX task_failure_by_task ON task_failure (task);

CREATE TABLE schedule (
  name        text PRIMARY KEY CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
  kind        text NOT NULL,
  queue       text NOT NULL,
  payload     jsonb NOT NULL,
  cron        text,
  zone        text NOT NULL DEFAULT 'UTC',
  once_at     timestamptz,
  follows     text REFERENCES schedule ON DELETE CASCADE,
  delay       interval,
  enabled     boolean NOT NULL DEFAULT true,
  next_at     timestamptz,
  last_at     timestamptz,
  last_task   bigint,
  created_at  timestamptz NOT NULL DEFAULT clock(),
  CHECK (num_nonnulls(cron, once_at, follows) = 1),
  CHECK ((follows IS NULL) = (delay IS NULL))
);
CREATE INDEX schedule_due ON schedule (next_at) WHERE enabled AND next_at IS NOT NULL;

-- What a person means by "the task": with its status, who runs it and how far it is.
CREATE VIEW tasks AS
SELECT t.id, t.queue, t.kind,
       coalesce(t.outcome, g.status, CASE WHEN k.worker IS NOT NULL THEN 'processing'::task_status ELSE 'pending' END) AS status,
       t.priority, t.foreground, t.position, t.created_at, t.run_at, t.wait,
       coalesce(k.claimed_at, t.started_at) AS started_at, t.finished_at,
       coalesce(k.attempts, t.attempts) AS attempts, t.max_attempts,
       coalesce(k.worker, t.worker) AS worker, k.lease, coalesce(k.suspect, false) AS suspect,
       w.heartbeat_at, w.heartbeat_at + w.lease_for AS lease_expires_at, coalesce(k.cancel, false) AS cancel_requested,
       t.parent, t.after, t.serial_key, t.unique_key, t.owner,
       p.current AS progress_current, p.total AS progress_total, p.message AS progress_message,
       t.payload, t.result, t.error, t.fingerprint
  FROM task t
  LEFT JOIN ticket k ON k.id = t.id
  LEFT JOIN task_group g ON g.id = t.id
  LEFT JOIN worker w ON w.id = k.worker
  LEFT JOIN task_progress p ON p.task = t.id;

CREATE FUNCTION group_status(sealed boolean, pending int, processing int, completed int, failed int, skipped int, cancelled int)
RETURNS task_status LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN processing > 0 THEN 'processing'
              WHEN pending > 0 OR NOT sealed THEN 'pending'
              WHEN failed > 0 THEN 'failed'
              WHEN cancelled > 0 AND completed + skipped = 0 THEN 'cancelled'
              ELSE 'completed' END::task_status $$;

-- Moves `counts` children of each group from one status to another (null: not there before) and carries what follows
-- up the tree. A group's id is always lower than its children's, so going from high to low ids is one order of locking
-- for everybody. Returns the groups that reached an end.
CREATE FUNCTION bubble(groups bigint[], olds task_status[], news task_status[], counts int[])
RETURNS bigint[] LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
  ended bigint[] := '{}';
  ends bigint[];
  horizon bigint;
BEGIN
  WHILE cardinality(groups) > 0 LOOP
    -- whatever is carried up lands at or below the horizon: only groups above it are complete now
    SELECT coalesce(max(g.parent), 0) INTO horizon FROM task_group g WHERE g.id = ANY (groups);
    PERFORM FROM task_group g WHERE g.id = ANY (groups) AND g.id > horizon ORDER BY g.id DESC FOR NO KEY UPDATE;
    WITH move AS (
      SELECT * FROM unnest(groups, olds, news, counts) AS m(id, old, new, n)
    ), delta AS (
      SELECT id,
             sum(n * ((new = 'pending')::int    - coalesce((old = 'pending')::int, 0)))    AS pending,
             sum(n * ((new = 'processing')::int - coalesce((old = 'processing')::int, 0))) AS processing,
             sum(n * ((new = 'completed')::int  - coalesce((old = 'completed')::int, 0)))  AS completed,
             sum(n * ((new = 'failed')::int     - coalesce((old = 'failed')::int, 0)))     AS failed,
             sum(n * ((new = 'skipped')::int    - coalesce((old = 'skipped')::int, 0)))    AS skipped,
             sum(n * ((new = 'cancelled')::int  - coalesce((old = 'cancelled')::int, 0)))  AS cancelled
        FROM move WHERE id > horizon GROUP BY id
    ), was AS (
      SELECT g.id, g.status FROM task_group g JOIN delta USING (id)
    ), moved AS (
      UPDATE task_group g
         SET pending = g.pending + d.pending, processing = g.processing + d.processing,
             completed = g.completed + d.completed, failed = g.failed + d.failed,
             skipped = g.skipped + d.skipped, cancelled = g.cancelled + d.cancelled,
             status = s.status,
             finished_at = CASE WHEN s.status IN ('pending', 'processing') THEN NULL ELSE coalesce(g.finished_at, clock()) END
        FROM delta d, was,
             LATERAL (SELECT x.* FROM task_group x WHERE x.id = d.id) x,
             LATERAL (SELECT group_status(x.sealed, (x.pending + d.pending)::int, (x.processing + d.processing)::int,
                        (x.completed + d.completed)::int, (x.failed + d.failed)::int, (x.skipped + d.skipped)::int,
                        (x.cancelled + d.cancelled)::int) AS status) s
       WHERE g.id = d.id AND was.id = g.id
      RETURNING g.id, g.parent, was.status AS old, g.status AS new, g.finished_at
    ), changed AS (
      SELECT * FROM moved WHERE old <> new
    ), kept AS (
      UPDATE task t
         SET outcome = CASE WHEN c.finished_at IS NOT NULL THEN c.new END, finished_at = c.finished_at,
             wait = CASE WHEN c.finished_at IS NULL THEN 'children'::task_wait END
        FROM changed c
       WHERE t.id = c.id AND t.outcome IS DISTINCT FROM CASE WHEN c.finished_at IS NOT NULL THEN c.new END
    ), next AS (
      SELECT id, old, new, n FROM move WHERE id <= horizon
      UNION ALL
      SELECT parent, old, new, 1 FROM changed WHERE parent IS NOT NULL
    )
    SELECT (SELECT coalesce(array_agg(id), '{}') FROM changed WHERE finished_at IS NOT NULL),
           coalesce(array_agg(n.id), '{}'), array_agg(n.old), array_agg(n.new), array_agg(n.n)
      INTO ends, groups, olds, news, counts
      FROM next n;
    ended := ended || ends;
  END LOOP;
  RETURN ended;
END $$;

-- Lets open tasks into the line, unless their time has not come or another task of their serial key is before them.
CREATE FUNCTION admit(ids bigint[]) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
  moment timestamptz := clock();
  heads bigint[];
  told int;
BEGIN
  UPDATE task SET wait = 'time' WHERE id = ANY (ids) AND run_at > moment AND wait IS DISTINCT FROM 'time';
  IF EXISTS (SELECT FROM task WHERE id = ANY (ids) AND serial_key IS NOT NULL AND (run_at > moment) IS NOT TRUE) THEN
    -- DO UPDATE on purpose: it locks the row, so that the head cannot leave while we decide to stand behind it
    WITH first AS (
      SELECT DISTINCT ON (serial_key) serial_key, id FROM task
       WHERE id = ANY (ids) AND serial_key IS NOT NULL AND (run_at > moment) IS NOT TRUE ORDER BY serial_key, lane, id
    ), head AS (
      INSERT INTO serial_head AS h (key, task) SELECT serial_key, id FROM first ORDER BY serial_key
      ON CONFLICT (key) DO UPDATE SET task = h.task RETURNING h.task
    )
    SELECT array_agg(task) INTO heads FROM head;
    UPDATE task SET wait = 'serial'
     WHERE id = ANY (ids) AND serial_key IS NOT NULL AND (run_at > moment) IS NOT TRUE AND id <> ALL (heads);
  END IF;
  WITH free AS (
    UPDATE task SET wait = NULL
     WHERE id = ANY (ids) AND outcome IS NULL
       AND (wait IS NULL OR wait = 'after' OR wait = 'time' AND run_at <= moment OR wait = 'serial' AND id = ANY (heads))
    RETURNING id, lane, position, attempts, queue
  ), entered AS (
    INSERT INTO ticket (id, seq, lane, attempts, queue)
    SELECT f.id, coalesce(f.position, nextval('task_id')), f.lane, f.attempts, f.queue
      FROM (SELECT * FROM free ORDER BY lane, id) f
    RETURNING queue, lane, seq
  )
  SELECT count(pg_notify('gristmill', 'line ' || queue || ' ' || lane || ' ' || first)::text) INTO told
    FROM (SELECT queue, lane, min(seq) AS first FROM entered GROUP BY queue, lane) e;
END $$;

-- Those behind tasks and groups that have come to an end may go: the next of their serial key, and what came after them.
CREATE FUNCTION follow(ended bigint[]) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
  next_ids bigint[];
  stranded bigint[];
  step record;
BEGIN
  FOR step IN SELECT h.key, h.task FROM serial_head h WHERE h.task = ANY (ended) ORDER BY h.key FOR UPDATE LOOP
    UPDATE serial_head SET task = n.id
      FROM (SELECT id FROM task WHERE serial_key = step.key AND wait = 'serial' ORDER BY lane, id LIMIT 1 FOR UPDATE) n
     WHERE key = step.key
    RETURNING n.id INTO step.task;
    IF FOUND THEN
      next_ids := next_ids || step.task;
    ELSE
      DELETE FROM serial_head WHERE key = step.key;
    END IF;
  END LOOP;

  SELECT next_ids || array_agg(d.id) INTO next_ids
    FROM task d JOIN task a ON a.id = d.after
   WHERE d.after = ANY (ended) AND d.wait = 'after' AND a.outcome IN ('completed', 'skipped');
  IF cardinality(next_ids) > 0 THEN
    PERFORM admit(next_ids);
  END IF;

  WITH gone AS (
    UPDATE task d SET outcome = 'cancelled', finished_at = clock(), wait = NULL, unique_held = NULL,
                      error = 'cancelled because task ' || a.id || ', which it waited for, was cancelled'
      FROM task a
     WHERE a.id = ANY (ended) AND a.outcome = 'cancelled' AND d.after = a.id AND d.wait = 'after'
    RETURNING d.id, d.queue, d.parent IS NULL AND d.owner IS NULL AS prunable
  ), counted AS (
    INSERT INTO queue_tally AS y (queue, worker, cancelled, prunable)
    SELECT queue, 0, count(*), count(*) FILTER (WHERE prunable) FROM gone GROUP BY queue ORDER BY queue
    ON CONFLICT (queue, worker) DO UPDATE
       SET cancelled = y.cancelled + excluded.cancelled, prunable = y.prunable + excluded.prunable
  )
  SELECT array_agg(id) INTO stranded FROM gone;
  IF stranded IS NOT NULL THEN
    PERFORM conclude(stranded, 'pending');
  END IF;
END $$;

-- What follows when tasks have come to an end: their groups count, those behind them may go.
CREATE FUNCTION conclude(ids bigint[], was task_status) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
  ended bigint[];
BEGIN
  SELECT bubble(array_agg(parent), array_agg(was), array_agg(outcome), array_agg(n)) INTO ended
    FROM (SELECT parent, outcome, count(*)::int AS n FROM task WHERE id = ANY (ids) AND parent IS NOT NULL GROUP BY 1, 2) m
  HAVING count(*) > 0;
  PERFORM follow(ids || coalesce(ended, '{}'));
END $$;

-- A worker that lost one of its leases writes nothing: the transaction ends here.
CREATE FUNCTION fence(expected int, held int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF held <> expected THEN
    RAISE EXCEPTION '% of % leases are lost', expected - held, expected USING ERRCODE = 'GM001';
  END IF;
END $$;
