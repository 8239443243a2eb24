-- Decisions about texts in which nothing was found.

-- name: silent_shares
-- of the newest decisions: what it costs does not grow with their number
SELECT d.scope, count(*)::int AS n, (count(*) FILTER (WHERE d.silent))::int AS silent,
       (array_agg(d.item ORDER BY d.id DESC) FILTER (WHERE d.silent))[1:3] AS items
  FROM (SELECT id, scope, item, silent, decided_at FROM decision ORDER BY id DESC LIMIT 500) d
 WHERE d.decided_at > clock() - interval '1 day'
 GROUP BY d.scope ORDER BY d.scope;
