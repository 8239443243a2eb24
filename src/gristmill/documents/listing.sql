-- Lists of documents. Each statement reads at most `scan` rows from where it begins, by an index, and says which was the last.
-- A text that was made of a document and lies in it is a note about it: nobody brought it, and no list names it.

-- name: scopes_of
SELECT coalesce(array_agg(id), '{}') FROM scope
 WHERE (%(client)s::text IS NULL OR client = %(client)s) AND (%(project)s::text IS NULL OR project = %(project)s);

-- name: newest
WITH seen AS MATERIALIZED (
  SELECT id, name, title, container, completed_at FROM document
   WHERE id < %(before)s AND (container IS NULL OR task <> 0) ORDER BY id DESC LIMIT %(scan)s
)
SELECT ARRAY(SELECT id FROM seen
              WHERE (%(name)s = '' OR strpos(lower(name), %(name)s) > 0 OR strpos(lower(title), %(name)s) > 0)
                AND (NOT %(top)s OR container IS NULL) AND (NOT %(completed)s OR completed_at IS NOT NULL)
              ORDER BY id DESC LIMIT %(most)s) AS ids,
       (SELECT min(id) FROM seen) AS last, (SELECT count(*) FROM seen) = %(scan)s AS cut;

-- name: newest_of_scopes
-- Bounds instead of `=`, so that the order comes from the index of scopes, and not from the primary key, behind the documents
-- of all others.
WITH seen AS MATERIALIZED (
  SELECT d.id, d.name, d.title, d.type, d.container, d.completed_at
    FROM unnest(%(scopes)s::int[]) AS s (scope)
   CROSS JOIN LATERAL (SELECT id, name, title, type, container, completed_at FROM document
                        WHERE (scope, id) < (s.scope, %(before)s) AND scope >= s.scope AND (container IS NULL OR task <> 0)
                        ORDER BY scope DESC, id DESC LIMIT %(scan)s) d
   ORDER BY d.id DESC LIMIT %(scan)s
)
SELECT ARRAY(SELECT id FROM seen
              WHERE (%(name)s = '' OR strpos(lower(name), %(name)s) > 0 OR strpos(lower(title), %(name)s) > 0)
                AND (NOT %(top)s OR container IS NULL) AND (NOT %(completed)s OR completed_at IS NOT NULL)
              ORDER BY id DESC LIMIT %(most)s) AS ids,
       (SELECT min(id) FROM seen) AS last, (SELECT count(*) FROM seen) = %(scan)s AS cut;

-- name: of_type
WITH seen AS MATERIALIZED (
  SELECT d.id, d.name, d.title, d.type, d.container, d.completed_at
    FROM unnest(%(scopes)s::int[]) AS s (scope)
   CROSS JOIN LATERAL (SELECT id, name, title, type, container, completed_at FROM document
                        WHERE scope = s.scope AND type = %(type)s AND id < %(before)s
                          AND (container IS NULL OR task <> 0) ORDER BY id DESC LIMIT %(scan)s) d
   ORDER BY d.id DESC LIMIT %(scan)s
)
SELECT ARRAY(SELECT id FROM seen
              WHERE (%(name)s = '' OR strpos(lower(name), %(name)s) > 0 OR strpos(lower(title), %(name)s) > 0)
                AND (NOT %(top)s OR container IS NULL) AND (NOT %(completed)s OR completed_at IS NOT NULL)
              ORDER BY id DESC LIMIT %(most)s) AS ids,
       (SELECT min(id) FROM seen) AS last, (SELECT count(*) FROM seen) = %(scan)s AS cut;

