-- Limiters: whose turn it is to call the outside.

-- name: lock
-- turns are given in the order in which this lock is taken
WITH mine AS MATERIALIZED (
  SELECT * FROM limiter WHERE name = %(name)s FOR NO KEY UPDATE
)
SELECT concurrency, rate_count, rate_period, gap_min, gap_max, next_at, recent_at, recent_n,
       used_at < clock() - interval '1 hour' AS forgotten, clock() AS now
  FROM mine;

-- name: is_set
SELECT EXISTS (SELECT FROM limiter WHERE name = %(name)s);

-- name: ensure
INSERT INTO limiter (name, concurrency, rate_count, rate_period, gap_min, gap_max)
VALUES (%(name)s, %(concurrency)s, %(rate_count)s, %(rate_period)s, %(gap_min)s, %(gap_max)s)
ON CONFLICT DO NOTHING;

-- name: holds
-- in a statement after the lock: only then does it see the hold that the previous caller took
WITH over AS (
  DELETE FROM limiter_hold WHERE limiter = %(name)s AND until <= clock()
)
SELECT count(*) AS held, min(until) - clock() AS first FROM limiter_hold WHERE limiter = %(name)s AND until > clock();

-- name: move
UPDATE limiter
   SET next_at = %(next_at)s, recent_at = %(recent_at)s::timestamptz[], recent_n = %(recent_n)s::int[], used_at = clock()
 WHERE name = %(name)s;

-- name: hold
INSERT INTO limiter_hold (limiter, worker, until) VALUES (%(name)s, %(worker)s, %(until)s) RETURNING id;

-- name: give_back
-- only if nobody took a turn after ours: later turns were computed with ours
UPDATE limiter
   SET next_at = %(next_at)s, recent_at = %(recent_at)s::timestamptz[], recent_n = %(recent_n)s::int[]
 WHERE name = %(name)s AND next_at IS NOT DISTINCT FROM %(our_next_at)s::timestamptz
   AND recent_at = %(our_recent_at)s::timestamptz[] AND recent_n = %(our_recent_n)s::int[];

-- name: let_go
WITH gone AS (
  DELETE FROM limiter_hold WHERE id = %(id)s RETURNING limiter
)
SELECT pg_notify('gristmill', 'limiter ' || limiter) FROM gone;

-- name: let_go_of_worker
WITH gone AS (
  DELETE FROM limiter_hold WHERE worker = %(worker)s RETURNING limiter
)
SELECT limiter, count(*) AS n, pg_notify('gristmill', 'limiter ' || limiter) FROM gone GROUP BY limiter;

-- name: set
-- a next turn that a longer gap put off comes as early as the new gap allows
INSERT INTO limiter AS l (name, configured, concurrency, rate_count, rate_period, gap_min, gap_max)
VALUES (%(name)s, true, %(concurrency)s, %(rate_count)s, %(rate_period)s, %(gap_min)s, %(gap_max)s)
ON CONFLICT (name) DO UPDATE
   SET configured = true, concurrency = excluded.concurrency, rate_count = excluded.rate_count, rate_period = excluded.rate_period,
       gap_min = excluded.gap_min, gap_max = excluded.gap_max,
       next_at = CASE WHEN l.next_at IS NOT NULL THEN least(l.next_at, clock() + excluded.gap_max) END
RETURNING pg_notify('gristmill', 'limiter ' || name);

-- name: all
SELECT l.name, l.concurrency, l.rate_count, l.rate_period, l.gap_min, l.gap_max, l.next_at, l.recent_at, l.recent_n,
       clock() AS now,
       (SELECT count(*) FROM limiter_hold h WHERE h.limiter = l.name AND h.until > clock()) AS held
  FROM limiter l ORDER BY l.name;
