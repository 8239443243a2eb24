-- The workers, and what they hold.

-- name: workers
SELECT w.id, w.name, w.state, w.queues, w.concurrency, w.solo, w.started_at, w.heartbeat_at, w.lease_for,
       w.state IN ('live', 'stopping') AND w.heartbeat_at < c.now - w.lease_for AS silent,
       (SELECT count(*) FROM leased k WHERE k.worker = w.id) AS tasks
  FROM (SELECT clock() AS now) c, worker w
 WHERE w.state IN ('live', 'stopping') OR (w.state = 'lost' AND w.heartbeat_at > c.now - interval '1 hour')
 ORDER BY w.state = 'lost', w.id;
