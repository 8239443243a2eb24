-- Everything that decides why a task is where it is.

-- name: facts
SELECT c.now, v.id, v.queue, v.kind, v.status, v.wait, v.created_at, v.run_at, v.started_at, v.finished_at, v.attempts,
       coalesce(v.max_attempts, q.max_attempts) AS max_attempts, v.suspect, v.cancel_requested, v.result, v.error, v.fingerprint,
       v.progress_current, v.progress_total, v.progress_message, v.serial_key,
       v.worker, w.name AS worker_name, w.state AS worker_state, w.heartbeat_at, v.lease_expires_at,
       v.after, a.status AS after_status, a.error AS after_error,
       h.task AS head, hv.status AS head_status,
       q.paused, q.concurrency, q.rate_count, q.rate_period, q.recent_at, q.recent_n,
       q.breaker_state, q.breaker_since, q.breaker_since + q.breaker_reset AS breaker_until, q.breaker_reason,
       -- suspects and other tasks are counted apart, each by an index of its own; ORDER BY makes the planner use it
       CASE WHEN k.id IS NULL OR k.worker IS NOT NULL THEN NULL WHEN k.suspect THEN
         (SELECT count(*) FROM (SELECT FROM ticket o
                                 WHERE o.queue = k.queue AND o.worker IS NULL AND o.suspect
                                   AND (o.lane, o.seq, o.id) < (k.lane, k.seq, k.id)
                                 ORDER BY o.lane DESC, o.seq DESC, o.id DESC LIMIT %(most)s + 1) x) ELSE
         (SELECT count(*) FROM (SELECT FROM ticket o
                                 WHERE o.queue = k.queue AND o.worker IS NULL AND NOT o.suspect
                                   AND (o.lane, o.seq, o.id) < (k.lane, k.seq, k.id)
                                 ORDER BY o.lane DESC, o.seq DESC, o.id DESC LIMIT %(most)s + 1) x) END AS ahead,
       CASE WHEN q.concurrency IS NOT NULL THEN
         count_running(q.name) END AS running,
       (SELECT count(*) FROM worker s WHERE s.state = 'live' AND NOT s.solo AND v.queue = ANY (s.queues)
           AND s.heartbeat_at >= c.now - s.lease_for) AS workers,
       (SELECT count(*) FROM worker s WHERE s.state = 'live' AND s.solo AND v.queue = ANY (s.queues)
           AND s.heartbeat_at >= c.now - s.lease_for) AS solos,
       g.sealed, g.pending, g.processing, g.completed, g.failed, g.skipped, g.cancelled,
       ARRAY(SELECT f.id FROM task f WHERE g.failed > 0 AND f.parent = g.id AND f.outcome = 'failed' ORDER BY f.id LIMIT 5) AS failing
  FROM (SELECT clock() AS now) c, tasks v
  LEFT JOIN ticket k ON k.id = v.id
  LEFT JOIN queue q ON q.name = v.queue
  LEFT JOIN worker w ON w.id = v.worker
  LEFT JOIN tasks a ON a.id = v.after AND v.wait = 'after'
  LEFT JOIN serial_head h ON h.key = v.serial_key AND h.scope = v.scope AND v.wait = 'serial'
  LEFT JOIN tasks hv ON hv.id = h.task
  LEFT JOIN task_group g ON g.id = v.id
 WHERE v.id = %(id)s;
