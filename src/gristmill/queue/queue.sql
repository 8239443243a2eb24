-- Statements of the queue. A comment after the name says which way a task goes.

-- name: enqueue_alike
-- nothing -> pending: letters that differ only in their payload, straight into the line
WITH given AS MATERIALIZED (
  SELECT nextval('task_id') AS id, value AS payload, ordinality AS place
    FROM jsonb_array_elements(%(payloads)s::jsonb) WITH ORDINALITY
), written AS (
  INSERT INTO task (id, created_at, parent, lane, priority, foreground, max_attempts, queue, kind, owner, payload)
  SELECT id, (SELECT clock()), %(parent)s, %(lane)s, %(priority)s, %(foreground)s, %(max_attempts)s,
         %(queue)s, %(kind)s, %(owner)s, payload
    FROM given
), entered AS (
  INSERT INTO ticket (id, seq, lane, queue) SELECT id, id, %(lane)s, %(queue)s FROM given
)
SELECT array_agg(id ORDER BY place) AS ids,
       pg_notify('gristmill', 'line ' || %(queue)s || ' ' || %(lane)s || ' ' || min(id)) AS told
  FROM given;

-- name: reserve_ids
SELECT array_agg(nextval('task_id')) AS ids, clock() AS now FROM generate_series(1, %(n)s);

-- name: copy_tasks
-- nothing -> pending, by the thousand
COPY task (id, created_at, parent, lane, priority, foreground, max_attempts, queue, kind, owner, payload) FROM STDIN;

-- name: copy_tickets
COPY ticket (id, seq, lane, queue) FROM STDIN;

-- name: notify
SELECT pg_notify('gristmill', %(payload)s);

-- name: enqueue
-- nothing -> pending: letters with instructions of their own; `admit` lets them into the line
WITH moment AS MATERIALIZED (
  SELECT clock() AS now  -- once: it is dear to ask for every row
), given AS MATERIALIZED (
  SELECT nextval('task_id') AS id, r.*
    FROM ROWS FROM (jsonb_to_recordset(%(rows)s::jsonb) AS (
           payload jsonb, queue text, kind text, lane int, priority smallint, foreground boolean, "position" bigint,
           run_at timestamptz, delay interval, parent bigint, after bigint, serial_key text, unique_key text,
           unique_for interval, max_attempts int, owner text)) WITH ORDINALITY
      AS r(payload, queue, kind, lane, priority, foreground, "position", run_at, delay, parent, after, serial_key,
           unique_key, unique_for, max_attempts, owner, place)
), written AS (
  INSERT INTO task (id, created_at, run_at, parent, after, position, unique_until, lane, priority, max_attempts, wait,
                    foreground, unique_held, queue, kind, serial_key, unique_key, owner, payload)
  SELECT id, now, coalesce(run_at, now + delay), parent, after, position, now + unique_for, lane, priority, max_attempts,
         CASE WHEN after IS NOT NULL THEN 'after'::task_wait END, foreground, CASE WHEN unique_key IS NOT NULL THEN true END,
         queue, kind, serial_key, unique_key, owner, payload
    FROM given, moment
   ORDER BY unique_key, place  -- one order of locking for all senders
  ON CONFLICT (unique_key) WHERE unique_held DO NOTHING
  RETURNING id
)
SELECT g.id, g.place, w.id IS NOT NULL AS written FROM given g LEFT JOIN written w ON w.id = g.id ORDER BY g.place;

-- name: release_unique
UPDATE task SET unique_held = NULL
 WHERE unique_key = ANY (%(keys)s) AND unique_held AND outcome IS NOT NULL
   AND (unique_until IS NULL OR unique_until <= clock());

-- name: holders
SELECT t.unique_key, t.id, t.outcome IS NULL AND k.worker IS NULL AS replaceable
  FROM task t LEFT JOIN ticket k ON k.id = t.id
 WHERE t.unique_key = ANY (%(keys)s) AND t.unique_held;

