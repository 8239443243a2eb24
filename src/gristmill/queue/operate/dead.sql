-- Dead letters.

-- name: stats
SELECT queue, count(*) AS n, min(died_at) AS oldest FROM task WHERE died_at IS NOT NULL GROUP BY queue ORDER BY n DESC, queue;

-- name: letters
SELECT id, queue, kind, died_at, attempts, worker, parent, owner, error, fingerprint, payload
  FROM task
 WHERE died_at IS NOT NULL AND (%(queue)s::text IS NULL OR queue = %(queue)s)
   AND (%(kind)s::text IS NULL OR kind = %(kind)s) AND (%(fingerprint)s::text IS NULL OR fingerprint = %(fingerprint)s)
   AND (%(since)s::timestamptz IS NULL OR died_at >= %(since)s)
 ORDER BY died_at DESC, id DESC LIMIT %(limit)s;

-- name: clusters
SELECT fingerprint, count(*) AS n, (array_agg(error ORDER BY died_at DESC, id DESC))[1] AS sample,
       array_agg(DISTINCT queue ORDER BY queue) AS queues, array_agg(DISTINCT kind ORDER BY kind) AS kinds,
       min(died_at) AS first, max(died_at) AS last, (array_agg(id ORDER BY died_at DESC, id DESC))[1:5] AS examples
  FROM task WHERE died_at IS NOT NULL AND (%(queue)s::text IS NULL OR queue = %(queue)s)
 GROUP BY fingerprint ORDER BY n DESC, last DESC;

-- name: to_replay
SELECT id, died_at FROM task
 WHERE died_at IS NOT NULL AND (%(queue)s::text IS NULL OR queue = %(queue)s)
   AND (%(fingerprint)s::text IS NULL OR fingerprint = %(fingerprint)s)
   AND (%(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s::bigint[]))
   AND (%(died_at)s::timestamptz IS NULL OR (died_at, id) > (%(died_at)s, %(id)s))
 ORDER BY died_at, id LIMIT %(batch)s;

-- name: to_purge
-- too old, or more than are kept; those in groups go with their group, those with an owner with their owner
WITH edge AS MATERIALIZED (
  SELECT died_at, id FROM task WHERE died_at IS NOT NULL AND parent IS NULL AND owner IS NULL
   ORDER BY died_at DESC, id DESC OFFSET %(keep)s LIMIT 1
)
SELECT id FROM task
 WHERE died_at IS NOT NULL AND parent IS NULL AND owner IS NULL
   AND (died_at < (SELECT clock()) - %(older_than)s::interval OR (died_at, id) <= (SELECT died_at, id FROM edge))
 ORDER BY died_at, id LIMIT %(batch)s FOR UPDATE SKIP LOCKED;
