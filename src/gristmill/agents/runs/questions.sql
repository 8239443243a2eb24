-- Questions that only a person can answer.

-- name: add_question
INSERT INTO agent_question (run, scope, key, kind, sentence, details, choices, effect, asked_at)
SELECT id, scope, %(key)s, %(kind)s, %(sentence)s, %(details)s::jsonb, %(choices)s, %(effect)s, clock()
  FROM agent_run WHERE id = %(run)s
ON CONFLICT (run, key) DO NOTHING;

-- name: find_question
SELECT q.id, q.run, q.scope, s.client, s.project, q.key, q.kind, q.sentence, q.details, q.choices, q.effect, q.asked_at,
       q.answered_at, q.answered_by, q.choice, q.answer, q.withdrawn_at
  FROM agent_question q JOIN scope s ON s.id = q.scope WHERE q.run = %(run)s AND q.key = %(key)s;

-- name: load_question
SELECT q.id, q.run, q.scope, s.client, s.project, q.key, q.kind, q.sentence, q.details, q.choices, q.effect, q.asked_at,
       q.answered_at, q.answered_by, q.choice, q.answer, q.withdrawn_at
  FROM agent_question q JOIN scope s ON s.id = q.scope WHERE q.id = %(id)s;

-- name: answer_question
-- open -> answered
UPDATE agent_question SET answered_at = clock(), answered_by = %(by)s, choice = %(choice)s, answer = %(answer)s,
                          message = %(message)s
 WHERE id = %(id)s AND answered_at IS NULL AND withdrawn_at IS NULL RETURNING id;

-- name: withdraw_questions
-- open -> withdrawn
UPDATE agent_question SET withdrawn_at = clock()
 WHERE run = %(run)s AND answered_at IS NULL AND withdrawn_at IS NULL
   AND (%(effect)s::bigint IS NULL OR effect = %(effect)s);

-- name: withdraw_stale
-- open -> withdrawn, where the run is over; whether an effect was done is still asked
UPDATE agent_question q SET withdrawn_at = clock() FROM agent_run r
 WHERE r.id = q.run AND r.finished_at IS NOT NULL AND q.kind <> 'unknown_effect'
   AND q.answered_at IS NULL AND q.withdrawn_at IS NULL;

-- name: load_answers
SELECT key, sentence, coalesce(choice, '') AS choice, answer, answered_by AS by FROM agent_question
 WHERE run = %(run)s AND answered_at IS NOT NULL ORDER BY answered_at, id;

-- name: list_of_item
-- of all runs of an item
SELECT q.id, q.choices, q.message FROM agent_question q JOIN agent_run r ON r.id = q.run WHERE r.item = %(item)s ORDER BY q.id;

-- name: count_open
SELECT count(*)::int FROM (SELECT FROM agent_question WHERE answered_at IS NULL AND withdrawn_at IS NULL LIMIT 1000) q;
