-- Writes down what happened in each queue in every minute, and makes hours of old minutes.

-- name: lock
SELECT pg_try_advisory_xact_lock(hashtext('gristmill.sampler')) AS ours;

-- name: sample
-- what was counted since the last sample belongs to the minute that is ending: `back` before now
WITH total AS MATERIALIZED (
  SELECT queue, scope, opened, completed, failed, skipped, cancelled, retried, kept_failed AS dead FROM queue_count
), changed AS MATERIALIZED (
  SELECT t.queue, t.scope, t.opened - coalesce(s.opened, 0) AS opened, t.completed - coalesce(s.completed, 0) AS completed,
         t.failed - coalesce(s.failed, 0) AS failed, t.skipped - coalesce(s.skipped, 0) AS skipped,
         t.cancelled - coalesce(s.cancelled, 0) AS cancelled, t.retried - coalesce(s.retried, 0) AS retried,
         t.dead - coalesce(s.dead, 0) AS dead
    FROM total t LEFT JOIN queue_sampled s ON s.queue = t.queue AND s.scope = t.scope
   WHERE (t.opened, t.completed, t.failed, t.skipped, t.cancelled, t.retried, t.dead)
         IS DISTINCT FROM (s.opened, s.completed, s.failed, s.skipped, s.cancelled, s.retried, s.dead)
), kept AS (
  INSERT INTO queue_sampled AS s (queue, scope, opened, completed, failed, skipped, cancelled, retried, dead)
  SELECT t.* FROM total t JOIN changed c ON c.queue = t.queue AND c.scope = t.scope
  ON CONFLICT (queue, scope) DO UPDATE
     SET opened = excluded.opened, completed = excluded.completed, failed = excluded.failed, skipped = excluded.skipped,
         cancelled = excluded.cancelled, retried = excluded.retried, dead = excluded.dead
)
INSERT INTO queue_sample AS s (queue, scope, at, opened, completed, failed, skipped, cancelled, retried, dead)
SELECT queue, scope, date_trunc('minute', clock() - %(back)s::interval), opened, completed, failed, skipped, cancelled, retried, dead
  FROM changed
ON CONFLICT (at, queue, scope, hourly) DO UPDATE
   SET opened = s.opened + excluded.opened, completed = s.completed + excluded.completed, failed = s.failed + excluded.failed,
       skipped = s.skipped + excluded.skipped, cancelled = s.cancelled + excluded.cancelled,
       retried = s.retried + excluded.retried, dead = s.dead + excluded.dead;

-- name: roll_up
-- whole hours of minutes that are older than minutes are kept
WITH gone AS (
  DELETE FROM queue_sample
   WHERE NOT hourly AND at < date_trunc('hour', clock() - %(keep_minutes)s::interval) RETURNING *
)
INSERT INTO queue_sample AS s (queue, scope, at, hourly, opened, completed, failed, skipped, cancelled, retried, dead)
SELECT queue, scope, date_trunc('hour', at), true, sum(opened), sum(completed), sum(failed), sum(skipped), sum(cancelled),
       sum(retried), sum(dead)
  FROM gone GROUP BY 1, 2, 3
ON CONFLICT (at, queue, scope, hourly) DO UPDATE
   SET opened = s.opened + excluded.opened, completed = s.completed + excluded.completed, failed = s.failed + excluded.failed,
       skipped = s.skipped + excluded.skipped, cancelled = s.cancelled + excluded.cancelled,
       retried = s.retried + excluded.retried, dead = s.dead + excluded.dead;

-- name: old_hours
DELETE FROM queue_sample WHERE at < clock() - %(keep_hours)s::interval;

-- name: old_runs
DELETE FROM schedule_run WHERE at < clock() - %(keep_hours)s::interval;

-- name: old_bulks
-- with what their tasks were before: from then on they cannot be undone
DELETE FROM bulk_action WHERE finished_at < clock() - %(keep_hours)s::interval;

-- name: until_next_minute
SELECT extract(epoch FROM date_trunc('minute', clock()) + interval '1 min' - clock())::float8;