-- name: replace
-- pending -> pending: a newer letter under the same unique key takes the place of the older one
WITH left_line AS (
  DELETE FROM ticket WHERE id = %(id)s AND worker IS NULL RETURNING id
)
UPDATE task t
   SET queue = %(queue)s, kind = %(kind)s, payload = %(payload)s::jsonb, max_attempts = %(max_attempts)s,
       lane = %(lane)s, priority = %(priority)s, foreground = %(foreground)s, position = %(position)s,
       run_at = coalesce(%(run_at)s, clock() + %(delay)s),
       wait = CASE WHEN t.wait IN ('after', 'serial') THEN t.wait END
 WHERE t.id = %(id)s AND t.outcome IS NULL AND (t.wait IS NOT NULL OR EXISTS (SELECT FROM left_line))
RETURNING t.id, t.wait, t.parent, t.after, t.serial_key, t.owner;

-- name: ensure_queues
INSERT INTO queue (name) SELECT unnest(%(names)s::text[]) ON CONFLICT DO NOTHING;

-- name: lock_groups
SELECT id, sealed FROM task_group WHERE id = ANY (%(ids)s) ORDER BY id DESC FOR NO KEY UPDATE;

-- name: joined
-- a group's children grow by `counts`
SELECT bubble(%(ids)s::bigint[], array_fill(NULL::task_status, ARRAY[cardinality(%(ids)s::bigint[])]),
              array_fill('pending'::task_status, ARRAY[cardinality(%(ids)s::bigint[])]), %(counts)s::int[]);

-- name: await_tasks
-- from low to high ids, as settling locks them, and at once as strongly as any of them needs
WITH wanted AS MATERIALIZED (
  SELECT id, outcome, awaited FROM task WHERE id = ANY (%(ids)s) ORDER BY id FOR NO KEY UPDATE
), marked AS (
  UPDATE task t SET awaited = true FROM wanted w WHERE t.id = w.id AND NOT w.awaited AND w.outcome IS DISTINCT FROM 'cancelled'
)
SELECT id, outcome FROM wanted;

-- name: all_awaited
SELECT bool_and(awaited) FROM task WHERE id = ANY (%(ids)s);

-- name: lock_outcomes
SELECT id, outcome FROM task WHERE id = ANY (%(ids)s) ORDER BY id FOR SHARE;

-- name: admit
SELECT admit(%(ids)s::bigint[]);

-- name: admit_new
-- those that come after a task which is already done need not wait for it
SELECT admit(array_agg(t.id))
  FROM task t LEFT JOIN task a ON a.id = t.after
 WHERE t.id = ANY (%(ids)s::bigint[]) AND (t.after IS NULL OR a.outcome IN ('completed', 'skipped'))
HAVING count(*) > 0;

-- name: conclude
SELECT conclude(%(ids)s::bigint[], %(was)s::task_status);

-- name: open_groups
WITH made AS MATERIALIZED (
  SELECT nextval('task_id') AS id, payload FROM unnest(%(payloads)s::text[]) AS payload
), counters AS (
  INSERT INTO task_group (id, parent) SELECT id, %(parent)s::bigint FROM made
), opened AS (
  INSERT INTO task (id, created_at, parent, lane, wait, kind, owner, payload)
  SELECT id, clock(), %(parent)s::bigint, 0, 'children', 'group', %(owner)s, payload::jsonb FROM made
)
SELECT id FROM made ORDER BY id;

-- name: seal
UPDATE task_group SET sealed = true WHERE id = %(id)s AND NOT sealed RETURNING id, parent, status, pending, processing;

-- name: sealed_empty
-- a group with nothing left open reaches its end the moment it is sealed
WITH done AS (
  UPDATE task_group
     SET status = group_status(sealed, pending, processing, completed, failed, skipped, cancelled), finished_at = clock()
   WHERE id = %(id)s AND sealed AND pending + processing = 0 AND finished_at IS NULL
  RETURNING id, status, finished_at
)
UPDATE task t SET outcome = done.status, finished_at = done.finished_at, wait = NULL
  FROM done WHERE t.id = done.id
RETURNING t.id;

