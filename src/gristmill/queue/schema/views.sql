-- The queue as people see it.

-- What a person means by "the task": with its status, who runs it and how far it is.
CREATE VIEW tasks WITH (security_invoker) AS
SELECT t.id, t.queue, t.kind,
       coalesce(t.outcome, g.status, CASE WHEN k.worker IS NOT NULL THEN 'processing'::task_status ELSE 'pending' END) AS status,
       t.priority, t.foreground, t.position, t.created_at, t.run_at, t.wait,
       coalesce(k.claimed_at, t.started_at) AS started_at, t.finished_at,
       coalesce(k.attempts, t.attempts) AS attempts, t.max_attempts,
       coalesce(k.worker, t.worker) AS worker, k.lease, coalesce(k.suspect, false) AS suspect,
       w.heartbeat_at, w.heartbeat_at + w.lease_for AS lease_expires_at, coalesce(k.cancel, false) AS cancel_requested,
       t.parent, t.after, t.serial_key, t.unique_key, t.owner,
       p.current AS progress_current, p.total AS progress_total, p.message AS progress_message,
       t.payload, t.result, t.error, t.fingerprint, t.scope
  FROM task t
  LEFT JOIN ticket k ON k.id = t.id
  LEFT JOIN task_group g ON g.id = t.id
  LEFT JOIN worker w ON w.id = k.worker
  LEFT JOIN task_progress p ON p.task = t.id;

-- The tickets that a worker holds.
CREATE VIEW leased WITH (security_invoker) AS
SELECT k.*, l.queues AS asked
  FROM lease l CROSS JOIN LATERAL unnest(l.tasks) AS t(id)
  JOIN ticket k ON k.id = t.id AND k.worker = l.worker AND k.lease = l.number;

-- How many tasks each queue holds for each scope, and what ever happened in it: the sum of a few rows, never a count of tasks.
-- `open` are pending and processing ones; those that are kept are ended and not removed yet.
CREATE VIEW queue_count WITH (security_invoker) AS
SELECT queue, scope, sum(opened)::bigint AS opened, sum(completed)::bigint AS completed, sum(failed)::bigint AS failed,
       sum(skipped)::bigint AS skipped, sum(cancelled)::bigint AS cancelled, sum(retried)::bigint AS retried,
       sum(opened - completed - failed - skipped - cancelled)::bigint AS open,
       sum(completed + kept_completed)::bigint AS kept_completed, sum(failed + kept_failed)::bigint AS kept_failed,
       sum(skipped + kept_skipped)::bigint AS kept_skipped, sum(cancelled + kept_cancelled)::bigint AS kept_cancelled
  FROM (SELECT queue, scope, 0 AS opened, completed, failed, skipped, cancelled, retried,
               0 AS kept_completed, 0 AS kept_failed, 0 AS kept_skipped, 0 AS kept_cancelled
          FROM queue_tally
        UNION ALL
        SELECT queue, scope, opened, 0, 0, 0, 0, 0, completed, failed, skipped, cancelled
          FROM queue_depth) c
 GROUP BY queue, scope;