-- name: incomplete
WITH seen AS MATERIALIZED (
  SELECT d.id, d.name, d.title, d.type, d.container
    FROM unnest(%(scopes)s::int[]) AS s (scope)
   CROSS JOIN LATERAL (SELECT id, name, title, type, container FROM document
                        WHERE scope = s.scope AND completed_at IS NULL AND id < %(before)s
                          AND (container IS NULL OR task <> 0) ORDER BY id DESC LIMIT %(scan)s) d
   ORDER BY d.id DESC LIMIT %(scan)s
)
SELECT ARRAY(SELECT id FROM seen
              WHERE (%(name)s = '' OR strpos(lower(name), %(name)s) > 0 OR strpos(lower(title), %(name)s) > 0)
                AND (%(type)s::text IS NULL OR type = %(type)s::text) AND (NOT %(top)s OR container IS NULL)
              ORDER BY id DESC LIMIT %(most)s) AS ids,
       (SELECT min(id) FROM seen) AS last, (SELECT count(*) FROM seen) = %(scan)s AS cut;

-- name: failed
-- documents with dead letters; whether these make a document failed is asked afterwards
WITH seen AS MATERIALIZED (
  SELECT d.id FROM dead_documents(CASE WHEN %(everywhere)s THEN NULL ELSE %(scopes)s::int[] END, %(before)s, %(scan)s) AS d (id)
)
SELECT ARRAY(SELECT d.id FROM seen JOIN document d USING (id)
              WHERE d.completed_at IS NULL AND (d.container IS NULL OR d.task <> 0)
                AND (%(name)s = '' OR strpos(lower(d.name), %(name)s) > 0 OR strpos(lower(d.title), %(name)s) > 0)
                AND (%(type)s::text IS NULL OR d.type = %(type)s::text) AND (NOT %(top)s OR d.container IS NULL)
              ORDER BY d.id DESC LIMIT %(most)s) AS ids,
       (SELECT min(id) FROM seen) AS last, (SELECT count(*) FROM seen) = %(scan)s AS cut;

-- name: parts
WITH seen AS MATERIALIZED (
  SELECT id, name, title, type, completed_at FROM document
   WHERE container = %(container)s AND task <> 0 AND id < %(before)s AND scope = ANY (%(scopes)s::int[])
   ORDER BY id DESC LIMIT %(scan)s
)
SELECT ARRAY(SELECT id FROM seen
              WHERE (%(name)s = '' OR strpos(lower(name), %(name)s) > 0 OR strpos(lower(title), %(name)s) > 0)
                AND (%(type)s::text IS NULL OR type = %(type)s::text) AND (NOT %(completed)s OR completed_at IS NOT NULL)
              ORDER BY id DESC LIMIT %(most)s) AS ids,
       (SELECT min(id) FROM seen) AS last, (SELECT count(*) FROM seen) = %(scan)s AS cut;

-- name: oldest
-- as all that follow: behind one document, in the order of an index that begins with the scope
WITH seen AS MATERIALIZED (
  SELECT d.*
    FROM unnest(%(scopes)s::int[]) AS s (scope)
   CROSS JOIN LATERAL (SELECT id, sort_name, name, title, type, container, completed_at FROM document
                        WHERE (scope, id) > (s.scope, %(id)s) AND scope <= s.scope AND (container IS NULL OR task <> 0)
                        ORDER BY scope, id LIMIT %(scan)s) d
   ORDER BY d.id LIMIT %(scan)s
), fitting AS MATERIALIZED (
  SELECT id, sort_name FROM seen
   WHERE (%(name)s = '' OR strpos(lower(name), %(name)s) > 0 OR strpos(lower(title), %(name)s) > 0)
     AND (%(type)s::text IS NULL OR type = %(type)s::text) AND (%(container)s::bigint IS NULL OR container = %(container)s)
     AND (NOT %(top)s OR container IS NULL) AND (NOT %(completed)s OR completed_at IS NOT NULL)
   ORDER BY id LIMIT %(most)s
), ending AS (SELECT id, sort_name FROM seen ORDER BY id DESC LIMIT 1)
SELECT ARRAY(SELECT id FROM fitting ORDER BY id) AS ids,
       ARRAY(SELECT sort_name FROM fitting ORDER BY id) AS names,
       (SELECT id FROM ending) AS last_id, (SELECT sort_name FROM ending) AS last_name,
       (SELECT count(*) FROM seen) = %(scan)s AS cut;