-- name: claim
-- pending -> processing: lane after lane, each from where the last claim found it; the rows come in no order
WITH lane AS MATERIALIZED (
  SELECT l.* FROM unnest(%(queues)s::text[], %(lanes)s::int[], %(marks)s::bigint[], %(limits)s::int[]) AS l(queue, lane, mark, n)
   WHERE EXISTS (SELECT FROM worker w WHERE w.id = %(worker)s AND w.state = 'live')
), picked AS MATERIALIZED (
  SELECT k.place
    FROM lane, LATERAL (
      SELECT t.ctid AS place FROM ticket t  -- locked: it stays where it is
       WHERE t.queue = lane.queue AND t.lane = lane.lane AND t.seq >= lane.mark AND t.worker IS NULL AND NOT t.suspect
       ORDER BY t.seq, t.id LIMIT lane.n FOR UPDATE SKIP LOCKED) k
   LIMIT %(n)s
), claimed AS (
  UPDATE ticket t
     SET worker = %(worker)s, lease = %(lease)s, claimed_at = (SELECT clock()), attempts = t.attempts + 1
    FROM picked p WHERE t.ctid = p.place
  RETURNING t.id, t.seq, t.lane, t.queue, t.attempts
), noted AS (
  INSERT INTO hand (worker, lease, queues, tasks)
  SELECT %(worker)s, %(lease)s, %(queues)s, array_agg(id) FROM claimed HAVING count(*) > 0
), entered AS MATERIALIZED (
  SELECT c.*, t.kind, t.payload, t.max_attempts, t.parent, t.parent IS NULL AND t.owner IS NULL AS prunable
    FROM claimed c JOIN task t ON t.id = c.id
), told AS MATERIALIZED (
  SELECT bubble(array_agg(parent), array_agg('pending'::task_status), array_agg('processing'::task_status), array_agg(n))
    FROM (SELECT parent, count(*)::int AS n FROM entered WHERE parent IS NOT NULL GROUP BY parent) p
  HAVING count(*) > 0
)
SELECT id, seq, lane, queue, attempts, kind, payload::text, max_attempts, prunable
  FROM entered WHERE (SELECT count(*) FROM told) >= 0;  -- or the planner leaves out what nobody reads

-- name: claim_suspect
-- pending -> processing: one task that ran when a worker died, to be run alone
WITH picked AS MATERIALIZED (
  SELECT t.id FROM ticket t
   WHERE t.queue = ANY (%(queues)s) AND t.worker IS NULL AND t.suspect
     AND EXISTS (SELECT FROM worker w WHERE w.id = %(worker)s AND w.state = 'live')
   ORDER BY t.lane, t.seq, t.id LIMIT 1 FOR UPDATE SKIP LOCKED
), claimed AS (
  UPDATE ticket t
     SET worker = %(worker)s, lease = %(lease)s, claimed_at = clock(), attempts = t.attempts + 1
    FROM picked p WHERE t.id = p.id
  RETURNING t.id, t.seq, t.lane, t.queue, t.attempts
), noted AS (
  INSERT INTO hand (worker, lease, queues, tasks) SELECT %(worker)s, %(lease)s, ARRAY[queue], ARRAY[id] FROM claimed
), entered AS MATERIALIZED (
  SELECT c.*, t.kind, t.payload, t.max_attempts, t.parent, t.parent IS NULL AND t.owner IS NULL AS prunable
    FROM claimed c JOIN task t ON t.id = c.id
), told AS MATERIALIZED (
  SELECT bubble(ARRAY[parent], ARRAY['pending'::task_status], ARRAY['processing'::task_status], ARRAY[1])
    FROM entered WHERE parent IS NOT NULL
)
SELECT id, seq, lane, queue, attempts, kind, payload::text, max_attempts, prunable
  FROM entered WHERE (SELECT count(*) FROM told) >= 0;

-- name: lanes
-- the first ready ticket of every lane of these queues: a loose scan, one index descent a lane
WITH RECURSIVE step AS (
  SELECT q.queue, f.lane, f.seq
    FROM unnest(%(queues)s::text[]) AS q(queue), LATERAL (
      SELECT t.lane, t.seq FROM ticket t WHERE t.queue = q.queue AND t.worker IS NULL AND NOT t.suspect
       ORDER BY t.lane, t.seq LIMIT 1) f
  UNION ALL
  SELECT s.queue, f.lane, f.seq
    FROM step s, LATERAL (
      SELECT t.lane, t.seq FROM ticket t WHERE t.queue = s.queue AND t.lane > s.lane AND t.worker IS NULL AND NOT t.suspect
       ORDER BY t.lane, t.seq LIMIT 1) f
)
SELECT queue, lane, seq FROM step;

