-- What came in: which item it belongs to, which thread, and whether we have answered it.

-- name: lock_urns
-- one after the other, in one order for all: of two letters about one family, the second one sees what the first wrote
SELECT pg_advisory_xact_lock(hashtextextended('item ' || w.urn, w.scope))
  FROM (SELECT scope, urn FROM unnest(%(scopes)s::int[], %(urns)s::text[]) AS u (scope, urn) ORDER BY scope, urn) w;

-- name: known_items
SELECT w.scope, w.urn, s.item, s.known, s.is_double, coalesce(d.urn = w.urn, true) AS describes
  FROM unnest(%(scopes)s::int[], %(urns)s::text[]) AS w (scope, urn)
  JOIN item_source s ON s.scope = w.scope AND s.urn = w.urn
  JOIN item i ON i.id = s.item
  LEFT JOIN document d ON d.id = i.document;

-- name: add_source
INSERT INTO item_source (scope, urn, item, said_id, digest, is_double)
VALUES (%(scope)s, %(urn)s, %(item)s, %(said_id)s, %(digest)s, %(is_double)s) ON CONFLICT DO NOTHING;

-- name: same_ids
-- the mails that are here with these Message-IDs, those that we sent among them
SELECT m.scope, m.said_id, m.urn, m.digest, m.item, m.is_double
  FROM (SELECT DISTINCT * FROM unnest(%(scopes)s::int[], %(ids)s::text[]) AS w (scope, said_id)) w
 CROSS JOIN LATERAL (
   SELECT s.scope, s.said_id, s.urn, s.digest, s.item, s.is_double FROM item_source s
    WHERE s.scope = w.scope AND s.said_id = w.said_id
   UNION ALL
   SELECT x.scope, x.message, x.urn, x.digest, NULL, false FROM sent_mail x
    WHERE x.scope = w.scope AND x.message = w.said_id) m
 WHERE m.digest IS NOT NULL;

-- name: describe
-- the newest version of its document describes an item; of the mails of a thread, the newest that asks for something;
-- and its copies that wait, which are worked on in its place
UPDATE item
   SET document = %(document)s, title = %(title)s, note = %(note)s::jsonb, written_at = %(written_at)s, warning = %(warning)s,
       type = CASE WHEN id = %(id)s THEN %(type)s ELSE type END
 WHERE id = %(id)s OR (origin = %(id)s AND state = 'scheduled');

-- name: warn
UPDATE item SET warning = %(warning)s WHERE id = %(id)s;

-- name: set_known
UPDATE item_source SET known = %(known)s WHERE scope = %(scope)s AND urn = %(urn)s;

-- name: open_in_thread
-- the open items whose mails belong to the thread of this message; items are locked, the oldest first
SELECT i.*, s.client, s.project
  FROM item i JOIN scope s ON s.id = i.scope
 WHERE i.scope = %(scope)s AND i.state = ANY (%(states)s::text[]) AND i.origin IS NULL AND i.parent IS NULL
   AND i.message IN (SELECT m.message FROM mail_thread m WHERE m.scope = %(scope)s AND m.thread = %(thread)s)
 ORDER BY i.id FOR UPDATE OF i;

-- name: copies_in_thread
-- copies that wait for their time, of items in this thread that are done
SELECT c.*, s.client, s.project
  FROM item i JOIN item c ON c.origin = i.id AND c.state = 'scheduled' JOIN scope s ON s.id = c.scope
 WHERE i.scope = %(scope)s
   AND i.message IN (SELECT m.message FROM mail_thread m WHERE m.scope = %(scope)s AND m.thread = %(thread)s)
 ORDER BY c.id FOR UPDATE OF c;

-- name: note_sent
INSERT INTO sent_mail (scope, urn, message, written_at, digest)
VALUES (%(scope)s, %(urn)s, %(message)s, %(written_at)s, %(digest)s)
ON CONFLICT (scope, urn) DO UPDATE SET message = excluded.message, written_at = excluded.written_at, digest = excluded.digest;

-- name: answered_at
-- when we last wrote into this thread
SELECT max(x.written_at) FROM mail_thread m JOIN sent_mail x ON x.scope = m.scope AND x.message = m.message
 WHERE m.scope = %(scope)s AND m.thread = %(thread)s;
