-- Documents that are written down by a program instead of read from a file.

-- name: lock_source
-- the same lock that whoever adds a file takes
SELECT pg_advisory_xact_lock(hashtextextended(%(urn)s, %(scope)s));

-- name: latest
SELECT d.id, d.version, d.title, d.task <> 0 AS from_file,
       CASE WHEN EXISTS (SELECT FROM page p WHERE p.document = d.id AND p.number = 1 AND p.method <> 'note') THEN d.hash END AS hash
  FROM document d
 WHERE d.scope = %(scope)s AND d.urn = %(urn)s
 ORDER BY d.version DESC LIMIT 1;

-- name: lock_blobs
-- Those of all versions and the one to come, in one order: whoever keeps or drops the same bytes right now is done with it
-- when we look. That of no bytes is never dropped, and too many have it.
SELECT hash FROM blob
 WHERE size > 0
   AND (hash = %(hash)s OR hash IN (SELECT hash FROM document WHERE scope = %(scope)s AND urn = %(urn)s))
 ORDER BY hash FOR UPDATE;

-- name: keep_blob
-- changed to itself, so that nobody removes it before our document stands
INSERT INTO blob AS b (hash, size) VALUES (%(hash)s, %(size)s) ON CONFLICT (hash) DO UPDATE SET size = b.size;

-- name: keep_no_bytes
INSERT INTO blob (hash, size) VALUES (%(hash)s, 0) ON CONFLICT DO NOTHING;

-- name: keep_bytes
INSERT INTO blob_piece (hash, n, bytes) VALUES (%(hash)s, 0, %(bytes)s) ON CONFLICT DO NOTHING;

-- name: make_document
INSERT INTO document (scope, urn, version, hash, name, type, title, meta, pages, completed_at, task, opening)
VALUES (%(scope)s, %(urn)s, %(version)s, %(hash)s, %(name)s, %(type)s, %(title)s, %(meta)s::jsonb, 0, clock(), 0, 0)
RETURNING id;

-- name: describe
UPDATE document SET type = %(type)s, meta = %(meta)s::jsonb
 WHERE id = %(document)s AND (type, meta) IS DISTINCT FROM (%(type)s, %(meta)s::jsonb);

-- name: add_page
WITH added AS (UPDATE document SET pages = pages + 1 WHERE id = %(document)s RETURNING id, pages, scope)
INSERT INTO page (document, number, scope, method, text, key)
SELECT id, pages, scope, %(method)s, %(text)s, %(key)s FROM added
RETURNING number;

-- name: same_note
SELECT c.id FROM chunk c JOIN page p ON p.document = c.document AND p.number = c.page
 WHERE c.document = %(document)s AND c.hash = %(hash)s AND p.method = 'note' LIMIT 1;

-- name: move_notes
-- behind what the new version has; chunks stay the same ones, with all that hangs on them
WITH moved AS (
  SELECT p.number, d.pages + row_number() OVER (ORDER BY p.number)::int AS place
    FROM page p, document d WHERE p.document = %(old)s AND p.method = 'note' AND d.id = %(new)s
), pages AS (
  UPDATE page p SET document = %(new)s, number = m.place FROM moved m WHERE p.document = %(old)s AND p.number = m.number
), chunks AS (
  UPDATE chunk c SET document = %(new)s, page = m.place FROM moved m WHERE c.document = %(old)s AND c.page = m.number
)
UPDATE document SET pages = pages + (SELECT count(*) FROM moved) WHERE id = %(new)s;

-- name: older
SELECT id FROM document WHERE scope = %(scope)s AND urn = %(urn)s AND version < %(version)s;

-- name: drop
DELETE FROM document WHERE id = ANY(%(documents)s);

-- name: drop_unused_blobs
DELETE FROM blob b WHERE b.hash = ANY (%(hashes)s) AND NOT EXISTS (SELECT FROM document d WHERE d.hash = b.hash);