-- name: lay_down
-- of these claims nothing is in hand any more
DELETE FROM hand WHERE worker = %(worker)s AND lease = ANY (%(leases)s::bigint[]);

-- name: suspects_waiting
SELECT EXISTS (SELECT FROM ticket WHERE queue = ANY (%(queues)s) AND worker IS NULL AND suspect);

-- name: complete
-- processing -> completed: all of these, or none
WITH moment AS MATERIALIZED (
  SELECT clock() AS now  -- once: it is dear to ask for every row
), gone AS (
  DELETE FROM ticket k USING unnest(%(ids)s::bigint[], %(leases)s::bigint[]) AS g(id, lease)
   WHERE k.id = g.id AND k.worker = %(worker)s AND k.lease = g.lease
  RETURNING k.id, k.attempts, k.claimed_at
), closed AS (
  UPDATE task t
     SET outcome = 'completed', finished_at = c.now, started_at = gone.claimed_at, attempts = gone.attempts,
         worker = %(worker)s, error = NULL, fingerprint = NULL,
         unique_held = CASE WHEN t.unique_until > c.now THEN t.unique_held END
    FROM gone, moment c WHERE t.id = gone.id
  RETURNING t.id, t.parent, t.awaited OR t.serial_key IS NOT NULL AS followed
), counted AS (
  INSERT INTO queue_tally AS q (queue, worker, completed, prunable)
  SELECT queue, %(worker)s, completed, prunable FROM unnest(%(queues)s::text[], %(completed)s::bigint[], %(prunable)s::bigint[])
    AS r(queue, completed, prunable)
   ORDER BY queue
  ON CONFLICT (queue, worker) DO UPDATE
     SET completed = q.completed + excluded.completed, prunable = q.prunable + excluded.prunable
), ended AS MATERIALIZED (
  SELECT bubble(array_agg(parent), array_agg('processing'::task_status), array_agg('completed'::task_status), array_agg(n)) AS ids
    FROM (SELECT parent, count(*)::int AS n FROM closed WHERE parent IS NOT NULL GROUP BY parent) p
  HAVING count(*) > 0
)
SELECT fence(%(n)s::int, count(*)::int),
       CASE WHEN bool_or(followed) OR (SELECT ids <> '{}' FROM ended)
            THEN follow(coalesce(array_agg(id) FILTER (WHERE followed), '{}') || coalesce((SELECT ids FROM ended), '{}')) END
  FROM closed;

-- name: close
-- processing -> completed | failed | skipped | cancelled, each with its own result or error; what failed -> cancelled where that
-- was asked meanwhile: its group takes nothing more, so that what it did cannot be written
WITH moment AS MATERIALIZED (
  SELECT clock() AS now  -- once: it is dear to ask for every row
), given AS (
  SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS g(
    id bigint, lease bigint, outcome task_status, result jsonb, error text, fingerprint text, clear boolean)
), gone AS (
  DELETE FROM ticket k USING given g WHERE k.id = g.id AND k.worker = %(worker)s AND k.lease = g.lease
  RETURNING k.id, k.attempts, k.claimed_at, k.cancel AND g.outcome = 'failed' AS stopped
), closed AS (
  UPDATE task t
     SET outcome = CASE WHEN gone.stopped THEN 'cancelled' ELSE g.outcome END, finished_at = c.now,
         started_at = gone.claimed_at, attempts = gone.attempts,
         died_at = CASE WHEN g.outcome = 'failed' AND NOT gone.stopped THEN c.now END, worker = %(worker)s, result = g.result,
         error = CASE WHEN gone.stopped THEN %(stopped)s ELSE g.error END,
         fingerprint = CASE WHEN NOT gone.stopped THEN g.fingerprint END,
         payload = CASE WHEN g.clear AND g.outcome <> 'failed' THEN NULL ELSE t.payload END,
         unique_held = CASE WHEN t.unique_until > c.now THEN t.unique_held END
    FROM gone JOIN given g USING (id), moment c WHERE t.id = gone.id
  RETURNING t.id, t.queue, gone.stopped, t.parent IS NULL AND t.owner IS NULL AS prunable,
            t.parent IS NOT NULL OR t.awaited OR t.serial_key IS NOT NULL AS followed
), counted AS (  -- the tally of the batch takes these for failed
  INSERT INTO queue_tally AS y (queue, worker, cancelled, failed, prunable)
  SELECT queue, %(worker)s, count(*), -count(*), count(*) FILTER (WHERE prunable)
    FROM closed WHERE stopped GROUP BY queue ORDER BY queue
  ON CONFLICT (queue, worker) DO UPDATE
     SET cancelled = y.cancelled + excluded.cancelled, failed = y.failed + excluded.failed,
         prunable = y.prunable + excluded.prunable
), remembered AS (
  INSERT INTO task_failure (task, attempt, at, worker, error, fingerprint)
  SELECT gone.id, gone.attempts, clock(), %(worker)s, g.error, g.fingerprint
    FROM gone JOIN given g USING (id) WHERE g.outcome = 'failed'
)
SELECT fence(%(n)s::int, count(*)::int),
       CASE WHEN bool_or(followed) THEN conclude(array_agg(id) FILTER (WHERE followed), 'processing') END
  FROM closed;

