-- Which items are about which numbers.

-- name: hold_numbers
-- until the end of the transaction: of two items about one number that are decided at the same time, the second sees the first
SELECT pg_advisory_xact_lock(hashtextextended('number ' || w.kind || ' ' || w.value, %(scope)s))
  FROM unnest(%(kinds)s::text[], %(values)s::text[]) AS w (kind, value);

-- name: note_identifiers
INSERT INTO item_identifier (scope, kind, value, item)
SELECT i.scope, n.kind, n.value, i.id
  FROM item i, unnest(%(kinds)s::text[], %(values)s::text[]) AS n (kind, value) WHERE i.id = %(item)s
ON CONFLICT DO NOTHING;

-- name: find_items_about
-- its own copies and parts, and the item that it is a copy or a part of, are the same thing already
SELECT i.id AS item, n.kind, n.value
  FROM unnest(%(kinds)s::text[], %(values)s::text[]) AS w (kind, value)
  JOIN item_identifier n ON n.scope = %(scope)s AND n.kind = w.kind AND n.value = w.value
  JOIN item i ON i.id = n.item
 WHERE i.id <> %(item)s AND i.state = ANY (%(states)s::text[]) AND i.origin IS DISTINCT FROM %(item)s::bigint
   AND i.parent IS DISTINCT FROM %(item)s::bigint
   AND NOT EXISTS (SELECT FROM item own WHERE own.id = %(item)s AND i.id IN (own.origin, own.parent))
 ORDER BY i.id;

-- name: copy_identifiers
INSERT INTO item_identifier (scope, kind, value, item)
SELECT scope, kind, value, %(copy)s FROM item_identifier WHERE item = %(item)s
ON CONFLICT DO NOTHING;
