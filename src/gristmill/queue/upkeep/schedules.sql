-- Schedules: what is sent again and again, once, or after another.

-- name: lock
-- whoever changes schedules does it alone: firing one moves its followers, so rows cannot be locked in one order
SELECT pg_advisory_xact_lock(hashtext('gristmill.schedule'));

-- name: lock_if_due
SELECT pg_advisory_xact_lock(hashtext('gristmill.schedule'))
 WHERE EXISTS (SELECT FROM schedule WHERE enabled AND next_at <= clock());

-- name: now
SELECT clock();

-- name: one
SELECT name, kind, queue, payload::text AS payload, cron, zone, once_at, follows, delay, enabled, next_at, last_at,
       last_task, created_at, scope, patient
  FROM schedule WHERE scope = %(scope)s AND name = %(name)s FOR UPDATE;

-- name: all
SELECT name, kind, queue, payload::text AS payload, cron, zone, once_at, follows, delay, enabled, next_at, last_at,
       last_task, created_at, scope, patient
  FROM schedule ORDER BY next_at NULLS LAST, scope, name;

-- name: due
SELECT name, kind, queue, payload::text AS payload, cron, zone, once_at, follows, delay, enabled, next_at, last_at,
       last_task, created_at, scope, patient
  FROM schedule WHERE enabled AND next_at <= clock()
 ORDER BY next_at, scope, name LIMIT %(n)s FOR UPDATE SKIP LOCKED;

-- name: names
SELECT name FROM schedule WHERE scope = %(scope)s;

-- name: leaders
-- the one it follows, the one that follows, and so on
WITH RECURSIVE up AS (
  SELECT name, follows, 1 AS step FROM schedule WHERE scope = %(scope)s AND name = %(name)s
  UNION ALL
  SELECT s.name, s.follows, up.step + 1 FROM schedule s JOIN up ON s.scope = %(scope)s AND s.name = up.follows
)
SELECT name FROM up ORDER BY step;

-- name: followers
WITH RECURSIVE down AS (
  SELECT name, 1 AS step FROM schedule WHERE scope = %(scope)s AND follows = %(name)s
  UNION ALL
  SELECT s.name, down.step + 1 FROM schedule s JOIN down ON s.scope = %(scope)s AND s.follows = down.name
)
SELECT name FROM down ORDER BY step, name;

-- name: write
INSERT INTO schedule (name, kind, queue, scope, payload, cron, zone, once_at, follows, delay, enabled, next_at, patient)
VALUES (%(name)s, %(kind)s, %(queue)s, %(scope)s, %(payload)s::jsonb, %(cron)s, %(zone)s, %(once_at)s, %(follows)s, %(delay)s,
        %(enabled)s, %(next_at)s, %(patient)s)
ON CONFLICT (scope, name) DO UPDATE
   SET kind = excluded.kind, queue = excluded.queue, payload = excluded.payload, cron = excluded.cron,
       zone = excluded.zone, once_at = excluded.once_at, follows = excluded.follows, delay = excluded.delay,
       enabled = excluded.enabled, next_at = excluded.next_at, patient = excluded.patient;

-- name: remove
DELETE FROM schedule WHERE scope = %(scope)s AND name = %(name)s;

-- name: enable
UPDATE schedule SET enabled = %(enabled)s, next_at = %(next_at)s WHERE scope = %(scope)s AND name = %(name)s;

-- name: fired
UPDATE schedule SET last_at = %(now)s, last_task = %(task)s, next_at = %(next_at)s, enabled = %(enabled)s
 WHERE scope = %(scope)s AND name = %(name)s;

-- name: still_waits
-- whether nobody works on a task that is still to be done
SELECT EXISTS (SELECT FROM task t LEFT JOIN ticket k ON k.id = t.id
                WHERE t.id = %(task)s::bigint AND t.outcome IS NULL AND k.worker IS NULL);

-- name: follow
-- one that is waiting already keeps its time: else a leader that is faster than the delay would push it away for ever
UPDATE schedule SET next_at = coalesce(next_at, %(now)s + delay) WHERE scope = %(scope)s AND follows = %(name)s AND enabled;

-- name: ran
UPDATE schedule SET last_at = clock(), last_task = %(task)s WHERE scope = %(scope)s AND name = %(name)s;

-- name: next_fire
SELECT greatest(next_at - clock(), '0') FROM schedule WHERE enabled AND next_at IS NOT NULL ORDER BY next_at LIMIT 1;

-- name: tell
-- a scheduler that sleeps until its next run must look again
SELECT pg_notify('gristmill', 'schedule');