-- name: again
-- processing -> pending (retry, snooze), or -> cancelled where that was asked meanwhile
WITH moment AS MATERIALIZED (
  SELECT clock() AS now  -- once: it is dear to ask for every row
), given AS (
  SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS g(
    id bigint, lease bigint, wait interval, counts boolean, first boolean, error text, fingerprint text)
), gone AS (
  DELETE FROM ticket k USING given g WHERE k.id = g.id AND k.worker = %(worker)s AND k.lease = g.lease
  RETURNING k.id, k.attempts, k.claimed_at, k.cancel
), moved AS (
  UPDATE task t
     SET outcome = CASE WHEN gone.cancel THEN 'cancelled'::task_status END,
         finished_at = CASE WHEN gone.cancel THEN c.now END,
         wait = CASE WHEN NOT gone.cancel THEN 'time'::task_wait END,
         run_at = c.now + g.wait, started_at = gone.claimed_at, worker = %(worker)s,
         attempts = gone.attempts - CASE WHEN g.counts THEN 0 ELSE 1 END,
         lane = CASE WHEN g.first THEN t.lane & ~1 ELSE t.lane END,
         unique_held = CASE WHEN gone.cancel THEN NULL ELSE t.unique_held END,
         -- an error without a fingerprint is no failure: the reason of a snooze
         error = coalesce(g.error, t.error), fingerprint = CASE WHEN g.error IS NULL THEN t.fingerprint ELSE g.fingerprint END
    FROM gone JOIN given g USING (id), moment c WHERE t.id = gone.id
  RETURNING t.id, t.queue, t.parent, t.outcome, g.counts, t.parent IS NULL AND t.owner IS NULL AS prunable,
            t.parent IS NOT NULL OR t.awaited OR t.serial_key IS NOT NULL AS followed
), counted AS (  -- the tally of the batch takes these for retried
  INSERT INTO queue_tally AS y (queue, worker, cancelled, retried, prunable)
  SELECT queue, %(worker)s, count(*), -count(*) FILTER (WHERE counts), count(*) FILTER (WHERE prunable)
    FROM moved WHERE outcome IS NOT NULL GROUP BY queue ORDER BY queue
  ON CONFLICT (queue, worker) DO UPDATE
     SET cancelled = y.cancelled + excluded.cancelled, retried = y.retried + excluded.retried,
         prunable = y.prunable + excluded.prunable
), remembered AS (
  INSERT INTO task_failure (task, attempt, at, worker, error, fingerprint)
  SELECT gone.id, gone.attempts, clock(), %(worker)s, g.error, g.fingerprint
    FROM gone JOIN given g USING (id) WHERE g.counts
), forgotten AS (
  -- where a queue never gives up, the last hundred say enough
  DELETE FROM task_failure f USING gone WHERE f.task = gone.id AND f.attempt <= gone.attempts - 100
), back AS (
  SELECT bubble(array_agg(parent), array_agg('processing'::task_status), array_agg('pending'::task_status), array_agg(n))
    FROM (SELECT parent, count(*)::int AS n FROM moved WHERE parent IS NOT NULL AND outcome IS NULL GROUP BY parent) p
  HAVING count(*) > 0
)
SELECT fence(%(n)s::int, count(*)::int),
       CASE WHEN bool_or(followed AND outcome IS NOT NULL)
            THEN conclude(array_agg(id) FILTER (WHERE followed AND outcome IS NOT NULL), 'processing') END,
       (SELECT count(*) FROM back)
  FROM moved;

