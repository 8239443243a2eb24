-- Conversations and their messages.

-- name: add_conversation
INSERT INTO conversation (scope, owner, title) VALUES (%(scope)s, %(owner)s, %(title)s) RETURNING id;

-- name: load_conversation
-- A writer that has not said for a while that it lives is gone.
SELECT c.id, s.client, s.project, c.owner, c.title, c.language, c.summary, c.summarised, c.created_at, c.changed_at,
       c.writer IS NOT NULL AND c.alive_at > clock() - %(patience)s::interval AS is_writing
  FROM conversation c JOIN scope s ON s.id = c.scope
 WHERE c.id = %(conversation)s AND c.owner = %(owner)s;

-- name: list_conversations
SELECT c.id, s.client, s.project, c.owner, c.title, c.language, c.summary, c.summarised, c.created_at, c.changed_at,
       c.writer IS NOT NULL AND c.alive_at > clock() - %(patience)s::interval AS is_writing
  FROM conversation c JOIN scope s ON s.id = c.scope
 WHERE c.owner = %(owner)s
   AND (%(before)s::bigint IS NULL
        OR (c.changed_at, c.id) < (SELECT changed_at, id FROM conversation WHERE id = %(before)s::bigint))
 ORDER BY c.changed_at DESC, c.id DESC LIMIT %(limit)s;

-- name: remove_conversation
DELETE FROM conversation WHERE id = %(conversation)s AND owner = %(owner)s RETURNING id;

-- name: touch_conversation
-- It locks the row: either the writer that ends its answer sees this question, or this question sees that nobody writes.
UPDATE conversation SET changed_at = clock(), title = CASE title WHEN '' THEN %(title)s ELSE title END
 WHERE id = %(conversation)s RETURNING scope;

-- name: add_question
INSERT INTO conversation_message (conversation, scope, role, state, text)
VALUES (%(conversation)s, %(scope)s, 'user', 'waiting', %(text)s) RETURNING id;

-- name: list_messages
SELECT id, role, state, text, answer, at FROM (
  SELECT * FROM conversation_message
   WHERE conversation = %(conversation)s AND id > %(after)s
   ORDER BY id DESC LIMIT %(limit)s) m
 ORDER BY id;

-- name: load_message
SELECT id, role, state, text, answer, at FROM conversation_message
 WHERE conversation = %(conversation)s AND id = %(message)s;

-- name: waiting_questions
SELECT id, text FROM conversation_message WHERE conversation = %(conversation)s AND state = 'waiting' ORDER BY id;

-- name: claim_conversation
-- nobody writes -> this one writes
UPDATE conversation SET writer = %(writer)s, alive_at = clock(), stop_asked = false
 WHERE id = %(conversation)s AND (writer IS NULL OR alive_at < clock() - %(patience)s::interval)
RETURNING id;

-- name: end_abandoned
-- writing -> stopped: its writer is gone
UPDATE conversation_message SET state = 'stopped', answer = coalesce(answer, '{}') || %(note)s::jsonb
 WHERE conversation = %(conversation)s AND state = 'writing';

-- name: begin_answer
INSERT INTO conversation_message (conversation, scope, role, state)
SELECT id, scope, 'assistant', 'writing' FROM conversation WHERE id = %(conversation)s AND writer = %(writer)s
RETURNING id;

-- name: note_life
UPDATE conversation SET alive_at = clock() WHERE id = %(conversation)s AND writer = %(writer)s
RETURNING stop_asked,
          EXISTS (SELECT FROM conversation_message m
                   WHERE m.conversation = conversation.id AND m.state = 'waiting' AND m.id <> ALL(%(taken)s)) AS has_news;

-- name: save_answer
UPDATE conversation_message SET text = %(text)s, answer = %(answer)s::jsonb
 WHERE id = %(message)s AND state = 'writing';

-- name: end_answer
-- writing -> done | stopped | failed
UPDATE conversation_message SET state = %(state)s, text = %(text)s, answer = %(answer)s::jsonb
 WHERE id = %(message)s AND state = 'writing' RETURNING id;

-- name: drop_answer
-- It has not said anything yet: a newer question is answered together with the one before.
DELETE FROM conversation_message WHERE id = %(message)s AND state = 'writing';

-- name: mark_answered
-- waiting -> answered
UPDATE conversation_message SET state = 'answered'
 WHERE conversation = %(conversation)s AND id = ANY(%(questions)s) AND state = 'waiting';

-- name: keep_language
UPDATE conversation SET language = %(language)s, changed_at = clock() WHERE id = %(conversation)s;

-- name: release_conversation
-- Not while a question waits: the same writer answers it next.
UPDATE conversation SET writer = NULL, alive_at = NULL, stop_asked = false
 WHERE id = %(conversation)s AND writer = %(writer)s
   AND NOT EXISTS (SELECT FROM conversation_message m WHERE m.conversation = conversation.id AND m.state = 'waiting')
RETURNING id;

-- name: leave_conversation
UPDATE conversation SET writer = NULL, alive_at = NULL, stop_asked = false
 WHERE id = %(conversation)s AND writer = %(writer)s;

-- name: ask_to_stop
UPDATE conversation SET stop_asked = true
 WHERE id = %(conversation)s AND owner = %(owner)s AND writer IS NOT NULL RETURNING id;

-- name: unstop
UPDATE conversation SET stop_asked = false WHERE id = %(conversation)s AND writer = %(writer)s;

-- name: keep_summary
UPDATE conversation SET summary = %(summary)s, summarised = %(last)s
 WHERE id = %(conversation)s AND summarised < %(last)s;
