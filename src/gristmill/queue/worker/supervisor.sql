-- What the supervisor has to know of suspects.

-- name: long_suspects
-- how many suspects have been running alone for long
SELECT count(*)
  FROM leased k JOIN worker w ON w.id = k.worker
 WHERE w.solo AND w.state = 'live' AND k.queue = ANY (%(queues)s) AND k.claimed_at < clock() - %(long)s::interval;
