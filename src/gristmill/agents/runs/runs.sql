-- Runs: how they begin, go on and end.

-- name: add_run
INSERT INTO agent_run (scope, request, asked_by, item, item_type, heard, repository, foreground, created_at)
VALUES (%(scope)s, %(request)s, %(asked_by)s, %(item)s, %(item_type)s, %(heard)s, %(repository)s, %(foreground)s, clock())
RETURNING id;

-- name: note_task
UPDATE agent_run SET task = %(task)s WHERE id = %(id)s;

-- name: load_run
SELECT r.id, r.scope, s.client, s.project, r.request, r.asked_by, r.item, r.item_type, r.repository, r.foreground, r.state,
       r.fence, r.task, r.host, r.report, r.error, r.stopped_by, r.calls, r.tokens_in, r.tokens_out, r.created_at, r.started_at,
       r.finished_at,
       (SELECT nullif(f.output ->> 'unreached', '') FROM agent_step f
         WHERE f.run = r.id AND f.node = 'finalize' AND r.state = 'completed' ORDER BY f.id DESC LIMIT 1) AS unreached
  FROM agent_run r JOIN scope s ON s.id = r.scope WHERE r.id = %(id)s;

-- name: feel_pulse
-- It differs as soon as anything of the run does: its state, a step, an effect, a question.
SELECT md5(concat_ws('/', r.state, r.fence, r.tokens_in, r.tokens_out,
         (SELECT concat(count(*), '.', count(finished_at), '.', max(id), string_agg(note, ',')) FROM agent_step WHERE run = r.id),
         (SELECT string_agg(concat(id, state, attempt), ',' ORDER BY id) FROM agent_effect WHERE run = r.id),
         (SELECT concat(count(*), '.', count(answered_at), '.', count(withdrawn_at)) FROM agent_question WHERE run = r.id)))
  FROM agent_run r WHERE r.id = %(id)s;

-- name: lock_run
-- a run is locked before its effects and questions
SELECT state, fence FROM agent_run WHERE id = %(id)s FOR UPDATE;

-- name: take_over
-- queued or running -> running; the worker before, if it still lives, begins nothing more
UPDATE agent_run SET state = 'running', fence = fence + 1, task = coalesce(%(task)s, task),
                     started_at = coalesce(started_at, clock())
 WHERE id = %(id)s AND state IN ('queued', 'running') RETURNING fence;

-- name: note_host
UPDATE agent_run SET host = %(host)s WHERE id = %(id)s;

-- name: complete_run
-- running -> completed
UPDATE agent_run SET state = 'completed', report = %(report)s, finished_at = clock()
 WHERE id = %(id)s AND state = 'running' AND fence = %(fence)s RETURNING id;

-- name: fail_run
-- running, or queued if its task was lost -> failed
UPDATE agent_run SET state = 'failed', error = %(error)s, finished_at = clock()
 WHERE id = %(id)s AND state IN ('queued', 'running') AND fence = %(fence)s RETURNING id;

-- name: rest_run
-- running -> waiting_for_user
UPDATE agent_run SET state = 'waiting_for_user'
 WHERE id = %(id)s AND state = 'running' AND fence = %(fence)s RETURNING id;

-- name: requeue_run
-- running or waiting_for_user -> queued
UPDATE agent_run SET state = 'queued' WHERE id = %(id)s AND state IN ('running', 'waiting_for_user');

-- name: put_back_run
-- running -> queued
UPDATE agent_run SET state = 'queued' WHERE id = %(id)s AND state = 'running' AND fence = %(fence)s;

-- name: find_run_of
SELECT r.id, r.scope, s.client, s.project, r.request, r.asked_by, r.item, r.item_type, r.repository, r.foreground, r.state,
       r.fence, r.task, r.host, r.report, r.error, r.stopped_by, r.calls, r.tokens_in, r.tokens_out, r.created_at,
       r.started_at, r.finished_at, NULL AS unreached
  FROM agent_run r JOIN scope s ON s.id = r.scope
 WHERE r.item = %(item)s AND r.finished_at IS NULL ORDER BY r.id DESC LIMIT 1;

-- name: find_last_completed
-- the last run of an item that came to its end
SELECT created_at AS at, heard FROM agent_run WHERE item = %(item)s AND state = 'completed' ORDER BY id DESC LIMIT 1;

-- name: has_runs
SELECT EXISTS (SELECT FROM agent_run WHERE item = %(item)s);

-- name: note_foreground
UPDATE agent_run SET foreground = %(foreground)s WHERE id = %(id)s AND foreground <> %(foreground)s;

-- name: hold_project
-- of two workers that look for rivals at the same time, the second one waits, and sees the first
SELECT pg_advisory_xact_lock(hashtext('gristmill agents'), %(scope)s);

-- name: list_running
SELECT id, item, task, state FROM agent_run
 WHERE scope = %(scope)s AND state = 'running' AND finished_at IS NULL AND id <> %(run)s;

-- name: list_runs_of_items
SELECT id, item, task, state FROM agent_run
 WHERE finished_at IS NULL AND item IS NOT NULL AND id > %(after)s ORDER BY id LIMIT %(limit)s;

-- name: stop_run
-- any open state -> stopped; the worker that holds it begins nothing more
UPDATE agent_run SET state = 'stopped', stopped_by = %(by)s, fence = fence + 1, finished_at = clock()
 WHERE id = %(id)s AND finished_at IS NULL RETURNING id;

-- name: has_open_questions
SELECT EXISTS (SELECT FROM agent_question
                WHERE run = %(run)s AND answered_at IS NULL AND withdrawn_at IS NULL);

