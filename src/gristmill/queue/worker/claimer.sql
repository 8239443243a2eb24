-- Claiming: how a task becomes `processing`.

-- name: claim
-- pending -> processing: lane after lane, each from where the last claim found it; the rows come in no order
WITH lane AS MATERIALIZED (
  SELECT l.* FROM unnest(%(queues)s::text[], %(lanes)s::int[], %(marks)s::bigint[], %(limits)s::int[]) AS l(queue, lane, mark, n)
   WHERE EXISTS (SELECT FROM worker w WHERE w.id = %(worker)s AND w.state = 'live')
), picked AS MATERIALIZED (
  SELECT k.place
    FROM lane, LATERAL (
      SELECT t.ctid AS place FROM ticket t  -- its ctid: the row is locked, so it does not move
       WHERE t.queue = lane.queue AND t.lane = lane.lane AND t.seq >= lane.mark AND t.worker IS NULL AND NOT t.suspect
       ORDER BY t.seq, t.id LIMIT lane.n FOR UPDATE SKIP LOCKED) k
   LIMIT %(n)s
), claimed AS (
  UPDATE ticket t
     SET worker = %(worker)s, lease = %(lease)s, claimed_at = (SELECT clock()), attempts = t.attempts + 1
    FROM picked p WHERE t.ctid = p.place
  RETURNING t.id, t.seq, t.lane, t.queue, t.attempts
), noted AS (
  INSERT INTO lease (worker, number, queues, tasks)
  SELECT %(worker)s, %(lease)s, %(queues)s, array_agg(id) FROM claimed HAVING count(*) > 0
), entered AS MATERIALIZED (
  SELECT c.*, t.kind, t.payload, t.max_attempts, t.parent, t.parent IS NULL AND t.owner IS NULL AS prunable,
         t.scope
    FROM claimed c JOIN task t ON t.id = c.id
), told AS MATERIALIZED (
  SELECT bubble(array_agg(parent), array_agg('pending'::task_status), array_agg('processing'::task_status), array_agg(n))
    FROM (SELECT parent, count(*)::int AS n FROM entered WHERE parent IS NOT NULL GROUP BY parent) p
  HAVING count(*) > 0
)
SELECT id, seq, lane, queue, attempts, kind, payload::text, max_attempts, prunable, scope
  FROM entered WHERE (SELECT count(*) FROM told) >= 0;  -- else the planner would not run `told`, which nobody reads

-- name: claim_suspect
-- pending -> processing: one task that ran when a worker died, to be run alone
WITH picked AS MATERIALIZED (
  SELECT t.id FROM ticket t
   WHERE t.queue = ANY (%(queues)s) AND t.worker IS NULL AND t.suspect
     AND EXISTS (SELECT FROM worker w WHERE w.id = %(worker)s AND w.state = 'live')
   ORDER BY t.lane, t.seq, t.id LIMIT 1 FOR UPDATE SKIP LOCKED
), claimed AS (
  UPDATE ticket t
     SET worker = %(worker)s, lease = %(lease)s, claimed_at = clock(), attempts = t.attempts + 1
    FROM picked p WHERE t.id = p.id
  RETURNING t.id, t.seq, t.lane, t.queue, t.attempts
), noted AS (
  INSERT INTO lease (worker, number, queues, tasks) SELECT %(worker)s, %(lease)s, ARRAY[queue], ARRAY[id] FROM claimed
), entered AS MATERIALIZED (
  SELECT c.*, t.kind, t.payload, t.max_attempts, t.parent, t.parent IS NULL AND t.owner IS NULL AS prunable,
         t.scope
    FROM claimed c JOIN task t ON t.id = c.id
), told AS MATERIALIZED (
  SELECT bubble(ARRAY[parent], ARRAY['pending'::task_status], ARRAY['processing'::task_status], ARRAY[1])
    FROM entered WHERE parent IS NOT NULL
)
SELECT id, seq, lane, queue, attempts, kind, payload::text, max_attempts, prunable, scope
  FROM entered WHERE (SELECT count(*) FROM told) >= 0;

-- name: lanes
-- the first ready ticket of every lane of these queues: a loose scan, one index descent a lane
WITH RECURSIVE step AS (
  SELECT q.queue, f.lane, f.seq
    FROM unnest(%(queues)s::text[]) AS q(queue), LATERAL (
      SELECT t.lane, t.seq FROM ticket t WHERE t.queue = q.queue AND t.worker IS NULL AND NOT t.suspect
       ORDER BY t.lane, t.seq LIMIT 1) f
  UNION ALL
  SELECT s.queue, f.lane, f.seq
    FROM step s, LATERAL (
      SELECT t.lane, t.seq FROM ticket t WHERE t.queue = s.queue AND t.lane > s.lane AND t.worker IS NULL AND NOT t.suspect
       ORDER BY t.lane, t.seq LIMIT 1) f
)
SELECT queue, lane, seq FROM step;

-- name: delete_leases
-- everything claimed under these leases is settled or given back
DELETE FROM lease WHERE worker = %(worker)s AND number = ANY (%(leases)s::bigint[]);

-- name: suspects_waiting
SELECT EXISTS (SELECT FROM ticket WHERE queue = ANY (%(queues)s) AND worker IS NULL AND suspect);

-- name: note_starts
UPDATE queue SET recent_at = %(at)s, recent_n = %(n)s WHERE name = %(name)s;

-- name: now
SELECT clock();
