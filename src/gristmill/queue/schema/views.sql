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
