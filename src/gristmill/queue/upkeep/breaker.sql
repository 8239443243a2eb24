-- Breakers: their state, and the health of queues that decides it.

-- name: breaker
SELECT name, breaker_state, breaker_threshold, breaker_minimum FROM queue WHERE name = %(name)s;

-- name: lock_breaker
SELECT name, breaker_state, breaker_threshold, breaker_minimum FROM queue WHERE name = %(name)s FOR NO KEY UPDATE;

-- name: note_time_outs
-- they are among the failed that `report_health` has just written
UPDATE queue_health SET timed_out = timed_out + %(n)s
 WHERE queue = %(queue)s AND bucket = (SELECT max(bucket) FROM queue_health WHERE queue = %(queue)s);

-- name: time_outs
-- over the time in which `n` tasks can run into their time-out one after the other: how many did, and how many succeeded
SELECT coalesce(sum(h.timed_out), 0) AS timed_out, coalesce(sum(h.ok), 0) AS ok
  FROM queue_health h JOIN queue q ON q.name = h.queue
 WHERE h.queue = %(queue)s
   AND h.bucket > greatest(clock() - q.breaker_window - (%(n)s + 1) * q.timeout, q.breaker_since) - interval '5 s';

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
