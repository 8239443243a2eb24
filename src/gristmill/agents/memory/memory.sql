-- What agents remember: entries of a session, procedures, and facts with their evidence.

-- name: add_entry
INSERT INTO agent_session (scope, run, owner, source, summary, details, timestamp)
VALUES (%(scope)s, %(run)s, %(owner)s, %(source)s, %(summary)s, %(details)s::jsonb, clock())
ON CONFLICT (run, source, summary) DO NOTHING;

-- name: drop_surplus
-- the oldest of a scope, beyond as many as are kept
DELETE FROM agent_session
 WHERE id IN (SELECT id FROM agent_session WHERE scope = %(scope)s ORDER BY id DESC OFFSET %(most)s);

-- name: recall
-- of exactly this project, or of the client's own level: what was done there may have read other projects
SELECT e.id, s.client, s.project, e.run AS task_id, r.asked_by, e.source, e.summary, e.details, e.timestamp
  FROM agent_session e JOIN scope s ON s.id = e.scope LEFT JOIN agent_run r ON r.id = e.run
 WHERE s.client = %(client)s AND s.project = %(project)s AND e.timestamp > clock() - %(keep)s::interval
   AND (e.owner IS NULL OR e.owner = %(asker)s)
 ORDER BY e.id DESC LIMIT %(limit)s;

-- name: list_entries
SELECT e.id, s.client, s.project, e.run AS task_id, r.asked_by, e.source, e.summary, e.details, e.timestamp
  FROM agent_session e JOIN scope s ON s.id = e.scope LEFT JOIN agent_run r ON r.id = e.run
 WHERE (%(client)s::text IS NULL OR s.client = %(client)s) AND (%(project)s::text IS NULL OR s.project = %(project)s)
   AND (%(before)s::bigint IS NULL OR e.id < %(before)s) AND e.timestamp > clock() - %(keep)s::interval
   AND (%(reader)s::text IS NULL OR e.owner IS NULL OR e.owner = %(reader)s)
 ORDER BY e.id DESC LIMIT %(limit)s;

-- name: forget_entry
DELETE FROM agent_session WHERE id = %(id)s RETURNING id;

-- name: forget_scope
DELETE FROM agent_session WHERE scope = %(scope)s RETURNING id;

-- name: drop_old_entries
DELETE FROM agent_session WHERE timestamp <= clock() - %(keep)s::interval;

-- name: list_crowded
SELECT scope FROM agent_session GROUP BY scope HAVING count(*) > %(most)s;

-- name: add_procedure
INSERT INTO agent_procedure (scope, trigger_pattern, steps, hash, source, stated_by, model, vector, created_at)
VALUES (%(scope)s, %(trigger_pattern)s, %(steps)s::jsonb, %(hash)s, %(source)s, %(stated_by)s, %(model)s,
        %(vector)s::vector, clock())
ON CONFLICT (scope, hash) DO NOTHING RETURNING id;

-- name: count_use
-- one run counts once; only this moves the time of the last use
UPDATE agent_procedure SET successes = successes + %(successes)s, failures = failures + %(failures)s,
                           last_run = %(run)s, last_used = clock()
 WHERE id = %(id)s AND last_run IS DISTINCT FROM %(run)s RETURNING id;

-- name: list_procedures
SELECT p.id, s.client AS client_id, s.project, p.trigger_pattern, p.steps, p.source, p.stated_by, p.successes, p.failures,
       p.last_used, p.created_at, extract(epoch FROM clock() - coalesce(p.last_used, p.created_at))::float8 AS idle
  FROM agent_procedure p JOIN scope s ON s.id = p.scope
 WHERE (%(client)s::text IS NULL OR s.client = %(client)s) AND (%(project)s::text IS NULL OR s.project = %(project)s)
 ORDER BY p.source = 'learned', p.id DESC LIMIT %(limit)s;

-- name: find_candidates
-- of a project, of its client's level, and those that were stated for everybody
SELECT p.id, s.client AS client_id, s.project, p.trigger_pattern, p.steps, p.source, p.stated_by, p.successes, p.failures,
       p.last_used, p.created_at, extract(epoch FROM clock() - coalesce(p.last_used, p.created_at))::float8 AS idle,
       (CASE WHEN p.model = %(model)s::text AND vector_dims(p.vector) = vector_dims(%(near)s::vector)
             THEN 1 - (p.vector <=> %(near)s::vector) END)::float8 AS similarity
  FROM agent_procedure p JOIN scope s ON s.id = p.scope
 WHERE s.client = %(client)s AND s.project IN ('', %(project)s)
    OR s.client = '' AND p.source = 'user_defined'
 ORDER BY p.source = 'learned', p.id DESC LIMIT %(limit)s;

-- name: load_procedure
SELECT p.id, s.client AS client_id, s.project, p.trigger_pattern, p.steps, p.source, p.stated_by, p.successes, p.failures,
       p.last_used, p.created_at, extract(epoch FROM clock() - coalesce(p.last_used, p.created_at))::float8 AS idle
  FROM agent_procedure p JOIN scope s ON s.id = p.scope WHERE p.id = %(id)s;

-- name: remove_procedure
DELETE FROM agent_procedure WHERE id = %(id)s RETURNING id;

-- name: list_learned
SELECT id, scope, successes, failures, extract(epoch FROM clock() - coalesce(last_used, created_at))::float8 AS idle
  FROM agent_procedure WHERE source = 'learned' ORDER BY id;

-- name: list_without_meaning
-- those whose pattern has no vector of this model
SELECT id, trigger_pattern FROM agent_procedure WHERE model IS DISTINCT FROM %(model)s::text ORDER BY id LIMIT %(limit)s;

-- name: set_meaning
UPDATE agent_procedure SET model = %(model)s, vector = %(vector)s::vector WHERE id = %(id)s;

-- name: drop_learned
DELETE FROM agent_procedure WHERE id = ANY (%(ids)s) AND source = 'learned';

-- name: add_fact
INSERT INTO agent_fact (document, scope, run, evidence_scope, evidence_urn, quote, seen_in, created_at)
VALUES (%(document)s, %(scope)s, %(run)s, %(evidence_scope)s, %(evidence_urn)s, %(quote)s, %(seen_in)s, clock())
ON CONFLICT (document) DO UPDATE SET quote = excluded.quote, seen_in = excluded.seen_in;

-- name: list_facts
SELECT document, evidence_scope, evidence_urn, quote, seen_in FROM agent_fact
 WHERE document > %(after)s ORDER BY document LIMIT %(limit)s;

-- name: note_seen
UPDATE agent_fact SET seen_in = %(seen_in)s WHERE document = %(document)s;
