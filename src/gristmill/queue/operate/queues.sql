-- Settings and state of queues.

-- name: pause
UPDATE queue SET paused = %(paused)s WHERE name = %(name)s RETURNING pg_notify('gristmill', 'queue ' || name);

-- name: change
-- what is not among the changes stays as it is; without a threshold there is no breaker to be open
UPDATE queue q
   SET (concurrency, rate_count, rate_period, max_attempts, retry_base, retry_cap, retries_first, timeout, clear_payload,
        keep_for, keep, breaker_threshold, breaker_window, breaker_minimum, breaker_reset, breaker_state, breaker_since,
        breaker_reason)
     = (SELECT n.concurrency, n.rate_count, n.rate_period, n.max_attempts, n.retry_base, n.retry_cap, n.retries_first,
               n.timeout, n.clear_payload, n.keep_for, n.keep, n.breaker_threshold, n.breaker_window, n.breaker_minimum,
               n.breaker_reset, CASE WHEN n.breaker_threshold IS NULL THEN 'closed' ELSE n.breaker_state END,
               CASE WHEN n.breaker_threshold IS NOT NULL THEN n.breaker_since END,
               CASE WHEN n.breaker_threshold IS NOT NULL THEN n.breaker_reason END
          FROM jsonb_populate_record(q, %(changes)s::jsonb) n)
 WHERE q.name = %(name)s
RETURNING pg_notify('gristmill', 'queue ' || q.name);

-- name: report
-- every count stops at `most`: what a look at the queues costs does not grow with them
WITH running AS MATERIALIZED (
  SELECT queue, count(*) AS n FROM leased GROUP BY queue
), waiting AS MATERIALIZED (
  SELECT queue, count(*) FILTER (WHERE wait = 'time') AS scheduled, count(*) FILTER (WHERE wait <> 'time') AS blocked
    FROM ((SELECT queue, wait FROM task WHERE wait = 'time' ORDER BY run_at LIMIT %(most)s + 1)
          UNION ALL (SELECT queue, wait FROM task WHERE wait = 'after' ORDER BY after LIMIT %(most)s + 1)
          UNION ALL (SELECT queue, wait FROM task WHERE wait = 'serial' ORDER BY serial_key, lane, id LIMIT %(most)s + 1)) w
   GROUP BY queue
), dead AS MATERIALIZED (
  SELECT queue, count(*) AS n
    FROM (SELECT queue FROM task WHERE died_at IS NOT NULL ORDER BY died_at DESC LIMIT %(most)s + 1) d GROUP BY queue
), total AS MATERIALIZED (
  SELECT queue, sum(completed)::bigint AS completed, sum(failed)::bigint AS failed, sum(skipped)::bigint AS skipped,
         sum(cancelled)::bigint AS cancelled, sum(retried)::bigint AS retried
    FROM queue_tally GROUP BY queue
)
SELECT q.*, c.now,
       (SELECT count(*) FROM (SELECT FROM ticket k WHERE k.queue = q.name AND k.worker IS NULL AND NOT k.suspect
                               LIMIT %(most)s + 1) x) AS ready,
       (SELECT count(*) FROM (SELECT FROM ticket k WHERE k.queue = q.name AND k.worker IS NULL AND k.suspect
                               LIMIT %(most)s + 1) x) AS suspects,
       coalesce(running.n, 0) AS processing, coalesce(waiting.scheduled, 0) AS scheduled,
       coalesce(waiting.blocked, 0) AS blocked, coalesce(dead.n, 0) AS dead,
       coalesce(total.completed, 0) AS completed, coalesce(total.failed, 0) AS failed,
       coalesce(total.skipped, 0) AS skipped, coalesce(total.cancelled, 0) AS cancelled,
       coalesce(total.retried, 0) AS retried,
       (SELECT min(t.created_at) FROM (
          WITH RECURSIVE head AS (  -- the first of every lane: one index descent each
            (SELECT k.lane, k.id FROM ticket k WHERE k.queue = q.name AND k.worker IS NULL AND NOT k.suspect
              ORDER BY k.lane, k.seq LIMIT 1)
            UNION ALL
            SELECT n.lane, n.id FROM head, LATERAL (
              SELECT k.lane, k.id FROM ticket k
               WHERE k.queue = q.name AND k.lane > head.lane AND k.worker IS NULL AND NOT k.suspect
               ORDER BY k.lane, k.seq LIMIT 1) n
          ) SELECT id FROM head) h JOIN task t ON t.id = h.id) AS oldest,
       ARRAY(SELECT w.name FROM worker w
              WHERE w.state = 'live' AND NOT w.solo AND q.name = ANY (w.queues) AND w.heartbeat_at >= c.now - w.lease_for
              ORDER BY w.id) AS workers
  FROM (SELECT clock() AS now) c, queue q
  LEFT JOIN running ON running.queue = q.name
  LEFT JOIN waiting ON waiting.queue = q.name
  LEFT JOIN dead ON dead.queue = q.name
  LEFT JOIN total ON total.queue = q.name
 ORDER BY q.name;
