-- Documents that are written down by a program instead of read from a file.

-- name: find_written
SELECT d.id, d.version, d.title, d.task <> 0 AS from_file,
       CASE WHEN EXISTS (SELECT FROM page p WHERE p.document = d.id AND p.number = 1 AND p.method <> 'note') THEN d.hash END AS hash
  FROM document d
 WHERE d.scope = %(scope)s AND d.urn = %(urn)s
 ORDER BY d.version DESC LIMIT 1;

-- name: hashes
SELECT DISTINCT hash FROM document WHERE scope = %(scope)s AND urn = %(urn)s;

-- name: make_document
INSERT INTO document (scope, urn, version, hash, name, type, title, meta, written_at, container, pages, completed_at, task, opening)
VALUES (%(scope)s, %(urn)s, %(version)s, %(hash)s, %(name)s, %(type)s, %(title)s, %(meta)s::jsonb, %(written_at)s,
        %(container)s, 0, clock(), 0, 0)
RETURNING id;

-- name: describe
UPDATE document SET type = %(type)s, meta = %(meta)s::jsonb, written_at = %(written_at)s, container = %(container)s
 WHERE id = %(document)s
   AND (type, meta, written_at, container)
       IS DISTINCT FROM (%(type)s, %(meta)s::jsonb, %(written_at)s::timestamptz, %(container)s::bigint);

-- name: add_page
WITH added AS (UPDATE document SET pages = pages + 1 WHERE id = %(document)s RETURNING id, pages, scope)
INSERT INTO page (document, number, scope, method, text, key)
SELECT id, pages, scope, %(method)s, %(text)s, %(key)s FROM added
RETURNING number;

-- name: find_note
SELECT c.id FROM chunk c JOIN page p ON p.document = c.document AND p.number = c.page
 WHERE c.document = %(document)s AND c.hash = %(hash)s AND p.method = 'note' LIMIT 1;

-- name: move_note_pages
-- behind the pages that the new version has
WITH moved AS (
  SELECT p.number, d.pages + row_number() OVER (ORDER BY p.number)::int AS place
    FROM page p, document d WHERE p.document = %(old)s AND p.method = 'note' AND d.id = %(new)s
), pages AS (
  UPDATE page p SET document = %(new)s, number = m.place FROM moved m WHERE p.document = %(old)s AND p.number = m.number
), counted AS (
  UPDATE document SET pages = pages + (SELECT count(*) FROM moved) WHERE id = %(new)s
)
SELECT number, place FROM moved;

-- name: hand_over_parts
UPDATE document SET container = %(new)s WHERE container = ANY (%(older)s);

-- name: older
SELECT id FROM document WHERE scope = %(scope)s AND urn = %(urn)s AND version < %(version)s;

-- name: drop
DELETE FROM document WHERE id = ANY(%(documents)s);
