-- The ledger: every effect, from before it acts until its end is known.

-- name: add_effect
INSERT INTO agent_effect (run, scope, key, tool, arguments, hash, prepared, summary, changes, repeatable, files, origins,
                          intended_at)
SELECT id, scope, %(key)s, %(tool)s, %(arguments)s::jsonb, %(hash)s, %(prepared)s::jsonb, %(summary)s, %(changes)s,
       %(repeatable)s, %(files)s, %(origins)s::jsonb, clock()
  FROM agent_run WHERE id = %(run)s
ON CONFLICT (run, key) DO NOTHING;

-- name: lock_effect
SELECT id, run, key, tool, arguments, hash, prepared, summary, changes, repeatable, files, origins, reasons, state, attempt,
       approved_by, result, error, intended_at, approved_at, started_at, settled_at, refused_by
  FROM agent_effect WHERE run = %(run)s AND key = %(key)s FOR UPDATE;

-- name: find_effect
SELECT id, run, key, tool, arguments, hash, prepared, summary, changes, repeatable, files, origins, reasons, state, attempt,
       approved_by, result, error, intended_at, approved_at, started_at, settled_at, refused_by
  FROM agent_effect WHERE run = %(run)s AND key = %(key)s;

-- name: load_effect
SELECT id, run, key, tool, arguments, hash, prepared, summary, changes, repeatable, files, origins, reasons, state, attempt,
       approved_by, result, error, intended_at, approved_at, started_at, settled_at, refused_by
  FROM agent_effect WHERE id = %(id)s;

-- name: list_effects
SELECT id, run, key, tool, arguments, hash, prepared, summary, changes, repeatable, files, origins, reasons, state, attempt,
       approved_by, result, error, intended_at, approved_at, started_at, settled_at, refused_by
  FROM agent_effect WHERE run = %(run)s AND id > %(after)s ORDER BY id LIMIT %(limit)s;

-- name: list_effect_lines
-- without their arguments and results, which may be long
SELECT id, key, tool, summary, changes, state, attempt, approved_by, error, intended_at, settled_at
  FROM agent_effect WHERE run = %(run)s ORDER BY id LIMIT 10000;

-- name: list_newest
SELECT id, run, key, tool, arguments, hash, prepared, summary, changes, repeatable, files, origins, reasons, state, attempt,
       approved_by, result, error, intended_at, approved_at, started_at, settled_at, refused_by
  FROM agent_effect ORDER BY id DESC LIMIT %(limit)s;

-- name: list_calls
-- the calls at one place of the plan, in their order
SELECT id, run, key, tool, arguments, hash, prepared, summary, changes, repeatable, files, origins, reasons, state, attempt,
       approved_by, result, error, intended_at, approved_at, started_at, settled_at, refused_by
  FROM agent_effect WHERE run = %(run)s AND starts_with(key, %(prefix)s) ORDER BY id;

-- name: list_earlier
-- what earlier runs of the same item have changed outside with this tool, or may have: a person who leaves it open whether
-- something was done does not make it undone
SELECT e.id, e.run, e.key, e.tool, e.arguments, e.hash, e.prepared, e.summary, e.changes, e.repeatable, e.files, e.origins,
       e.reasons, e.state, e.attempt, e.approved_by, e.result, e.error, e.intended_at, e.approved_at, e.started_at,
       e.settled_at, e.refused_by
  FROM agent_run own JOIN agent_run r ON r.item = own.item AND r.id < own.id JOIN agent_effect e ON e.run = r.id
 WHERE own.id = %(run)s AND e.tool = %(tool)s AND e.changes = 'outside'
   AND (e.state IN ('executing', 'done', 'unknown')
        OR EXISTS (SELECT FROM agent_question q WHERE q.effect = e.id AND q.choice = %(leave)s))
 ORDER BY e.id;

-- name: list_delegation_calls
-- those of each agent that tried a delegation, and of the parts below it
SELECT id, run, key, tool, arguments, hash, prepared, summary, changes, repeatable, files, origins, reasons, state, attempt,
       approved_by, result, error, intended_at, approved_at, started_at, settled_at, refused_by
  FROM agent_effect
 WHERE run = %(run)s AND starts_with(key, %(place)s::text)
   AND substr(key, length(%(place)s::text) + 1, 1) IN ('#', '~', '.')
 ORDER BY id;

