-- Removes old tasks, workers and limiters, a little at a time.

-- name: fold_tallies
-- adds the counts of ended workers to the janitor's row (-1), or every sum would go over all workers there ever were; only the
-- holder of a queue's sweep writes that row, so nobody waits for it
WITH ended AS MATERIALIZED (
  SELECT y.queue, y.scope, y.worker FROM queue_tally y
   WHERE y.worker > 0 AND y.queue = ANY (%(queues)s)
     AND NOT EXISTS (SELECT FROM worker w WHERE w.id = y.worker AND w.state IN ('live', 'stopping'))
   ORDER BY y.queue, y.scope, y.worker LIMIT %(batch)s FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM queue_tally y USING ended e
   WHERE y.queue = e.queue AND y.scope = e.scope AND y.worker = e.worker RETURNING y.*
)
INSERT INTO queue_tally AS y (queue, scope, worker, completed, failed, skipped, cancelled, retried, prunable)
SELECT queue, scope, -1, sum(completed), sum(failed), sum(skipped), sum(cancelled), sum(retried), sum(prunable)
  FROM gone GROUP BY queue, scope ORDER BY queue, scope
ON CONFLICT (queue, scope, worker) DO UPDATE
   SET completed = y.completed + excluded.completed, failed = y.failed + excluded.failed,
       skipped = y.skipped + excluded.skipped, cancelled = y.cancelled + excluded.cancelled,
       retried = y.retried + excluded.retried, prunable = y.prunable + excluded.prunable;

-- name: fold_depths
-- makes one row of the many that were added since, or every sum would go over all of them
WITH many AS MATERIALIZED (
  SELECT queue FROM queue_depth WHERE queue = ANY (%(queues)s) GROUP BY queue HAVING count(*) > count(DISTINCT scope) + %(least)s
), gone AS (
  DELETE FROM queue_depth d USING many WHERE d.queue = many.queue RETURNING d.*
)
INSERT INTO queue_depth (queue, scope, opened, completed, failed, skipped, cancelled)
SELECT queue, scope, sum(opened), sum(completed), sum(failed), sum(skipped), sum(cancelled) FROM gone GROUP BY queue, scope;

-- name: fold_dead
-- as fold_depths; a cluster of which nothing is left goes
WITH many AS MATERIALIZED (
  SELECT queue FROM dead_tally WHERE queue = ANY (%(queues)s)
   GROUP BY queue HAVING count(*) > count(DISTINCT (scope, kind, fingerprint)) + %(least)s
), gone AS (
  DELETE FROM dead_tally d USING many WHERE d.queue = many.queue RETURNING d.*
), named AS (
  SELECT queue, scope, kind, fingerprint, (array_agg(DISTINCT id ORDER BY id DESC))[1:5] AS examples
    FROM gone, unnest(gone.examples) AS id GROUP BY queue, scope, kind, fingerprint
), summed AS (
  SELECT queue, scope, kind, fingerprint, sum(n) AS n, min(first_at) AS first_at, max(last_at) AS last_at,
         (array_agg(error ORDER BY last_at DESC NULLS LAST))[1] AS error
    FROM gone GROUP BY queue, scope, kind, fingerprint HAVING sum(n) <> 0
)
INSERT INTO dead_tally (queue, scope, kind, fingerprint, n, first_at, last_at, error, examples)
SELECT s.*, coalesce(named.examples, '{}') FROM summed s LEFT JOIN named USING (queue, scope, kind, fingerprint);

-- name: new_sweeps
INSERT INTO sweep (queue)
SELECT n.queue FROM (SELECT name AS queue FROM queue UNION ALL SELECT '') n
 WHERE NOT EXISTS (SELECT FROM sweep s WHERE s.queue = n.queue)
ON CONFLICT DO NOTHING;

-- name: sweeps
-- whoever holds the row of a queue cleans it; others look elsewhere
SELECT queue FROM sweep ORDER BY queue DESC FOR UPDATE SKIP LOCKED;

