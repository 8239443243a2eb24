-- Dead letters.

-- name: oldest
SELECT min(died_at) FROM task WHERE died_at IS NOT NULL;

-- name: oldest_of_scopes
SELECT min(d.died_at) FROM unnest(%(scopes)s::int[]) AS s(id), LATERAL (
  SELECT died_at FROM task WHERE scope = s.id AND died_at IS NOT NULL ORDER BY scope, died_at, task.id LIMIT 1) d;

-- name: letters
SELECT id, queue, kind, died_at, attempts, worker, parent, owner, error, fingerprint, payload
  FROM task
 WHERE died_at IS NOT NULL AND (%(queue)s::text IS NULL OR queue = %(queue)s)
   AND (%(kind)s::text IS NULL OR kind = %(kind)s) AND (%(fingerprint)s::text IS NULL OR fingerprint = %(fingerprint)s)
   AND (%(since)s::timestamptz IS NULL OR died_at >= %(since)s)
 ORDER BY died_at DESC, id DESC LIMIT %(limit)s;

-- name: clusters
-- from counters; the examples are those of the latest that are still dead
WITH cluster AS MATERIALIZED (
  SELECT fingerprint, sum(n)::bigint AS n, (array_agg(error ORDER BY last_at DESC NULLS LAST))[1] AS sample,
         array_agg(DISTINCT queue ORDER BY queue) AS queues, array_agg(DISTINCT kind ORDER BY kind) AS kinds,
         min(first_at) AS first, max(last_at) AS last
    FROM dead_tally
   WHERE (%(queue)s::text IS NULL OR queue = %(queue)s) AND (%(scopes)s::int[] IS NULL OR scope = ANY (%(scopes)s::int[]))
   GROUP BY fingerprint HAVING sum(n) > 0
   ORDER BY sum(n) DESC, max(last_at) DESC LIMIT %(limit)s
), named AS MATERIALIZED (
  SELECT d.fingerprint, e.id, row_number() OVER (PARTITION BY d.fingerprint ORDER BY e.id DESC) AS place
    FROM dead_tally d JOIN cluster USING (fingerprint), unnest(d.examples) AS e(id)
   WHERE (%(queue)s::text IS NULL OR d.queue = %(queue)s)
     AND (%(scopes)s::int[] IS NULL OR d.scope = ANY (%(scopes)s::int[]))
), example AS MATERIALIZED (
  SELECT n.fingerprint, (array_agg(t.id ORDER BY t.died_at DESC, t.id DESC))[1:5] AS ids
    FROM named n JOIN task t ON t.id = n.id AND t.died_at IS NOT NULL WHERE n.place <= 15 GROUP BY n.fingerprint
)
SELECT c.*, coalesce(e.ids, '{}') AS examples
  FROM cluster c LEFT JOIN example e USING (fingerprint) ORDER BY c.n DESC, c.last DESC;

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
   AND (%(queues)s::text[] IS NULL OR queue = ANY (%(queues)s::text[]))
   AND (died_at < (SELECT clock()) - %(older_than)s::interval OR (died_at, id) <= (SELECT died_at, id FROM edge))
 ORDER BY died_at, id LIMIT %(batch)s FOR UPDATE SKIP LOCKED;
