-- What the qualifier remembers of an item.

-- name: save_memory
INSERT INTO item_memory (item, scope, summary, node_keys, chunks, data, routing, reason, source, source_id)
SELECT i.id, i.scope, %(summary)s, %(node_keys)s::text[], %(chunks)s::bigint[], %(data)s::jsonb, %(routing)s, %(reason)s,
       %(source)s, %(source_id)s
  FROM item i WHERE i.id = %(item)s AND (%(document)s::bigint IS NULL OR i.document = %(document)s::bigint)
ON CONFLICT (item) DO UPDATE
   SET summary = excluded.summary, node_keys = excluded.node_keys, chunks = excluded.chunks, data = excluded.data,
       routing = excluded.routing, reason = excluded.reason, source = excluded.source, source_id = excluded.source_id,
       saved_at = clock()
RETURNING item;

-- name: save_reason
UPDATE item_memory SET routing = %(routing)s, reason = %(reason)s, saved_at = clock() WHERE item = %(item)s;

-- name: add_chunks
-- in one statement: a memory that was read before would undo a decision that is written meanwhile
UPDATE item_memory m
   SET node_keys = m.node_keys || ARRAY(SELECT u.one FROM unnest(%(keys)s::text[]) WITH ORDINALITY u (one, place)
                                         WHERE u.one <> ALL (m.node_keys) ORDER BY u.place),
       chunks = m.chunks || ARRAY(SELECT u.one FROM unnest(%(chunks)s::bigint[]) WITH ORDINALITY u (one, place)
                                   WHERE u.one <> ALL (m.chunks) ORDER BY u.place),
       saved_at = clock()
 WHERE m.item = %(item)s;

-- name: load_memory
SELECT summary, node_keys, chunks, data, routing, reason, source, source_id FROM item_memory WHERE item = %(item)s;

-- name: delete_memory
DELETE FROM item_memory WHERE item = %(item)s RETURNING item;