-- name: plan_anew
-- in this transaction: what handlers write, and what was prepared when a table was small, is planned for the tables of today
SELECT set_config('plan_cache_mode', 'force_custom_plan', true), count(set_config(name, 'on', true))
  FROM unnest(%(names)s::text[]) AS s(name);

-- name: lock_families
-- before several statements that each lock some of these: all at once, in the order of everybody: tickets, tasks from low to
-- high ids, groups from high to low
WITH RECURSIVE mine AS MATERIALIZED (
  SELECT id FROM ticket WHERE id = ANY (%(ids)s::bigint[]) AND worker = %(worker)s ORDER BY id FOR UPDATE
), touched AS MATERIALIZED (
  SELECT t.id, t.parent FROM task t WHERE t.id = ANY (ARRAY(SELECT id FROM mine) || %(tasks)s::bigint[])
   ORDER BY t.id FOR NO KEY UPDATE
), family(id) AS (
  SELECT t.parent FROM mine JOIN touched t USING (id) WHERE t.parent IS NOT NULL
  UNION
  SELECT unnest(%(groups)s::bigint[])
  UNION
  SELECT g.parent FROM family JOIN task_group g USING (id) WHERE g.parent IS NOT NULL
)
SELECT g.id FROM task_group g WHERE g.id = ANY (ARRAY(SELECT id FROM family)) ORDER BY g.id DESC FOR NO KEY UPDATE;

-- name: tally
INSERT INTO queue_tally AS t (queue, worker, completed, failed, skipped, cancelled, retried, prunable)
SELECT queue, %(worker)s, completed, failed, skipped, cancelled, retried, prunable
  FROM jsonb_to_recordset(%(rows)s::jsonb) AS r(
    queue text, completed bigint, failed bigint, skipped bigint, cancelled bigint, retried bigint, prunable bigint)
 ORDER BY queue
ON CONFLICT (queue, worker) DO UPDATE
   SET completed = t.completed + excluded.completed, failed = t.failed + excluded.failed,
       skipped = t.skipped + excluded.skipped, cancelled = t.cancelled + excluded.cancelled,
       retried = t.retried + excluded.retried, prunable = t.prunable + excluded.prunable;

-- name: hand_back
-- processing -> pending: claimed but never started, so no attempt is used
WITH back AS (
  UPDATE ticket k
     SET worker = NULL, lease = NULL, claimed_at = NULL, attempts = k.attempts - 1
    FROM unnest(%(ids)s::bigint[], %(leases)s::bigint[]) AS g(id, lease)
   WHERE k.id = g.id AND k.worker = %(worker)s AND k.lease = g.lease
  RETURNING k.id, k.queue, k.lane, k.seq, k.cancel
), groups AS (
  SELECT bubble(array_agg(parent), array_agg('processing'::task_status), array_agg('pending'::task_status), array_agg(n))
    FROM (SELECT t.parent, count(*)::int AS n FROM back JOIN task t USING (id) WHERE t.parent IS NOT NULL GROUP BY 1) p
  HAVING count(*) > 0
)
SELECT count(*) AS n, array_agg(id) FILTER (WHERE cancel) AS cancelled, (SELECT count(*) FROM groups) AS groups,
       (SELECT count(pg_notify('gristmill', 'line ' || queue || ' ' || lane || ' ' || seq)::text)
          FROM (SELECT queue, lane, min(seq) AS seq FROM back GROUP BY queue, lane) f) AS lines
  FROM back;

-- name: promote
-- pending -> pending: what has waited for its time enters the line
WITH due AS MATERIALIZED (
  SELECT id FROM task WHERE wait = 'time' AND run_at <= clock() ORDER BY run_at LIMIT %(n)s FOR UPDATE SKIP LOCKED
)
SELECT count(*) AS promoted, CASE WHEN count(*) > 0 THEN admit(array_agg(id)) END FROM due;

