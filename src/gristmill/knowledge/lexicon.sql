-- Terms of chunks: fresh ones, and those that are gathered in segments.

-- name: read_terms
-- All that BM25 needs of these scopes. It is one statement, and so one moment, because a fold moves terms from place to place.
-- The first row is the corpus: the number of chunks, their length together, and the deleted ones. Then comes a row for each
-- term of a segment: how many of its chunks have the term, and the postings. The postings are left out if too many chunks
-- have the term while another term is rarer. The last rows say which fresh chunks, in no segment yet, have a term.
WITH old AS MATERIALIZED (
  SELECT id, size, length FROM segment WHERE scope = ANY(%(scopes)s)
), corpus AS MATERIALIZED (
  SELECT o.size + f.size AS size, o.length + f.length AS length,
         greatest(%(share)s::float8 * (o.size + f.size), %(few)s) AS many
    FROM (SELECT coalesce(sum(size), 0)::bigint AS size, coalesce(sum(length), 0)::bigint AS length FROM old) o,
         (SELECT count(*) AS size, coalesce(sum(length), 0)::bigint AS length
            FROM fresh_terms WHERE scope = ANY(%(scopes)s)) f
), gathered AS (
  SELECT w.term, p.chunks, p.data, sum(p.chunks) OVER (PARTITION BY w.term) AS everywhere
    FROM unnest(%(terms)s::text[]) AS w (term) CROSS JOIN old
   CROSS JOIN LATERAL (SELECT data, octet_length(data) / %(posting)s AS chunks
                         FROM posting WHERE segment = old.id AND term = w.term LIMIT 1) p
), compared AS (
  SELECT term, chunks, data, everywhere, min(everywhere) OVER () AS fewest FROM gathered
)
SELECT NULL AS term, size AS chunks, length, NULL::bytea AS data,
       ARRAY(SELECT chunk FROM gone_chunk WHERE scope = ANY(%(scopes)s)) AS ids, NULL::int[] AS lengths, NULL::int[] AS counts
  FROM corpus
UNION ALL
SELECT term, chunks, NULL, CASE WHEN everywhere <= many OR (fewest > many AND many > 0) THEN data END, NULL, NULL, NULL
  FROM compared, corpus
UNION ALL
SELECT w.term, count(*), NULL, NULL, array_agg(f.chunk), array_agg(f.length), array_agg((f.terms -> w.term)::int)
  FROM fresh_terms f, unnest(%(terms)s::text[]) AS w (term)
 WHERE f.scope = ANY(%(scopes)s) AND f.terms ? w.term
 GROUP BY w.term;

-- name: lock_scope
-- One fold of a scope at a time.
SELECT pg_advisory_xact_lock(hashtext('gristmill fold'), %(scope)s);

-- name: count_fresh
SELECT count(*) FROM (SELECT FROM fresh_terms WHERE scope = %(scope)s LIMIT %(most)s) f;

-- name: untidy_scopes
SELECT id FROM scope s
 WHERE EXISTS (SELECT FROM gone_chunk WHERE scope = s.id)
    OR (SELECT count(*) FROM (SELECT FROM fresh_terms WHERE scope = s.id LIMIT %(few)s) f) = %(few)s
 ORDER BY id;

-- name: take_fresh
-- Rows that somebody is deleting right now are left to that transaction.
DELETE FROM fresh_terms
 WHERE chunk IN (SELECT chunk FROM fresh_terms WHERE scope = %(scope)s ORDER BY chunk LIMIT %(most)s
                    FOR UPDATE SKIP LOCKED)
RETURNING chunk, language, length, terms;

-- name: make_segment
INSERT INTO segment (scope, size, length, languages, chunks)
VALUES (%(scope)s, %(size)s, %(length)s, %(languages)s, %(chunks)s)
RETURNING id;

-- name: copy_postings
COPY posting (segment, term, scope, data) FROM STDIN;

-- name: segments
SELECT id, size FROM segment WHERE scope = %(scope)s ORDER BY size, id;

-- name: merge_segments
INSERT INTO segment (scope, size, length, languages, chunks)
SELECT min(scope), sum(size), sum(length),
       ARRAY(SELECT DISTINCT unnest(s.languages) FROM segment s WHERE s.id = ANY(%(segments)s)),
       string_agg(chunks, '' ORDER BY id)
  FROM segment WHERE id = ANY(%(segments)s)
RETURNING id;

-- name: merge_postings
-- All postings have the same length, so lists that are put side by side are one list.
INSERT INTO posting (segment, term, scope, data)
SELECT %(into)s::bigint, term, min(scope), string_agg(data, '' ORDER BY segment)
  FROM posting WHERE segment = ANY(%(segments)s)
 GROUP BY term;

-- name: drop_segments
DELETE FROM segment WHERE id = ANY(%(segments)s);

-- name: gone_chunks
SELECT chunk, at < clock() - %(patience)s::interval AS overdue FROM gone_chunk WHERE scope = %(scope)s;

-- name: segment_chunks
SELECT id, size, length, languages, chunks FROM segment WHERE scope = %(scope)s;

-- name: postings_portion
SELECT term, data FROM posting WHERE segment = %(segment)s AND term > %(after)s ORDER BY term LIMIT %(most)s;

-- name: forget_gone
DELETE FROM gone_chunk WHERE scope = %(scope)s AND chunk = ANY(%(chunks)s);