-- name: changed_files
-- the files that a run has changed or is about to change; what failed counts, for it may have begun
SELECT DISTINCT file FROM agent_effect, unnest(files) file
 WHERE run = %(run)s AND id <> %(but)s AND (state <> 'intended' AND (state <> 'failed' OR attempt > 0));

-- name: approve_effect
-- intended -> approved
UPDATE agent_effect SET state = 'approved', approved_by = %(by)s, approved_at = clock()
 WHERE id = %(id)s AND state = 'intended' RETURNING id;

-- name: note_reasons
UPDATE agent_effect SET reasons = %(reasons)s WHERE id = %(id)s;

-- name: start_effect
-- approved -> executing, or executing by a worker that is gone -> executing by us
UPDATE agent_effect SET state = 'executing', attempt = attempt + 1, started_at = clock(), error = NULL
 WHERE id = %(id)s AND (state = 'approved' OR state = 'executing' AND repeatable) RETURNING attempt;

-- name: doubt_effect
-- executing -> unknown
UPDATE agent_effect SET state = 'unknown', error = %(error)s
 WHERE id = %(id)s AND attempt = %(attempt)s AND state IN ('executing', 'unknown') RETURNING id;

-- name: complete_effect
-- executing -> done. What is true may also be said late, or twice, as long as no other attempt began: unknown, approved
-- again or done -> done
UPDATE agent_effect SET state = 'done', result = %(result)s::jsonb, error = NULL, settled_at = clock()
 WHERE id = %(id)s AND attempt = %(attempt)s AND state IN ('executing', 'unknown', 'approved', 'done') RETURNING id;

-- name: fail_effect
-- executing, unknown, approved again or failed -> failed
UPDATE agent_effect SET state = 'failed', error = %(error)s, settled_at = clock()
 WHERE id = %(id)s AND attempt = %(attempt)s AND state IN ('executing', 'unknown', 'approved', 'failed') RETURNING id;

-- name: return_effect
-- executing or unknown -> approved: nothing was begun
UPDATE agent_effect SET state = 'approved', error = %(error)s
 WHERE id = %(id)s AND attempt = %(attempt)s AND state IN ('executing', 'unknown', 'approved') RETURNING id;

-- name: note_error
UPDATE agent_effect SET error = %(error)s
 WHERE id = %(id)s AND attempt = %(attempt)s AND state = 'executing' RETURNING id;

-- name: take_back_effect
-- approved by the policy -> intended: the policy has changed before it was begun
UPDATE agent_effect SET state = 'intended', approved_by = NULL, approved_at = NULL
 WHERE id = %(id)s AND state = 'approved' AND approved_by = %(policy)s;

-- name: refuse_effect
-- intended -> failed, by a person or by the policy; approved -> failed, by the policy alone
UPDATE agent_effect SET state = 'failed', error = %(error)s, refused_by = %(by)s, settled_at = clock()
 WHERE id = %(id)s AND (state = 'intended' OR state = 'approved' AND %(by)s::text IS NULL) RETURNING id;

-- name: redo_effect
-- unknown -> approved: a person says that it was not done
UPDATE agent_effect SET state = 'approved', approved_by = %(by)s, approved_at = clock(), error = NULL
 WHERE id = %(id)s AND state = 'unknown' RETURNING id;

-- name: withdraw_effects
-- intended or approved -> failed: the run is over
UPDATE agent_effect SET state = 'failed', error = %(error)s, settled_at = clock()
 WHERE run = %(run)s AND state IN ('intended', 'approved');

-- name: list_lost
-- of runs that are over, what was begun and never settled
SELECT e.id, e.run, e.key, e.tool, e.arguments, e.hash, e.prepared, e.summary, e.changes, e.repeatable, e.files, e.origins,
       e.reasons, e.state, e.attempt, e.approved_by, e.result, e.error, e.intended_at, e.approved_at, e.started_at,
       e.settled_at, e.refused_by
  FROM agent_effect e JOIN agent_run r ON r.id = e.run
 WHERE e.state = 'executing' AND e.started_at < clock() - %(patience)s::interval AND r.finished_at IS NOT NULL ORDER BY e.id LIMIT 100;

-- name: list_left
-- runs that are over, and left effects that were never begun
SELECT DISTINCT e.run FROM agent_effect e JOIN agent_run r ON r.id = e.run
 WHERE e.state IN ('intended', 'approved') AND r.finished_at IS NOT NULL LIMIT 1000;
