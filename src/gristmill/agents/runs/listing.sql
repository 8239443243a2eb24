-- Lists of runs and questions: a stream of ids, newest first, from the index that fits best; then their rows.
-- Bounds instead of `=`, so that the order comes from that index, and not from the primary key, behind the rows of all
-- others.

-- name: scopes_looked_at
-- a tenant looks at its own scopes, also without row-level security of the server; runs without a client are the operator's
SELECT coalesce(array_agg(id), '{}') FROM scope
 WHERE (%(client)s::text IS NULL OR client = %(client)s) AND (%(project)s::text IS NULL OR project = %(project)s)
   AND (NOT %(is_tenant)s OR id <> 1 AND id = ANY ((SELECT own_scopes())::int[]));

-- name: newest_runs
SELECT x.id FROM unnest(%(states)s::text[]) AS w (state)
 CROSS JOIN LATERAL (
   SELECT id FROM agent_run WHERE (state, id) < (w.state, %(before)s) AND state >= w.state
    ORDER BY state DESC, id DESC LIMIT %(look)s) x
 ORDER BY x.id DESC LIMIT %(look)s;

-- name: newest_runs_of_scopes
SELECT x.id FROM unnest(%(scopes)s::int[]) AS o (scope) CROSS JOIN unnest(%(states)s::text[]) AS w (state)
 CROSS JOIN LATERAL (
   SELECT id FROM agent_run WHERE (scope, state, id) < (o.scope, w.state, %(before)s) AND (scope, state) >= (o.scope, w.state)
    ORDER BY scope DESC, state DESC, id DESC LIMIT %(look)s) x
 ORDER BY x.id DESC LIMIT %(look)s;

-- name: fitting_runs
SELECT r.id, r.scope, s.client, s.project, r.request, r.asked_by, r.item, r.item_type, r.repository, r.foreground, r.state,
       r.fence, r.task, r.host, r.report, r.error, r.stopped_by, r.calls, r.tokens_in, r.tokens_out, r.created_at, r.started_at,
       r.finished_at,
       (SELECT nullif(f.output ->> 'unreached', '') FROM agent_step f
         WHERE f.run = r.id AND f.node = 'finalize' AND r.state = 'completed' ORDER BY f.id DESC LIMIT 1) AS unreached
  FROM agent_run r JOIN scope s ON s.id = r.scope
 WHERE r.id = ANY (%(ids)s::bigint[]) AND (%(text)s::text IS NULL OR position(lower(%(text)s) IN lower(r.request)) > 0)
 ORDER BY r.id DESC LIMIT %(limit)s;

-- name: newest_questions
SELECT id FROM agent_question WHERE id < %(before)s ORDER BY id DESC LIMIT %(limit)s;

-- name: open_questions
SELECT id FROM agent_question WHERE id < %(before)s AND answered_at IS NULL AND withdrawn_at IS NULL
 ORDER BY id DESC LIMIT %(limit)s;

-- name: newest_questions_of_scopes
SELECT x.id FROM unnest(%(scopes)s::int[]) AS o (scope)
 CROSS JOIN LATERAL (
   SELECT id FROM agent_question WHERE (scope, id) < (o.scope, %(before)s) AND scope >= o.scope
    ORDER BY scope DESC, id DESC LIMIT %(limit)s) x
 ORDER BY x.id DESC LIMIT %(limit)s;

-- name: open_questions_of_scopes
SELECT x.id FROM unnest(%(scopes)s::int[]) AS o (scope)
 CROSS JOIN LATERAL (
   SELECT id FROM agent_question
    WHERE (scope, id) < (o.scope, %(before)s) AND scope >= o.scope AND answered_at IS NULL AND withdrawn_at IS NULL
    ORDER BY scope DESC, id DESC LIMIT %(limit)s) x
 ORDER BY x.id DESC LIMIT %(limit)s;

-- name: these_questions
SELECT q.id, q.run, q.scope, s.client, s.project, q.key, q.kind, q.sentence, q.details, q.choices, q.effect, q.asked_at,
       q.answered_at, q.answered_by, q.choice, q.answer, q.withdrawn_at
  FROM agent_question q JOIN scope s ON s.id = q.scope WHERE q.id = ANY (%(ids)s::bigint[]) ORDER BY q.id DESC;

-- name: questions_of_run
SELECT q.id, q.run, q.scope, s.client, s.project, q.key, q.kind, q.sentence, q.details, q.choices, q.effect, q.asked_at,
       q.answered_at, q.answered_by, q.choice, q.answer, q.withdrawn_at
  FROM agent_question q JOIN scope s ON s.id = q.scope
 WHERE q.run = %(run)s AND q.id < %(before)s AND (NOT %(is_open)s OR q.answered_at IS NULL AND q.withdrawn_at IS NULL)
 ORDER BY q.id DESC LIMIT %(limit)s;
