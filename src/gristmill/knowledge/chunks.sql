-- Chunks of pages.

-- name: forget_page
DELETE FROM chunk WHERE document = %(document)s AND page = %(page)s;

-- name: save
INSERT INTO chunk (scope, document, page, ordinal, start, stop, tokens, kind, language, heading, text, hash)
VALUES (%(scope)s, %(document)s, %(page)s, %(ordinal)s, %(start)s, %(stop)s, %(tokens)s, %(kind)s, %(language)s,
        %(heading)s, %(text)s, %(hash)s);

-- name: load
SELECT c.id, c.scope, c.document, c.page, c.ordinal, c.start, c.stop, c.tokens, c.kind, c.language, c.heading, c.text,
       c.hash
  FROM unnest(%(documents)s::bigint[], %(pages)s::int[], %(ordinals)s::int[]) AS u (document, page, ordinal)
  JOIN chunk c ON c.document = u.document AND c.page = u.page AND c.ordinal = u.ordinal;

-- name: move
UPDATE chunk c SET document = %(new)s, page = m.place
  FROM unnest(%(numbers)s::int[], %(places)s::int[]) AS m (number, place)
 WHERE c.document = %(old)s AND c.page = m.number;

-- name: add
-- One chunk for each page, of pages that have none; those of a document that is gone are left out.
INSERT INTO chunk (scope, document, page, ordinal, start, stop, tokens, language, heading, text, hash)
SELECT d.scope, p.document, p.page, 0, 0, length(p.text), p.tokens, p.language, '', p.text, p.hash
  FROM unnest(%(documents)s::bigint[], %(pages)s::int[], %(tokens)s::int[], %(languages)s::text[], %(texts)s::text[],
              %(hashes)s::bytea[]) AS p (document, page, tokens, language, text, hash)
  JOIN document d ON d.id = p.document
 ORDER BY p.document, p.page
RETURNING id, scope, document, page, ordinal, start, stop, tokens, kind, language, heading, text, hash;

-- name: remove
DELETE FROM chunk WHERE id = ANY(%(chunks)s);

-- name: relocate
UPDATE chunk c SET document = %(document)s, page = m.page
  FROM unnest(%(chunks)s::bigint[], %(pages)s::int[]) AS m (chunk, page)
 WHERE c.id = m.chunk;
