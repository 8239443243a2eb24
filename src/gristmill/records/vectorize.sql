-- Records that wait for their vectors.

-- name: waiting
SELECT id, import AS document, row, replace(hash::text, '-', '') AS hash, content
  FROM data_records
 WHERE scope = %(scope)s AND chunk IS NULL AND embed AND trouble IS NULL
 ORDER BY id LIMIT %(most)s;

-- name: count_waiting
-- For the progress alone: where there are many, counting stops.
SELECT count(*) FROM (SELECT FROM data_records WHERE scope = %(scope)s AND chunk IS NULL AND embed AND trouble IS NULL
                       LIMIT 100000) w;

-- name: has_waiting
SELECT EXISTS (SELECT FROM data_records WHERE scope = %(scope)s AND chunk IS NULL AND embed AND trouble IS NULL);

-- name: lock_waiting
-- The records whose text is still the one that was embedded.
SELECT r.id, r.import AS document, r.row
  FROM unnest(%(ids)s::bigint[], %(hashes)s::uuid[]) AS w (id, hash)
  JOIN data_records r ON r.id = w.id AND r.hash = w.hash
 WHERE r.chunk IS NULL
 ORDER BY r.id FOR UPDATE OF r;

-- name: link_chunks
UPDATE data_records r SET chunk = l.chunk, trouble = NULL
  FROM unnest(%(records)s::bigint[], %(chunks)s::bigint[]) AS l (record, chunk)
 WHERE r.id = l.record;

-- name: note_trouble
UPDATE data_records SET trouble = %(reason)s WHERE id = %(record)s AND chunk IS NULL;

-- name: add_cost
UPDATE data_import SET tokens = tokens + %(tokens)s, cost = cost + %(cost)s WHERE id = %(document)s;

-- name: want_vectors
WITH wanted AS (
  UPDATE data_records SET embed = true, trouble = NULL
   WHERE scope = %(scope)s AND chunk IS NULL AND NOT (embed AND trouble IS NULL) RETURNING 1
)
SELECT count(*) FROM wanted;
