-- Items: how they are made, found and described.

-- name: load_items
SELECT i.*, s.client, s.project FROM item i JOIN scope s ON s.id = i.scope WHERE i.id = ANY (%(ids)s::bigint[]);

-- name: hold_item
SELECT i.*, s.client, s.project FROM item i JOIN scope s ON s.id = i.scope WHERE i.id = %(id)s FOR UPDATE OF i;

-- name: make_item
-- with its first event
WITH made AS (
  INSERT INTO item (scope, type, urn, document, message, title, text, note, state, foreground, position, urgency, written_at,
                    deadline, scheduled_at, cron, zone, parent, origin, added_by, warning)
  VALUES (%(scope)s, %(type)s, %(urn)s, %(document)s, %(message)s, %(title)s, %(text)s, %(note)s::jsonb, %(state)s, %(foreground)s,
          %(position)s, %(urgency)s, coalesce(%(written_at)s::timestamptz, clock()), %(deadline)s, %(scheduled_at)s, %(cron)s, %(zone)s,
          %(parent)s, %(origin)s, %(added_by)s, %(warning)s)
  RETURNING id, scope, state
)
INSERT INTO item_event (item, scope, state, why, by) SELECT id, scope, state, %(why)s, %(by)s FROM made RETURNING item;

-- name: set_task
UPDATE item SET task = %(task)s WHERE id = %(id)s;

-- name: set_position
UPDATE item SET position = %(position)s WHERE id = %(id)s;

-- name: list_events
SELECT id, at, was, state, outcome, why, by, task FROM item_event
 WHERE item = %(item)s AND id > %(after)s ORDER BY id LIMIT %(limit)s;

-- name: was_reopened
SELECT EXISTS (SELECT FROM item_event WHERE item = %(item)s AND at > %(since)s AND why = %(why)s);

-- name: list_messages
SELECT id, at, kind, by, text, document FROM item_message WHERE item = %(item)s ORDER BY id LIMIT %(limit)s;

-- name: add_message
INSERT INTO item_message (item, scope, kind, by, text, document)
SELECT id, scope, %(kind)s, %(by)s, %(text)s, %(document)s FROM item WHERE id = %(item)s RETURNING id;

-- name: load_result
SELECT run, at, by, summary, reply, asked, citations FROM item_result WHERE item = %(item)s ORDER BY run DESC LIMIT 1;

-- name: sources_of
-- the newest version of each document that an item was made of, the oldest document first
SELECT d.id, d.urn, d.name, d.title, d.type, d.written_at
  FROM item_source s
 CROSS JOIN LATERAL (SELECT * FROM document x WHERE x.scope = s.scope AND x.urn = s.urn ORDER BY x.version DESC LIMIT 1) d
 WHERE s.item = %(item)s ORDER BY d.written_at NULLS FIRST, d.id;

-- name: children_of
SELECT i.*, s.client, s.project FROM item i JOIN scope s ON s.id = i.scope WHERE i.parent = %(item)s ORDER BY i.id;

-- name: copies_of
SELECT i.*, s.client, s.project FROM item i JOIN scope s ON s.id = i.scope WHERE i.origin = %(item)s ORDER BY i.id DESC LIMIT %(limit)s;

-- name: merged_into
SELECT i.*, s.client, s.project FROM item i JOIN scope s ON s.id = i.scope WHERE i.merged_into = %(item)s ORDER BY i.id LIMIT %(limit)s;

-- name: list_all
-- newest first; each state by its own look into the index
SELECT i.*, s.client, s.project
  FROM unnest(%(states)s::text[]) AS w (state)
 CROSS JOIN LATERAL (SELECT * FROM item x WHERE x.state = w.state AND x.id < %(before)s
                       AND (%(copied)s OR x.outcome IS DISTINCT FROM 'scheduled') ORDER BY x.id DESC LIMIT %(limit)s) i
  JOIN scope s ON s.id = i.scope
 ORDER BY i.id DESC LIMIT %(limit)s;

-- name: list_of_scopes
SELECT i.*, s.client, s.project
  FROM unnest(%(scopes)s::int[]) AS o (scope)
 CROSS JOIN unnest(%(states)s::text[]) AS w (state)
 CROSS JOIN LATERAL (SELECT * FROM item x WHERE x.scope = o.scope AND x.state = w.state AND x.id < %(before)s
                      AND (%(copied)s OR x.outcome IS DISTINCT FROM 'scheduled') ORDER BY x.id DESC LIMIT %(limit)s) i
  JOIN scope s ON s.id = i.scope
 ORDER BY i.id DESC LIMIT %(limit)s;

-- name: in_line
SELECT i.*, s.client, s.project FROM item i JOIN scope s ON s.id = i.scope
 WHERE i.state = 'ready_for_execution' AND (%(foreground)s::boolean IS NULL OR i.foreground = %(foreground)s::boolean)
 ORDER BY i.position, i.foreground DESC,
          CASE i.urgency WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'normal' THEN 2 ELSE 3 END, i.task, i.id
 LIMIT %(limit)s;

-- name: next_due
SELECT i.*, s.client, s.project FROM item i JOIN scope s ON s.id = i.scope
 WHERE i.state = 'scheduled' ORDER BY i.scheduled_at LIMIT %(limit)s;

-- name: count_states
SELECT state, outcome, foreground, sum(n)::int AS n FROM item_tally
 WHERE %(scopes)s::int[] IS NULL OR scope = ANY (%(scopes)s::int[]) GROUP BY state, outcome, foreground HAVING sum(n) <> 0;

-- name: fold_tally
-- one row of many, for each scope with more than a few
WITH crowded AS (
  SELECT scope FROM item_tally GROUP BY scope HAVING count(*) > 100
), old AS (
  DELETE FROM item_tally t USING crowded c WHERE t.scope = c.scope RETURNING t.scope, t.state, t.outcome, t.foreground, t.n
)
INSERT INTO item_tally SELECT scope, state, outcome, foreground, sum(n) FROM old GROUP BY 1, 2, 3, 4 HAVING sum(n) <> 0;

-- name: seen_scopes
SELECT seen_scopes();

-- name: find_by_document
-- the item that a document belongs to, whichever version of it
SELECT s.item FROM document d JOIN item_source s ON s.scope = d.scope AND s.urn = d.urn WHERE d.id = %(document)s;

-- name: is_pending
-- locked, so that no worker takes it meanwhile
SELECT t.outcome IS NULL AND k.worker IS NULL FROM task t LEFT JOIN ticket k USING (id) WHERE t.id = %(task)s FOR UPDATE OF t;

-- name: set_decision
UPDATE item SET decision = %(decision)s WHERE id = %(id)s;

-- name: raise_item
UPDATE item SET urgency = %(urgency)s, deadline = %(deadline)s
 WHERE id = %(id)s AND (urgency, deadline) IS DISTINCT FROM (%(urgency)s, %(deadline)s::timestamptz);

-- name: set_outcome
UPDATE item SET outcome = %(outcome)s, deadline = %(deadline)s, decision = coalesce(%(decision)s, decision)
 WHERE id = %(id)s AND state = 'done';

-- name: set_schedule
UPDATE item SET scheduled_at = %(scheduled_at)s, warning = coalesce(%(warning)s, warning) WHERE id = %(id)s AND state = 'scheduled';

-- name: read_clock
SELECT clock();

-- name: set_warning
UPDATE item SET warning = %(warning)s WHERE id = %(id)s;