-- name: next_due
SELECT extract(epoch FROM run_at - clock())::float8 FROM task WHERE wait = 'time' ORDER BY run_at LIMIT 1;

-- name: register
INSERT INTO worker (name, process, notes, queues, concurrency, solo, lease_for)
VALUES (%(name)s, %(process)s, %(notes)s, %(queues)s, %(concurrency)s, %(solo)s, %(lease)s) RETURNING id;

-- name: set_worker_state
UPDATE worker SET state = %(state)s WHERE id = %(worker)s AND state IN ('live', 'stopping') RETURNING id;

-- name: heartbeat
UPDATE worker SET heartbeat_at = clock() WHERE id = %(worker)s AND state IN ('live', 'stopping') RETURNING id;

-- name: configs
SELECT * FROM queue WHERE name = ANY (%(names)s);

-- name: lock_queue
SELECT name FROM queue WHERE name = %(name)s FOR NO KEY UPDATE;

-- name: limits
-- after the lock and not with it: a statement that waited for a lock still sees the tickets of before
SELECT q.*, clock() AS now, (SELECT count(*) FROM leased k WHERE q.name = ANY (k.asked) AND k.queue = q.name) AS running
  FROM queue q WHERE q.name = %(name)s;

-- name: now
SELECT clock();

-- name: note_starts
UPDATE queue SET recent_at = %(at)s, recent_n = %(n)s WHERE name = %(name)s;

-- name: set_breaker
UPDATE queue SET breaker_state = %(state)s, breaker_since = clock(), breaker_reason = %(reason)s
 WHERE name = %(name)s AND breaker_state = ANY (%(was)s) AND breaker_threshold IS NOT NULL
RETURNING name, pg_notify('gristmill', 'queue ' || name);

-- name: report_health
INSERT INTO queue_health AS h (queue, bucket, ok, failed)
SELECT %(queue)s, date_bin('5 s', clock(), 'epoch'), %(ok)s, %(failed)s
ON CONFLICT (queue, bucket) DO UPDATE SET ok = h.ok + excluded.ok, failed = h.failed + excluded.failed;

-- name: health
SELECT coalesce(sum(h.ok), 0) AS ok, coalesce(sum(h.failed), 0) AS failed
  FROM queue_health h JOIN queue q ON q.name = h.queue
 WHERE h.queue = %(queue)s AND h.bucket > greatest(clock() - q.breaker_window, q.breaker_since) - interval '5 s';

-- name: forget_health
DELETE FROM queue_health WHERE queue = %(queue)s;

-- name: note_progress
INSERT INTO task_progress AS p (task, at, current, total, message)
SELECT r.task, clock(), r.current, r.total, r.message
  FROM jsonb_to_recordset(%(rows)s::jsonb) AS r(task bigint, current bigint, total bigint, message text)
  JOIN ticket k ON k.id = r.task AND k.worker = %(worker)s
ON CONFLICT (task) DO UPDATE
   SET at = excluded.at, current = excluded.current, total = excluded.total, message = excluded.message;

-- name: cancelled_in_hand
SELECT id FROM leased WHERE worker = %(worker)s AND cancel;

-- name: still_mine
SELECT k.id FROM ticket k JOIN unnest(%(ids)s::bigint[], %(leases)s::bigint[]) AS g(id, lease) USING (id, lease)
 WHERE k.worker = %(worker)s;

-- name: anything_left
-- what stands in a paused queue does not run by itself, unless it runs already
WITH open AS (SELECT unnest(%(queues)s::text[]) AS name EXCEPT SELECT name FROM queue WHERE paused)
SELECT EXISTS (SELECT FROM ticket WHERE queue = ANY (%(queues)s) AND (worker IS NOT NULL OR queue IN (SELECT name FROM open)))
    OR EXISTS (SELECT FROM task WHERE wait = 'time' AND queue IN (SELECT name FROM open));

-- name: depths
SELECT q.queue, (SELECT count(*) FROM (SELECT FROM ticket t WHERE t.queue = q.queue AND t.worker IS NULL AND NOT t.suspect
                                        LIMIT 100000) x) AS depth
  FROM unnest(%(queues)s::text[]) AS q(queue);
