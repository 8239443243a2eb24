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

-- name: load_surroundings
-- Each chunk with the text of its page from the beginning of the chunk before it to the end of the chunk behind it. A record has
-- no page: it is its own text.
SELECT c.id AS chunk, c.document, c.page, c.start, c.stop,
       CASE WHEN p.text IS NULL THEN 0 ELSE coalesce(b.start, c.start) END AS first,
       CASE WHEN p.text IS NULL THEN c.text
            ELSE substr(p.text, coalesce(b.start, c.start) + 1, coalesce(a.stop, c.stop) - coalesce(b.start, c.start))
       END AS text
  FROM chunk c
  LEFT JOIN chunk b ON b.document = c.document AND b.page = c.page AND b.ordinal = c.ordinal - 1
  LEFT JOIN chunk a ON a.document = c.document AND a.page = c.page AND a.ordinal = c.ordinal + 1
  LEFT JOIN page p ON p.document = c.document AND p.number = c.page
 WHERE c.id = ANY(%(chunks)s);
