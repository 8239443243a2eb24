-- The settings of queues, as workers read them.

-- name: configs
SELECT * FROM queue WHERE name = ANY (%(names)s);

-- name: lock_queue
SELECT name FROM queue WHERE name = %(name)s FOR NO KEY UPDATE;

-- name: limits
-- in a statement after the lock: a statement that waited for a lock still sees the tickets from before its wait
SELECT q.*, clock() AS now, (SELECT count(*) FROM leased k WHERE q.name = ANY (k.asked) AND k.queue = q.name) AS running
  FROM queue q WHERE q.name = %(name)s;
