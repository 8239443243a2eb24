-- Takes back what dead workers held.

-- name: processes
SELECT DISTINCT process FROM worker WHERE state IN ('live', 'stopping');

-- name: lose_workers
-- live | stopping -> lost; a row that another rescuer has locked is left to that rescuer
WITH dead AS MATERIALIZED (
  SELECT id FROM worker
   WHERE state IN ('live', 'stopping') AND (heartbeat_at < clock() - lease_for OR process = ANY (%(gone)s::text[]))
   ORDER BY id FOR UPDATE SKIP LOCKED
)
UPDATE worker w SET state = 'lost' FROM dead WHERE w.id = dead.id AND w.state IN ('live', 'stopping')
RETURNING w.id, w.name, w.journal, w.process;

-- name: held_by
-- also tasks that a zombie is settling right now, which we cannot lock
SELECT worker, count(*) AS n FROM leased WHERE worker = ANY (%(workers)s::int[]) GROUP BY worker;

-- name: orphans
-- every ticket whose worker does not live; SKIP LOCKED because a zombie may be settling some: it succeeds, or the next rescue
-- takes them, and nobody deadlocks
SELECT k.id, k.worker, coalesce(w.name, 'an unknown machine') AS name, k.attempts, k.cancel, k.suspect,
       coalesce(t.max_attempts, q.max_attempts, 3) AS max_attempts
  FROM lease l CROSS JOIN LATERAL unnest(l.tasks) AS u(id)
  JOIN ticket k ON k.id = u.id AND k.worker = l.worker AND k.lease = l.number
  JOIN task t ON t.id = k.id
  LEFT JOIN queue q ON q.name = k.queue
  LEFT JOIN worker w ON w.id = k.worker
 WHERE NOT EXISTS (SELECT FROM worker x WHERE x.id = l.worker AND x.state IN ('live', 'stopping'))
 ORDER BY k.id FOR UPDATE OF k SKIP LOCKED;

-- name: delete_empty_leases
-- of workers that do not live: nothing of these leases is held any more
DELETE FROM lease l
 WHERE NOT EXISTS (SELECT FROM worker x WHERE x.id = l.worker AND x.state IN ('live', 'stopping'))
   AND NOT EXISTS (SELECT FROM leased k WHERE k.worker = l.worker AND k.lease = l.number);

-- name: put_back
-- processing -> pending, at their old place; a task that never started gets its attempt back
WITH given AS (
  SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS g(id bigint, worker int, started boolean, suspect boolean, error text, fingerprint text)
), back AS (
  UPDATE ticket k
     SET worker = NULL, lease = NULL, claimed_at = NULL, suspect = k.suspect OR g.suspect,
         attempts = k.attempts - CASE WHEN g.started THEN 0 ELSE 1 END
    FROM given g WHERE k.id = g.id AND k.worker = g.worker
  RETURNING k.id, k.queue, k.lane, k.seq, k.attempts, k.suspect, g.worker, g.started, g.error, g.fingerprint
), remembered AS (
  INSERT INTO task_failure (task, scope, attempt, at, worker, error, fingerprint)
  SELECT b.id, t.scope, b.attempts, clock(), b.worker, b.error, b.fingerprint
    FROM back b JOIN task t ON t.id = b.id WHERE b.started
), counted AS (  -- as worker 0: a zombie may hold the lock of its own row for as long as it sleeps
  INSERT INTO queue_tally AS y (queue, scope, worker, retried)
  SELECT b.queue, t.scope, 0, count(*) FROM back b JOIN task t ON t.id = b.id WHERE b.started GROUP BY 1, 2 ORDER BY 1, 2
  ON CONFLICT (queue, scope, worker) DO UPDATE SET retried = y.retried + excluded.retried
), groups AS (
  SELECT bubble(array_agg(parent), array_agg('processing'::task_status), array_agg('pending'::task_status), array_agg(n))
    FROM (SELECT t.parent, count(*)::int AS n FROM back JOIN task t USING (id) WHERE t.parent IS NOT NULL GROUP BY 1) p
  HAVING count(*) > 0
)
SELECT (SELECT count(*) FROM groups) AS groups,
       (SELECT count(pg_notify('gristmill', 'ready ' || queue || ' ' || lane || ' ' || seq)::text)
          FROM (SELECT queue, lane, min(seq) AS seq FROM back WHERE NOT suspect GROUP BY queue, lane) f) AS ready,
       (SELECT count(pg_notify('gristmill', 'suspects')::text) FROM (SELECT FROM back WHERE suspect LIMIT 1) s) AS suspects;

-- name: end_orphans
-- processing -> failed | cancelled: the task killed its worker too often, or somebody had asked to cancel it;
-- `conclude` is a statement of its own, as it may change the same rows
WITH given AS (
  SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS g(id bigint, worker int, outcome task_status, error text, fingerprint text)
), gone AS (
  DELETE FROM ticket k USING given g WHERE k.id = g.id AND k.worker = g.worker
  RETURNING k.id, k.attempts, k.claimed_at, k.worker
), closed AS (
  UPDATE task t
     SET outcome = g.outcome, finished_at = c.now, died_at = CASE WHEN g.outcome = 'failed' THEN c.now END,
         started_at = gone.claimed_at, attempts = gone.attempts, worker = gone.worker, error = g.error,
         fingerprint = g.fingerprint,
         unique_held = CASE WHEN t.unique_until > c.now AND g.outcome = 'failed' THEN t.unique_held END
    FROM gone JOIN given g USING (id), (SELECT clock() AS now) c WHERE t.id = gone.id
  RETURNING t.id, t.scope, t.queue, t.kind, t.died_at, t.worker, t.outcome, t.attempts, t.error, t.fingerprint,
            t.parent IS NULL AND t.owner IS NULL AND t.outcome = 'cancelled' AS prunable
), remembered AS (
  INSERT INTO task_failure (task, scope, attempt, at, worker, error, fingerprint)
  SELECT id, scope, attempts, clock(), worker, error, fingerprint FROM closed WHERE outcome = 'failed'
), counted AS (
  INSERT INTO queue_tally AS y (queue, scope, worker, failed, cancelled, prunable)
  SELECT queue, scope, 0, count(*) FILTER (WHERE outcome = 'failed'), count(*) FILTER (WHERE outcome = 'cancelled'),
         count(*) FILTER (WHERE prunable)
    FROM closed GROUP BY queue, scope ORDER BY queue, scope
  ON CONFLICT (queue, scope, worker) DO UPDATE
     SET failed = y.failed + excluded.failed, cancelled = y.cancelled + excluded.cancelled,
         prunable = y.prunable + excluded.prunable
), clustered AS (
  INSERT INTO dead_tally (queue, scope, kind, fingerprint, n, first_at, last_at, error, examples)
  SELECT queue, scope, kind, coalesce(fingerprint, ''), count(*), min(died_at), max(died_at), max(error),
         (array_agg(id ORDER BY id DESC))[1:5]
    FROM closed WHERE died_at IS NOT NULL GROUP BY 1, 2, 3, 4
)
SELECT id FROM closed;
