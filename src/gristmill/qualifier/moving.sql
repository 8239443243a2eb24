-- Changes of an item's state.

-- name: move_item
SELECT move_item(%(item)s::bigint, %(since)s::text[], %(state)s::text, %(why)s::text, %(by)s::text, %(outcome)s::text,
                 %(columns)s::jsonb);

-- name: note_event
INSERT INTO item_event (item, scope, was, state, outcome, why, by, task)
SELECT id, scope, state, state, outcome, %(why)s, %(by)s, task FROM item WHERE id = %(item)s;