-- name: sweep_queue
-- looks through the next `look` tasks of a queue, oldest first, and removes up to `n` finished roots that are older than
-- they are kept or more than are kept; it goes on there next time, and from the start after the end
WITH rule AS MATERIALIZED (
  SELECT q.name, c.now, c.now - coalesce(q.keep_for, %(keep_for)s::interval) AS before, s.mark,
         greatest(0, (SELECT coalesce(sum(y.prunable), 0) FROM queue_tally y WHERE y.queue = q.name)
                     - coalesce(q.keep, %(keep)s)) AS excess
    FROM queue q JOIN sweep s ON s.queue = q.name, (SELECT clock() AS now) c WHERE q.name = %(queue)s
), seen AS MATERIALIZED (
  SELECT t.id, t.finished_at,
         t.outcome IN ('completed', 'skipped', 'cancelled') AND t.parent IS NULL AND t.owner IS NULL
           AND (t.unique_held IS NOT TRUE OR t.unique_until IS NULL OR t.unique_until <= rule.now) AS prunable
    FROM rule, LATERAL (  -- written so that only the index on (queue, id) fits: by id alone it would read other queues, too
      SELECT * FROM task WHERE (queue, id) > (rule.name, rule.mark) AND queue <= rule.name
       ORDER BY queue, id LIMIT %(look)s) t
), doomed AS MATERIALIZED (
  SELECT p.id FROM rule, (SELECT id, finished_at, row_number() OVER (ORDER BY id) AS place FROM seen WHERE prunable) p
   WHERE p.finished_at < rule.before OR p.place <= rule.excess
   ORDER BY p.id LIMIT %(n)s
), gone AS (
  DELETE FROM task
   WHERE id = ANY (ARRAY(SELECT id FROM doomed)) AND outcome IN ('completed', 'skipped', 'cancelled') AND parent IS NULL
  RETURNING id, scope, outcome
), progress AS (
  DELETE FROM task_progress WHERE task = ANY (ARRAY(SELECT id FROM gone))
), failures AS (
  DELETE FROM task_failure WHERE task = ANY (ARRAY(SELECT id FROM gone))
), counted AS (
  INSERT INTO queue_tally AS y (queue, scope, worker, prunable)
  SELECT %(queue)s, scope, -1, -count(*) FROM gone GROUP BY scope ORDER BY scope
  ON CONFLICT (queue, scope, worker) DO UPDATE SET prunable = y.prunable + excluded.prunable
), removed AS (
  INSERT INTO queue_depth (queue, scope, completed, skipped, cancelled)
  SELECT %(queue)s, scope, -count(*) FILTER (WHERE outcome = 'completed'), -count(*) FILTER (WHERE outcome = 'skipped'),
         -count(*) FILTER (WHERE outcome = 'cancelled')
    FROM gone GROUP BY scope
), place AS MATERIALIZED (
  SELECT CASE WHEN (SELECT count(*) FROM doomed) = %(n)s THEN (SELECT max(id) FROM doomed)
              WHEN (SELECT count(*) FROM seen) = %(look)s THEN (SELECT max(id) FROM seen)
              ELSE 0 END AS mark
), marked AS (
  UPDATE sweep s SET mark = place.mark FROM place WHERE s.queue = %(queue)s AND s.mark <> place.mark
)
SELECT (SELECT count(*) FROM gone) AS removed,
       place.mark > 0 AND ((SELECT count(*) FROM gone) = %(n)s OR rule.excess > (SELECT count(*) FROM gone)) AS more
  FROM rule, place;

