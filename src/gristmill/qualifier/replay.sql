-- Decisions that are decided again with today's rules, without changing anything.

-- name: count_decisions
-- to a bound: it is asked for a progress bar
SELECT count(*)::int FROM (
  SELECT FROM decision d JOIN item i ON i.decision = d.id JOIN scope s ON s.id = d.scope
   WHERE d.decided_at >= %(since)s AND (%(client)s::text IS NULL OR s.client = %(client)s)
     AND (%(project)s::text IS NULL OR s.project = %(project)s)
   LIMIT %(most)s) r;

-- name: portion_of_decisions
-- the last decision of each item: those before it do not hold any more
SELECT d.id, d.item, d.scope, d.decided_at, d.author, d.route, d.standing, d.urgency, d.deadline, d.scheduled_at, d.target, d.assign,
       d.conventions, d.rules, d.characters, d.digest, d.silent, d.inputs, d.path
  FROM decision d JOIN item i ON i.decision = d.id JOIN scope s ON s.id = d.scope
 WHERE (d.decided_at, d.id) > (%(since)s, %(after)s) AND (%(client)s::text IS NULL OR s.client = %(client)s)
   AND (%(project)s::text IS NULL OR s.project = %(project)s)
 ORDER BY d.decided_at, d.id LIMIT %(limit)s;

-- name: newest_decisions
SELECT d.id, d.item, d.scope, d.decided_at, d.author, d.route, d.standing, d.urgency, d.deadline, d.scheduled_at, d.target, d.assign,
       d.conventions, d.rules, d.characters, d.digest, d.silent, d.inputs, d.path
  FROM decision d JOIN item i ON i.decision = d.id JOIN scope s ON s.id = d.scope
 WHERE d.decided_at >= %(since)s AND (%(client)s::text IS NULL OR s.client = %(client)s)
   AND (%(project)s::text IS NULL OR s.project = %(project)s)
 ORDER BY d.id DESC LIMIT %(limit)s;