-- name: list_unfinished
SELECT id, task FROM agent_run
 WHERE finished_at IS NULL AND state <> 'waiting_for_user' AND task IS NOT NULL AND id > %(after)s
 ORDER BY id LIMIT %(limit)s;

-- name: abandon_failed
-- queued or running -> failed, unless another task carries it by now
UPDATE agent_run SET state = 'failed', error = %(sentence)s, fence = fence + 1, finished_at = clock()
 WHERE id = %(id)s AND task = %(task)s AND state IN ('queued', 'running') RETURNING id;

-- name: abandon_stopped
-- queued or running -> stopped, unless another task carries it by now
UPDATE agent_run SET state = 'stopped', stopped_by = %(sentence)s, fence = fence + 1, finished_at = clock()
 WHERE id = %(id)s AND task = %(task)s AND state IN ('queued', 'running') RETURNING id;

-- name: list_young
-- those of these runs that are not over, or have not been for long
SELECT id FROM agent_run
 WHERE id = ANY (%(ids)s) AND (finished_at IS NULL OR finished_at > clock() - %(keep)s::interval);

-- name: count_tokens
UPDATE agent_run SET calls = calls + %(calls)s, tokens_in = tokens_in + %(tokens_in)s,
                     tokens_out = tokens_out + %(tokens_out)s
 WHERE id = %(id)s;

-- name: begin_step
INSERT INTO agent_step (run, scope, parent, node, title, input, started_at)
SELECT id, scope, %(parent)s, %(node)s, %(title)s, %(input)s::jsonb, clock() FROM agent_run
 WHERE id = %(run)s AND fence = %(fence)s RETURNING id;

-- name: end_step
UPDATE agent_step SET output = %(output)s::jsonb, error = %(error)s, model = %(model)s, calls = %(calls)s,
                      tokens_in = %(tokens_in)s, tokens_out = %(tokens_out)s, finished_at = clock(), note = NULL
 WHERE id = %(id)s AND finished_at IS NULL RETURNING run;

-- name: note_step
UPDATE agent_step SET note = %(note)s WHERE id = %(id)s AND finished_at IS NULL;

-- name: note_progress
UPDATE agent_step SET progress = %(progress)s::jsonb WHERE id = %(id)s AND finished_at IS NULL;

-- name: find_progress
-- how far the last visit of a place came
SELECT progress FROM agent_step
 WHERE run = %(run)s AND progress ->> 'place' = %(place)s ORDER BY id DESC LIMIT 1;

-- name: end_lost_steps
UPDATE agent_step SET error = 'It was interrupted.', finished_at = clock(), note = NULL
 WHERE run = %(run)s AND finished_at IS NULL;

-- name: list_steps
SELECT id, parent, node, title, input, output, error, model, calls, tokens_in, tokens_out, started_at, finished_at
  FROM agent_step WHERE run = %(run)s AND id > %(after)s ORDER BY id LIMIT %(limit)s;

-- name: list_steps_of_node
SELECT id, parent, node, title, input, output, error, model, calls, tokens_in, tokens_out, started_at, finished_at
  FROM agent_step WHERE run = %(run)s AND node = %(node)s ORDER BY id;

-- name: list_step_lines
-- without what went in and what came out, which may be long
SELECT id, parent, node, title, error, (jsonb_typeof(output) = 'object' AND output ? 'waits_for') IS TRUE AS waits, model,
       tokens_in, tokens_out, started_at, finished_at, note
  FROM agent_step WHERE run = %(run)s AND id > %(after)s ORDER BY id LIMIT %(limit)s;

-- name: load_step
SELECT id, parent, node, title, input, output, error, model, calls, tokens_in, tokens_out, started_at, finished_at
  FROM agent_step WHERE run = %(run)s AND id = %(id)s;

-- name: put_context
INSERT INTO agent_context (run, scope, level, place, summary, detail, updated_at)
SELECT id, scope, %(level)s, %(place)s, %(summary)s, %(detail)s, clock() FROM agent_run WHERE id = %(run)s
ON CONFLICT (run, level, place)
DO UPDATE SET summary = excluded.summary, detail = excluded.detail, updated_at = excluded.updated_at;

-- name: load_contexts
SELECT level, place, summary, detail, updated_at FROM agent_context
 WHERE run = %(run)s AND (%(level)s::text IS NULL OR level = %(level)s) ORDER BY updated_at, place;

-- name: keep_text
INSERT INTO agent_text (run, scope, source, text, hash, read_at)
SELECT id, scope, %(source)s, %(text)s, %(hash)s, clock() FROM agent_run WHERE id = %(run)s AND finished_at IS NULL
ON CONFLICT (run, hash, source) DO NOTHING;

-- name: forget_texts
DELETE FROM agent_text WHERE run = %(run)s;

-- name: forget_ended_texts
DELETE FROM agent_text WHERE id IN (
  SELECT t.id FROM agent_text t JOIN agent_run r ON r.id = t.run WHERE r.finished_at IS NOT NULL LIMIT %(most)s);

-- name: list_expired
-- the oldest runs of each end, as far as they have been over for long; what is not among them is seen later
SELECT x.id FROM unnest(ARRAY['completed', 'failed', 'stopped']) AS w (state)
 CROSS JOIN LATERAL (
   SELECT id, finished_at FROM agent_run WHERE state = w.state ORDER BY id LIMIT %(look)s) x
 WHERE x.finished_at < clock() - %(keep)s::interval ORDER BY x.id LIMIT %(most)s;

-- name: drop_runs
-- with their steps, contexts, texts, effects, questions, delegations, and what memory has of them
DELETE FROM agent_run WHERE id = ANY (%(ids)s) AND finished_at IS NOT NULL;

-- name: load_texts
SELECT source, text FROM agent_text WHERE run = %(run)s ORDER BY id;
