-- What happened in queues over time.

-- name: trend
-- the flow of each step; what was counted since the last sample belongs to the present one
WITH flow AS (
  SELECT date_bin(%(step)s::interval, at, %(origin)s::timestamptz) AS at, opened, completed, failed, skipped, cancelled, retried, dead
    FROM queue_sample
   WHERE at >= %(since)s AND (%(queue)s::text IS NULL OR queue = %(queue)s)
     AND (%(scopes)s::int[] IS NULL OR scope = ANY (%(scopes)s::int[]))
  UNION ALL
  SELECT date_bin(%(step)s::interval, %(now)s::timestamptz, %(origin)s::timestamptz), t.opened - coalesce(s.opened, 0),
         t.completed - coalesce(s.completed, 0), t.failed - coalesce(s.failed, 0), t.skipped - coalesce(s.skipped, 0),
         t.cancelled - coalesce(s.cancelled, 0), t.retried - coalesce(s.retried, 0), t.kept_failed - coalesce(s.dead, 0)
    FROM queue_count t LEFT JOIN queue_sampled s ON s.queue = t.queue AND s.scope = t.scope
   WHERE (%(queue)s::text IS NULL OR t.queue = %(queue)s) AND (%(scopes)s::int[] IS NULL OR t.scope = ANY (%(scopes)s::int[]))
)
SELECT at, sum(opened)::bigint AS opened, sum(completed)::bigint AS completed, sum(failed)::bigint AS failed,
       sum(skipped)::bigint AS skipped, sum(cancelled)::bigint AS cancelled, sum(retried)::bigint AS retried,
       sum(dead)::bigint AS dead
  FROM flow GROUP BY at ORDER BY at;

-- name: sparks
-- tasks that ended and that failed in each step, for every queue
SELECT queue, date_bin(%(step)s::interval, at, %(origin)s::timestamptz) AS at,
       sum(completed + skipped + cancelled + failed)::bigint AS ended, sum(failed)::bigint AS failed
  FROM queue_sample
 WHERE at >= %(since)s AND (%(scopes)s::int[] IS NULL OR scope = ANY (%(scopes)s::int[]))
 GROUP BY 1, 2 ORDER BY 1, 2;

-- name: levels
SELECT coalesce(sum(open), 0)::bigint AS open, coalesce(sum(kept_failed), 0)::bigint AS dead
  FROM queue_count
 WHERE (%(queue)s::text IS NULL OR queue = %(queue)s) AND (%(scopes)s::int[] IS NULL OR scope = ANY (%(scopes)s::int[]));

-- name: now
SELECT clock();
