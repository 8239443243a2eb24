-- Breakers: what they stand at, and time-outs.

-- name: breaker
SELECT name, breaker_state, breaker_threshold, breaker_minimum FROM queue WHERE name = %(name)s;

-- name: lock_breaker
SELECT name, breaker_state, breaker_threshold, breaker_minimum FROM queue WHERE name = %(name)s FOR NO KEY UPDATE;

-- name: note_time_outs
-- they are among the failed, which `report_health` has just written
UPDATE queue_health SET timed_out = timed_out + %(n)s
 WHERE queue = %(queue)s AND bucket = (SELECT max(bucket) FROM queue_health WHERE queue = %(queue)s);

-- name: time_outs
-- while so many tasks could have run into their time-out one after the other: how many did, and what else was done
SELECT coalesce(sum(h.timed_out), 0) AS timed_out, coalesce(sum(h.ok), 0) AS ok
  FROM queue_health h JOIN queue q ON q.name = h.queue
 WHERE h.queue = %(queue)s
   AND h.bucket > greatest(clock() - q.breaker_window - (%(n)s + 1) * q.timeout, q.breaker_since) - interval '5 s';
