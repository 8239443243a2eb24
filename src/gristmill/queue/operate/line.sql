-- The head of the line.

-- name: line
-- the order of the index is the order of claim
SELECT t.id, t.kind, t.position, t.priority, t.foreground, k.attempts, t.created_at, t.owner, t.payload
  FROM (SELECT id, lane, seq, attempts FROM ticket
         WHERE queue = %(queue)s AND worker IS NULL AND NOT suspect
         ORDER BY lane, seq, id LIMIT %(limit)s) k
  JOIN task t ON t.id = k.id
 ORDER BY k.lane, k.seq, k.id;
