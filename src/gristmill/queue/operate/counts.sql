-- Exact numbers of tasks, from counters.

-- name: own_scopes
SELECT own_scopes();

-- name: counts
-- one statement, so that all numbers are of the same moment; running tasks are as few as workers have hands
WITH running AS MATERIALIZED (
  SELECT k.queue, count(*) AS n FROM leased k
   WHERE %(scopes)s::int[] IS NULL OR (SELECT t.scope FROM task t WHERE t.id = k.id) = ANY (%(scopes)s::int[])
   GROUP BY k.queue
), total AS MATERIALIZED (
  SELECT queue, sum(open)::bigint AS open, sum(kept_completed)::bigint AS completed, sum(kept_failed)::bigint AS failed,
         sum(kept_skipped)::bigint AS skipped, sum(kept_cancelled)::bigint AS cancelled, sum(opened)::bigint AS opened,
         sum(completed)::bigint AS ever_completed, sum(failed)::bigint AS ever_failed, sum(skipped)::bigint AS ever_skipped,
         sum(cancelled)::bigint AS ever_cancelled, sum(retried)::bigint AS ever_retried
    FROM queue_count WHERE %(scopes)s::int[] IS NULL OR scope = ANY (%(scopes)s::int[]) GROUP BY queue
)
SELECT q.name AS queue, coalesce(t.open, 0) - coalesce(r.n, 0) AS pending, coalesce(r.n, 0) AS processing,
       coalesce(t.completed, 0) AS completed, coalesce(t.failed, 0) AS failed, coalesce(t.skipped, 0) AS skipped,
       coalesce(t.cancelled, 0) AS cancelled, coalesce(t.opened, 0) AS opened, coalesce(t.ever_completed, 0) AS ever_completed,
       coalesce(t.ever_failed, 0) AS ever_failed, coalesce(t.ever_skipped, 0) AS ever_skipped,
       coalesce(t.ever_cancelled, 0) AS ever_cancelled, coalesce(t.ever_retried, 0) AS ever_retried
  FROM queue q LEFT JOIN total t ON t.queue = q.name LEFT JOIN running r ON r.queue = q.name
 WHERE %(scopes)s::int[] IS NULL OR t.queue IS NOT NULL  -- a client learns of no queue that others alone use
 ORDER BY q.name;

-- name: oldest_pending
-- the oldest with a ticket, and the oldest of each queue that waits for something
SELECT min(id) FROM (
  (SELECT id FROM ticket WHERE worker IS NULL ORDER BY id LIMIT 1)
  UNION ALL
  SELECT w.id FROM queue q, LATERAL (
    SELECT t.id FROM task t WHERE t.queue = q.name AND t.wait IS NOT NULL ORDER BY t.queue, t.id LIMIT 1) w) o;

-- name: has_open
SELECT coalesce(sum(open), 0) > 0 FROM queue_count WHERE scope = ANY (%(scopes)s::int[]);

-- name: oldest_pending_of_scopes
-- among the oldest tasks of some scopes, so many of each: the first that is pending, and how far was looked
WITH own AS MATERIALIZED (
  SELECT o.id, o.outcome, o.queue FROM unnest(%(scopes)s::int[]) AS s(id), LATERAL (
    SELECT t.id, t.outcome, t.queue FROM task t WHERE t.scope = s.id AND t.scope <> 1 AND t.id > %(after)s
     ORDER BY t.scope, t.id LIMIT %(look)s) o
   ORDER BY o.id LIMIT %(look)s
)
SELECT (SELECT min(id) FROM own WHERE outcome IS NULL AND queue IS NOT NULL
           AND NOT EXISTS (SELECT FROM ticket k WHERE k.id = own.id AND k.worker IS NOT NULL)) AS found,
       (SELECT max(id) FROM own) AS last;