-- name: by_name
WITH seen AS MATERIALIZED (
  SELECT d.*
    FROM unnest(%(scopes)s::int[]) AS s (scope)
   CROSS JOIN LATERAL (SELECT id, sort_name, name, title, type, container, completed_at FROM document
                        WHERE (scope, sort_name, id) > (s.scope, %(after)s, %(id)s) AND scope <= s.scope
                          AND (container IS NULL OR task <> 0)
                        ORDER BY scope, sort_name, id LIMIT %(scan)s) d
   ORDER BY d.sort_name, d.id LIMIT %(scan)s
), fitting AS MATERIALIZED (
  SELECT id, sort_name FROM seen
   WHERE (%(name)s = '' OR strpos(lower(name), %(name)s) > 0 OR strpos(lower(title), %(name)s) > 0)
     AND (%(type)s::text IS NULL OR type = %(type)s::text) AND (%(container)s::bigint IS NULL OR container = %(container)s)
     AND (NOT %(top)s OR container IS NULL) AND (NOT %(completed)s OR completed_at IS NOT NULL)
   ORDER BY sort_name, id LIMIT %(most)s
), ending AS (SELECT id, sort_name FROM seen ORDER BY sort_name DESC, id DESC LIMIT 1)
SELECT ARRAY(SELECT id FROM fitting ORDER BY sort_name, id) AS ids,
       ARRAY(SELECT sort_name FROM fitting ORDER BY sort_name, id) AS names,
       (SELECT id FROM ending) AS last_id, (SELECT sort_name FROM ending) AS last_name,
       (SELECT count(*) FROM seen) = %(scan)s AS cut;

-- name: by_name_falling
WITH seen AS MATERIALIZED (
  SELECT d.*
    FROM unnest(%(scopes)s::int[]) AS s (scope)
   CROSS JOIN LATERAL (SELECT id, sort_name, name, title, type, container, completed_at FROM document
                        WHERE (scope, sort_name, id) < (s.scope + %(step)s, %(after)s, %(id)s) AND scope BETWEEN s.scope AND s.scope
                          AND (container IS NULL OR task <> 0)
                        ORDER BY scope DESC, sort_name DESC, id DESC LIMIT %(scan)s) d
   ORDER BY d.sort_name DESC, d.id DESC LIMIT %(scan)s
), fitting AS MATERIALIZED (
  SELECT id, sort_name FROM seen
   WHERE (%(name)s = '' OR strpos(lower(name), %(name)s) > 0 OR strpos(lower(title), %(name)s) > 0)
     AND (%(type)s::text IS NULL OR type = %(type)s::text) AND (%(container)s::bigint IS NULL OR container = %(container)s)
     AND (NOT %(top)s OR container IS NULL) AND (NOT %(completed)s OR completed_at IS NOT NULL)
   ORDER BY sort_name DESC, id DESC LIMIT %(most)s
), ending AS (SELECT id, sort_name FROM seen ORDER BY sort_name, id LIMIT 1)
SELECT ARRAY(SELECT id FROM fitting ORDER BY sort_name DESC, id DESC) AS ids,
       ARRAY(SELECT sort_name FROM fitting ORDER BY sort_name DESC, id DESC) AS names,
       (SELECT id FROM ending) AS last_id, (SELECT sort_name FROM ending) AS last_name,
       (SELECT count(*) FROM seen) = %(scan)s AS cut;

-- name: containers
WITH RECURSIVE above AS (
  SELECT container AS id, 1 AS height FROM document WHERE id = %(id)s
  UNION ALL
  SELECT d.container, a.height + 1 FROM above a JOIN document d ON d.id = a.id
)
SELECT d.id, d.name, d.type FROM above a JOIN document d ON d.id = a.id ORDER BY a.height DESC;

-- name: with_any_part
SELECT i.id FROM unnest(%(ids)s::bigint[]) AS i (id) WHERE EXISTS (SELECT FROM document d WHERE d.container = i.id AND d.task <> 0);
