-- Decisions about items.

-- name: save_decision
INSERT INTO decision (item, scope, decided_at, author, route, standing, urgency, deadline, scheduled_at, target, assign, conventions,
                      rules, characters, digest, silent, inputs, path)
VALUES (%(item)s, %(scope)s, %(decided_at)s, %(author)s, %(route)s, %(standing)s, %(urgency)s, %(deadline)s, %(scheduled_at)s,
        %(target)s, %(assign)s, %(conventions)s::bigint[], %(rules)s, %(characters)s, %(digest)s, %(silent)s, %(inputs)s::jsonb,
        %(path)s::jsonb)
RETURNING id;

-- name: load_decision
SELECT id, item, scope, decided_at, author, route, standing, urgency, deadline, scheduled_at, target, assign, conventions, rules,
       characters, digest, silent, inputs, path
  FROM decision WHERE item = %(item)s ORDER BY id DESC LIMIT 1;

-- name: list_decisions
SELECT id, decided_at, author, route, urgency, deadline, scheduled_at, target, assign
  FROM decision WHERE item = %(item)s ORDER BY id DESC LIMIT %(limit)s;

-- name: load_former
SELECT standing AS "to", urgency, deadline, scheduled_at FROM decision WHERE item = %(item)s ORDER BY id DESC LIMIT 1;

-- name: find_known
-- Other items that name one of these numbers: open ones first, and those on which work ended not long ago. Its own copies and
-- parts are the same thing already.
SELECT i.id, i.title, i.state, i.scheduled_at, k.kind, k.value
  FROM unnest(%(kinds)s::text[], %(values)s::text[]) WITH ORDINALITY k (kind, value, place)
  JOIN item_identifier n ON n.scope = %(scope)s AND n.kind = k.kind AND n.value = k.value
  JOIN item i ON i.id = n.item
 WHERE i.id <> %(item)s AND i.cron IS NULL AND NOT i.note ? 'same_id_as' AND i.origin IS DISTINCT FROM %(item)s::bigint AND i.parent IS DISTINCT FROM %(item)s::bigint
   AND NOT EXISTS (SELECT FROM item own WHERE own.id = %(item)s AND i.id IN (own.origin, own.parent))
   AND (i.state IN ('scheduled', 'ready_for_execution', 'dispatched', 'running', 'waiting_for_user', 'waiting_for_children')
        OR i.state = 'completed' AND i.changed_at > clock() - %(recent)s::interval)
 ORDER BY i.state = 'completed', i.id DESC LIMIT 5;

-- name: moment
SELECT clock();
