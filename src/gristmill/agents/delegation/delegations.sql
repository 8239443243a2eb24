-- Delegations of runs: begun once, judged after every attempt, settled once, and counted for each agent.

-- name: begin_delegation
-- what is over stays as it is
INSERT INTO agent_delegation AS d (run, scope, delegation, parent, depth, agent, task, started_at)
SELECT id, scope, %(delegation)s, %(parent)s, %(depth)s, %(agent)s, %(task)s, clock() FROM agent_run WHERE id = %(run)s
ON CONFLICT (run, delegation)
DO UPDATE SET state = CASE WHEN d.finished_at IS NULL THEN 'running' ELSE d.state END
RETURNING delegation, parent, depth, agent, task, state, attempts, earlier, asked, question, tried, complaints, output, summary,
          tokens, calls, parts, success, started_at, finished_at;

-- name: list_delegations
SELECT delegation, parent, depth, agent, task, state, attempts, earlier, asked, question, tried, complaints, output, summary,
       tokens, calls, parts, success, started_at, finished_at
  FROM agent_delegation WHERE run = %(run)s ORDER BY started_at, delegation;

-- name: count_visits
-- of nodes and of delegations, without those that were cut off: they are made again
SELECT count(*) FROM agent_step
 WHERE run = %(run)s AND error IS NULL AND (jsonb_typeof(output) = 'object' AND output ? 'waits_for') IS NOT TRUE;

-- name: note_attempt
-- running -> running: its agent, or another one, tries again, or a person is asked
UPDATE agent_delegation
   SET agent = %(agent)s, attempts = %(attempts)s, earlier = %(earlier)s, asked = %(asked)s, question = %(question)s,
       tried = %(tried)s, complaints = %(complaints)s, output = %(output)s,
       tokens = tokens + %(tokens)s, calls = calls + %(calls)s
 WHERE run = %(run)s AND delegation = %(delegation)s AND finished_at IS NULL;

-- name: interrupt_delegation
-- running -> interrupted: it waits for a person
UPDATE agent_delegation SET state = 'interrupted'
 WHERE run = %(run)s AND delegation = %(delegation)s AND finished_at IS NULL;

-- name: settle_delegation
-- running -> completed or failed
UPDATE agent_delegation d
   SET state = %(state)s, success = %(success)s, output = %(output)s, summary = %(summary)s, complaints = %(complaints)s,
       question = NULL, tokens = tokens + %(tokens)s, calls = calls + %(calls)s, finished_at = clock(),
       parts = (SELECT count(*) FROM agent_delegation p WHERE p.run = d.run AND p.parent = d.delegation)
 WHERE run = %(run)s AND delegation = %(delegation)s AND finished_at IS NULL;

-- name: list_agent_metrics
SELECT agent, count(*) AS delegations, count(*) FILTER (WHERE success) AS succeeded,
       count(*) FILTER (WHERE state = 'failed') AS failed, count(*) FILTER (WHERE finished_at IS NULL) AS open,
       sum(tokens)::bigint AS tokens, sum(calls)::bigint AS calls, sum(parts)::bigint AS parts,
       coalesce(avg(extract(epoch FROM finished_at - started_at)), 0)::float8 AS seconds, max(started_at) AS last_at
  FROM agent_delegation WHERE %(since)s::timestamptz IS NULL OR started_at >= %(since)s
 GROUP BY agent ORDER BY agent;

-- name: drop_old_delegations
-- only of runs that are over: what is done is not done again
DELETE FROM agent_delegation d USING agent_run r
 WHERE r.id = d.run AND r.finished_at IS NOT NULL AND d.started_at < clock() - %(keep)s::interval;
