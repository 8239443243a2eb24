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

-- name: names
SELECT name FROM queue ORDER BY name;

-- name: report
-- pending and ended tasks come from counters; what pending ones wait for is counted, and every such count stops at `most`
WITH running AS MATERIALIZED (
  SELECT queue, count(*) AS n FROM leased GROUP BY queue
), total AS MATERIALIZED (
  SELECT queue, sum(open)::bigint AS open, sum(completed)::bigint AS completed, sum(failed)::bigint AS failed,
         sum(skipped)::bigint AS skipped, sum(cancelled)::bigint AS cancelled, sum(retried)::bigint AS retried,
         sum(kept_completed)::bigint AS kept_completed, sum(kept_failed)::bigint AS kept_failed,
         sum(kept_skipped)::bigint AS kept_skipped, sum(kept_cancelled)::bigint AS kept_cancelled
    FROM queue_count GROUP BY queue
)
SELECT q.*, c.now,
       (SELECT count(*) FROM (SELECT FROM ticket k WHERE k.queue = q.name AND k.worker IS NULL AND NOT k.suspect
                               LIMIT %(most)s + 1) x) AS ready,
       (SELECT count(*) FROM (SELECT FROM ticket k WHERE k.queue = q.name AND k.worker IS NULL AND k.suspect
                               LIMIT %(most)s + 1) x) AS suspects,
       coalesce(running.n, 0) AS processing, waiting.scheduled, waiting.blocked,
       coalesce(total.open, 0) - coalesce(running.n, 0) AS pending,
       coalesce(total.completed, 0) AS completed, coalesce(total.failed, 0) AS failed,
       coalesce(total.skipped, 0) AS skipped, coalesce(total.cancelled, 0) AS cancelled,
       coalesce(total.retried, 0) AS retried, coalesce(total.kept_completed, 0) AS kept_completed,
       coalesce(total.kept_failed, 0) AS kept_failed, coalesce(total.kept_skipped, 0) AS kept_skipped,
       coalesce(total.kept_cancelled, 0) AS kept_cancelled,
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
 CROSS JOIN LATERAL (
   SELECT count(*) FILTER (WHERE w.wait = 'time') AS scheduled, count(*) FILTER (WHERE w.wait <> 'time') AS blocked
     FROM (SELECT t.wait FROM task t WHERE t.queue = q.name AND t.wait IS NOT NULL
            ORDER BY t.queue, t.id LIMIT %(most)s + 1) w) waiting
  LEFT JOIN running ON running.queue = q.name
  LEFT JOIN total ON total.queue = q.name
 ORDER BY q.name;
