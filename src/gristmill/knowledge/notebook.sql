-- Documents that are written down by a program instead of read from a file.

-- name: lock_source
-- the same lock that whoever adds a file takes
SELECT pg_advisory_xact_lock(hashtextextended(%(urn)s, %(scope)s));

-- name: latest
SELECT d.id, d.version, p.text, d.task <> 0 AS from_file
  FROM document d LEFT JOIN page p ON p.document = d.id AND p.number = 1
 WHERE d.scope = %(scope)s AND d.urn = %(urn)s
 ORDER BY d.version DESC LIMIT 1;

-- name: keep_blob
-- changed to itself, so that nobody removes it before our document stands
INSERT INTO blob AS b (hash, size) VALUES (%(hash)s, %(size)s) ON CONFLICT (hash) DO UPDATE SET size = b.size;

-- name: keep_bytes
INSERT INTO blob_piece (hash, n, bytes) VALUES (%(hash)s, 0, %(bytes)s) ON CONFLICT DO NOTHING;

-- name: make_document
INSERT INTO document (scope, urn, version, hash, name, type, title, meta, pages, completed_at, task, opening)
VALUES (%(scope)s, %(urn)s, %(version)s, %(hash)s, %(name)s, %(type)s, %(title)s, %(meta)s::jsonb, 1, clock(), 0, 0)
RETURNING id;

-- name: make_page
INSERT INTO page (document, number, method, text, key) VALUES (%(document)s, 1, 'copied', %(text)s, %(key)s);

-- name: extend_page
UPDATE page SET text = %(text)s WHERE document = %(document)s AND number = 1;

-- name: same_chunk
SELECT id FROM chunk WHERE document = %(document)s AND hash = %(hash)s LIMIT 1;

-- name: add_chunk
INSERT INTO chunk (scope, document, page, ordinal, start, stop, tokens, kind, language, heading, text, hash)
SELECT %(scope)s, %(document)s, 1, coalesce(max(ordinal) + 1, 0), %(start)s, %(stop)s, %(tokens)s, %(kind)s, %(language)s,
       %(heading)s, %(text)s, %(hash)s
  FROM chunk WHERE document = %(document)s AND page = 1
RETURNING id, ordinal;

-- name: lock_older_blobs
-- before their documents go: whoever keeps the same bytes right now is done with it when we look
SELECT hash FROM blob
 WHERE hash IN (SELECT hash FROM document WHERE scope = %(scope)s AND urn = %(urn)s AND version < %(version)s)
 ORDER BY hash FOR UPDATE;

-- name: older
SELECT id FROM document WHERE scope = %(scope)s AND urn = %(urn)s AND version < %(version)s;

-- name: drop
DELETE FROM document WHERE id = ANY(%(documents)s);

-- name: drop_unused_blobs
DELETE FROM blob b WHERE b.hash = ANY (%(hashes)s) AND NOT EXISTS (SELECT FROM document d WHERE d.hash = b.hash);
