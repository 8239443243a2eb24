-- What the doctor asks about workers.

-- name: workers
SELECT count(*) FILTER (WHERE state IN ('live', 'stopping') AND heartbeat_at >= clock() - lease_for) AS live,
       count(*) FILTER (WHERE state IN ('live', 'stopping') AND heartbeat_at < clock() - lease_for) AS silent,
       count(*) FILTER (WHERE state = 'lost' AND heartbeat_at > clock() - interval '1 hour') AS lost
  FROM worker;