-- name: next_groups
-- root groups that ended long enough ago; a failed group is kept as long as dead letters are
WITH rule AS MATERIALIZED (
  SELECT clock() - %(keep_for)s::interval AS before,
         clock() - greatest(%(keep_for)s::interval, %(dead_keep_for)s::interval) AS dead_before, mark
    FROM sweep WHERE queue = ''
)
SELECT t.id, t.parent IS NULL AND t.owner IS NULL
             AND t.finished_at < CASE WHEN t.outcome = 'failed' THEN rule.dead_before ELSE rule.before END AS over
  FROM rule, LATERAL (SELECT * FROM task WHERE queue IS NULL AND id > rule.mark ORDER BY queue, id LIMIT %(look)s) t
 ORDER BY t.id;

-- name: mark_groups
UPDATE sweep SET mark = %(mark)s WHERE queue = '' AND mark <> %(mark)s;

-- name: leaves_within
-- up to `n` tasks of a tree: first plain tasks, then empty groups, the deepest first
WITH RECURSIVE tree AS (
  SELECT id FROM task WHERE id = %(id)s
  UNION ALL
  SELECT t.id FROM tree JOIN task t ON t.parent = tree.id WHERE t.queue IS NULL
), leaf AS (
  SELECT t.id FROM tree JOIN task t ON t.parent = tree.id WHERE t.queue IS NOT NULL LIMIT %(n)s
)
SELECT id FROM leaf
UNION ALL
(SELECT id FROM tree WHERE NOT EXISTS (SELECT FROM leaf) ORDER BY id DESC LIMIT %(n)s);

-- name: owned
-- the tasks and groups of these owners, with all tasks within those groups
WITH RECURSIVE tree AS (
  SELECT id, queue, outcome FROM task WHERE owner = ANY (%(owners)s)
  UNION
  SELECT t.id, t.queue, t.outcome FROM tree JOIN task t ON t.parent = tree.id WHERE tree.queue IS NULL
)
SELECT id FROM tree ORDER BY id;

-- name: cancel_running
-- processing -> cancelled: the owner is gone, so the lease ends here and the worker's answer is not awaited
WITH moment AS MATERIALIZED (
  SELECT clock() AS now
), gone AS (
  DELETE FROM ticket WHERE id = ANY (%(ids)s::bigint[]) AND worker IS NOT NULL RETURNING id, attempts, claimed_at, worker
), closed AS (
  UPDATE task t
     SET outcome = 'cancelled', finished_at = m.now, started_at = g.claimed_at, attempts = g.attempts, worker = g.worker,
         unique_held = NULL, error = %(reason)s
    FROM gone g, moment m WHERE t.id = g.id AND t.outcome IS NULL
  RETURNING t.id, t.queue, t.scope
), counted AS (  -- not in queue_tally: that would wait for whoever cancels beside us
  INSERT INTO queue_depth (queue, scope, opened, cancelled)
  SELECT queue, scope, -count(*), count(*) FROM closed GROUP BY queue, scope
)
SELECT id FROM closed;

-- name: old_health
DELETE FROM queue_health WHERE bucket < clock() - interval '1 day';

-- name: old_workers
-- a worker stays known until its leases are taken back
WITH gone AS (
  DELETE FROM worker w
   WHERE w.state IN ('stopped', 'lost') AND w.heartbeat_at < clock() - interval '1 day'
     AND NOT EXISTS (SELECT FROM leased k WHERE k.worker = w.id)
     AND NOT EXISTS (SELECT FROM queue_tally y WHERE y.worker = w.id)
  RETURNING w.id
)
SELECT count(*) FROM gone;

-- name: idle_limiters
-- else one for every domain ever visited would stay for ever; the next caller makes it anew
WITH idle AS MATERIALIZED (
  SELECT l.name FROM limiter l
   WHERE NOT l.configured AND l.used_at < clock() - interval '1 day' AND coalesce(l.next_at <= clock(), true)
     AND NOT EXISTS (SELECT FROM limiter_hold h WHERE h.limiter = l.name AND h.until > clock())
     AND (l.rate_period IS NULL OR l.used_at < clock() - l.rate_period)
   LIMIT %(n)s FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM limiter l USING idle WHERE l.name = idle.name RETURNING l.name
)
SELECT count(*) FROM gone;
