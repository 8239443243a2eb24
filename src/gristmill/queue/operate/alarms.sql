-- What alarms ask about queues and workers; every count stops at a bound.

-- name: stages
SELECT q.name, q.paused, q.concurrency, q.rate_count, q.rate_period, q.recent_at, q.recent_n,
       q.breaker_state, q.breaker_since, q.breaker_reason, q.breaker_since + q.breaker_reset AS breaker_until, c.now,
       (SELECT count(*)::int FROM (SELECT FROM ticket k WHERE k.queue = q.name AND k.worker IS NULL AND NOT k.suspect
                                    LIMIT %(most)s) x) AS ready,
       (SELECT count(*)::int FROM (SELECT FROM ticket k WHERE k.queue = q.name AND k.worker IS NULL AND k.suspect
                                    LIMIT %(most)s) x) AS suspects,
       coalesce(later.n, 0)::int AS later, coalesce(running.n, 0)::int AS running, coalesce(tally.n, 0)::bigint AS settled,
       (SELECT count(*)::int FROM worker w
         WHERE w.state = 'live' AND NOT w.solo AND q.name = ANY (w.queues) AND w.heartbeat_at >= c.now - w.lease_for) AS workers
  FROM (SELECT clock() AS now) c, queue q
  LEFT JOIN (SELECT queue, count(*) AS n FROM leased GROUP BY queue) running ON running.queue = q.name
  LEFT JOIN (SELECT queue, sum(completed + failed + skipped + cancelled + retried) AS n FROM queue_tally GROUP BY queue) tally
         ON tally.queue = q.name
  LEFT JOIN (SELECT queue, count(*) AS n FROM (SELECT queue FROM task WHERE wait = 'time' ORDER BY run_at LIMIT %(most)s) t
              GROUP BY queue) later ON later.queue = q.name
 ORDER BY q.name;

-- name: idle_workers
-- workers that live and hold nothing; what they have settled so far tells the next look whether they did something meanwhile
SELECT w.id, w.name, w.queues,
       coalesce((SELECT sum(t.completed + t.failed + t.skipped + t.cancelled + t.retried) FROM queue_tally t
                  WHERE t.worker = w.id), 0)::bigint AS settled
  FROM worker w
 WHERE w.state = 'live' AND NOT w.solo AND w.heartbeat_at >= clock() - w.lease_for
   AND NOT EXISTS (SELECT FROM leased k WHERE k.worker = w.id)
 ORDER BY w.id;

-- name: dead_letters
SELECT scope, count(*)::int AS n
  FROM (SELECT scope FROM task WHERE died_at IS NOT NULL ORDER BY died_at DESC LIMIT %(most)s) d
 GROUP BY scope ORDER BY scope;
