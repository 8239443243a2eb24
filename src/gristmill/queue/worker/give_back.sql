-- Gives back claims that never started.

-- name: give_back_claims
-- processing -> pending: claimed but never started, so no attempt is used
WITH back AS (
  UPDATE ticket k
     SET worker = NULL, lease = NULL, claimed_at = NULL, attempts = k.attempts - 1
    FROM unnest(%(ids)s::bigint[], %(leases)s::bigint[]) AS g(id, lease)
   WHERE k.id = g.id AND k.worker = %(worker)s AND k.lease = g.lease
  RETURNING k.id, k.queue, k.lane, k.seq, k.cancel
), groups AS (
  SELECT bubble(array_agg(parent), array_agg('processing'::task_status), array_agg('pending'::task_status), array_agg(n))
    FROM (SELECT t.parent, count(*)::int AS n FROM back JOIN task t USING (id) WHERE t.parent IS NOT NULL GROUP BY 1) p
  HAVING count(*) > 0
)
SELECT count(*) AS n, array_agg(id) FILTER (WHERE cancel) AS cancelled, (SELECT count(*) FROM groups) AS groups,
       (SELECT count(pg_notify('gristmill', 'ready ' || queue || ' ' || lane || ' ' || seq)::text)
          FROM (SELECT queue, lane, min(seq) AS seq FROM back GROUP BY queue, lane) f) AS ready
  FROM back;

-- name: give_back_leases
-- processing -> pending: all tasks of these leases, never started, so no attempt is used
WITH back AS (
  UPDATE ticket k
     SET worker = NULL, lease = NULL, claimed_at = NULL, attempts = k.attempts - 1
   WHERE k.id IN (SELECT unnest(tasks) FROM lease WHERE worker = %(worker)s AND number = ANY (%(leases)s::bigint[]))
     AND k.worker = %(worker)s AND k.lease = ANY (%(leases)s::bigint[])
  RETURNING k.id, k.queue, k.lane, k.seq, k.suspect, k.cancel
), groups AS (
  SELECT bubble(array_agg(parent), array_agg('processing'::task_status), array_agg('pending'::task_status), array_agg(n))
    FROM (SELECT t.parent, count(*)::int AS n FROM back JOIN task t USING (id) WHERE t.parent IS NOT NULL GROUP BY 1) p
  HAVING count(*) > 0
)
SELECT count(*) AS n, array_agg(id) FILTER (WHERE cancel) AS cancelled, (SELECT count(*) FROM groups) AS groups,
       (SELECT count(pg_notify('gristmill', 'ready ' || queue || ' ' || lane || ' ' || seq)::text)
          FROM (SELECT queue, lane, min(seq) AS seq FROM back WHERE NOT suspect GROUP BY queue, lane) f) AS ready,
       (SELECT count(pg_notify('gristmill', 'suspects')::text) FROM (SELECT FROM back WHERE suspect LIMIT 1) s) AS suspects
  FROM back;
