-- Pages and their chunks, as people look at them.

-- name: load_page
SELECT document, number, method, text, words FROM page WHERE document = %(document)s AND number = %(number)s;

-- name: load_pages
SELECT document, number, method, text, words FROM page
 WHERE document = %(document)s AND number > %(after)s ORDER BY number LIMIT %(limit)s;

-- name: list_chunks
SELECT c.id, c.page, c.ordinal, c.start, c.stop, c.tokens, c.kind, c.language, c.heading, c.text,
       (SELECT coalesce(jsonb_object_agg(p.phase, p.status), '{}') FROM chunk_phase p WHERE p.id = c.id) AS phases
  FROM (SELECT * FROM chunk
         WHERE document = %(document)s AND (%(page)s::int IS NULL OR page = %(page)s::int)
           AND (page, ordinal) > (%(after_page)s::int, %(after_ordinal)s::int)
         ORDER BY page, ordinal LIMIT %(limit)s) c
 ORDER BY c.page, c.ordinal;
