-- Imports, their records and the rows that were turned away.

-- name: make_import
INSERT INTO data_import (id, scope, name, state, plan, hash, size, estimated_rows, estimated_tokens, estimated_cost)
VALUES (%(document)s, %(scope)s, %(name)s, 'draft', %(plan)s::jsonb, %(hash)s, %(size)s, %(rows)s, %(tokens)s, %(cost)s);

-- name: start_import
-- draft -> waiting
UPDATE data_import SET state = 'waiting', plan = %(plan)s::jsonb, task = %(task)s
 WHERE id = %(document)s AND state = 'draft'
RETURNING id;

-- name: load_import
SELECT i.id, i.scope, s.client, s.project, i.name, i.state, i.plan, i.hash, i.size, i.file_offset, i.file_row, i.loaded,
       i.updated, i.duplicate, i.filtered, i.invalid, i.estimated_rows, i.estimated_tokens, i.estimated_cost, i.tokens, i.cost,
       i.error, i.task, i.created_at, i.finished_at
  FROM data_import i JOIN scope s ON s.id = i.scope
 WHERE i.id = %(document)s;

-- name: list_imports
-- the newest first
SELECT i.*, s.client, s.project FROM data_import i JOIN scope s ON s.id = i.scope
 WHERE i.id < %(before)s ORDER BY i.id DESC LIMIT %(most)s;

-- name: list_imports_of_scopes
-- bounds instead of `=`, so that the order comes from the index of scopes
SELECT i.*, s.client, s.project
  FROM unnest(%(scopes)s::int[]) AS o (scope)
 CROSS JOIN LATERAL (SELECT * FROM data_import WHERE (scope, id) < (o.scope, %(before)s) AND scope >= o.scope
                      ORDER BY scope DESC, id DESC LIMIT %(most)s) i
  JOIN scope s ON s.id = i.scope
 ORDER BY i.id DESC LIMIT %(most)s;

-- name: first_rejected
-- The first rows of each fate.
SELECT e.row, e.why, e.reason, e.cells
  FROM unnest(ARRAY['invalid', 'filtered', 'duplicate']) AS w (why)
 CROSS JOIN LATERAL (SELECT * FROM data_rejected r WHERE r.import = %(document)s AND r.why = w.why
                      ORDER BY r.row LIMIT %(most)s) e;

-- name: list_rejected
SELECT row, why, reason, cells FROM data_rejected WHERE import = %(document)s AND row > %(after)s ORDER BY row LIMIT %(most)s;

-- name: lock_project
-- One portion of a project is written at a time: two imports could otherwise both add the same record. Each portion is planned
-- anew: a plan kept from when the table was empty would read the whole table for each row, a hundred thousand rows later.
SELECT pg_advisory_xact_lock(hashtext('gristmill records'), %(scope)s),
       set_config('plan_cache_mode', 'force_custom_plan', true);

-- name: lock_import
SELECT file_offset, file_row, state FROM data_import WHERE id = %(document)s FOR UPDATE;

-- name: known_texts
-- The places of texts that a record of this project has. Each costs one look into the index, however many records there are.
SELECT k.place::int AS place
  FROM unnest(%(hashes)s::uuid[]) WITH ORDINALITY AS k (hash, place)
 CROSS JOIN LATERAL (SELECT FROM data_records r WHERE r.scope = %(scope)s AND r.hash = k.hash LIMIT 1) r;

-- name: known_ids
SELECT k.place::int AS place, r.import AS document, replace(r.hash::text, '-', '') AS hash,
       replace(r.whole::text, '-', '') AS whole, r.chunk
  FROM unnest(%(ids)s::text[]) WITH ORDINALITY AS k (id, place)
 CROSS JOIN LATERAL (SELECT * FROM data_records r WHERE r.scope = %(scope)s AND r.external_id = k.id LIMIT 1) r;

-- name: copy_records
COPY data_records (scope, import, row, hash, whole, category, external_id, content, columns, embed, created_at, updated_at) FROM STDIN;

-- name: copy_changes
COPY data_change (scope, import, row, hash, whole, category, external_id, content, columns, embed, created_at, updated_at) FROM STDIN;

-- name: change_records
-- A record whose text is another one loses its chunk, and is embedded again.
UPDATE data_records r
   SET import = c.import, row = c.row, hash = c.hash, whole = c.whole, category = c.category, content = c.content,
       columns = c.columns, embed = c.embed, updated_at = c.updated_at,
       chunk = CASE WHEN r.hash = c.hash THEN r.chunk END, trouble = CASE WHEN r.hash = c.hash THEN r.trouble END
  FROM data_change c
 WHERE c.import = %(document)s AND r.scope = c.scope AND r.external_id = c.external_id;

-- name: forget_changes
DELETE FROM data_change WHERE import = %(document)s;

-- name: note_portion
-- waiting, loading -> loading
UPDATE data_import
   SET state = 'loading', file_offset = %(offset)s, file_row = %(row)s, loaded = loaded + %(loaded)s, updated = updated + %(updated)s,
       duplicate = duplicate + %(duplicate)s, filtered = filtered + %(filtered)s, invalid = invalid + %(invalid)s,
       characters = characters + %(characters)s, error = NULL, finished_at = NULL
 WHERE id = %(document)s;

-- name: count_rejected
SELECT count(*) FROM (SELECT FROM data_rejected WHERE import = %(document)s LIMIT %(most)s) r;

-- name: add_rejected
INSERT INTO data_rejected (import, scope, row, why, reason, cells)
SELECT %(document)s, %(scope)s, r.row, r.why, r.reason, ARRAY(SELECT jsonb_array_elements_text(r.cells))
  FROM jsonb_to_recordset(%(rows)s::jsonb) AS r (row int, why text, reason text, cells jsonb)
ON CONFLICT DO NOTHING;

-- name: rank_records
-- The first and the last tenth of an import by a column; rows without a number in it are left out.
WITH valued AS MATERIALIZED (
  SELECT id, category, row, replace(trim(coalesce(columns ->> %(column)s, CASE WHEN %(is_text)s THEN content END)), ',', '.') AS cell
    FROM data_records WHERE import = %(document)s
), ranked AS (
  SELECT id, category, row_number() OVER (ORDER BY cell::float8 DESC, row) AS place, count(*) OVER () AS n
    FROM valued WHERE cell ~ '^[-+]?[0-9]{1,200}(\.[0-9]{1,200})?$'
), placed AS (
  SELECT id, category, CASE WHEN place <= ceil(n / 10.0) THEN 'TOP_10'
                            WHEN place > n - ceil(n / 10.0) THEN 'BOTTOM_10' END AS new FROM ranked
)
UPDATE data_records r SET category = p.new FROM placed p WHERE r.id = p.id AND p.category IS DISTINCT FROM p.new;

-- name: finish_import
-- waiting, loading -> loaded
UPDATE data_import SET state = 'loaded', finished_at = clock(), error = NULL
 WHERE id = %(document)s AND state IN ('waiting', 'loading', 'failed')
RETURNING scope;

-- name: fail_import
-- waiting, loading -> failed
UPDATE data_import SET state = 'failed', finished_at = clock(), error = %(error)s
 WHERE id = %(document)s AND state IN ('waiting', 'loading', 'failed');

-- name: moment
SELECT clock();

-- name: remove_portion
WITH gone AS (
  DELETE FROM data_records WHERE id IN (SELECT id FROM data_records WHERE import = %(document)s LIMIT %(most)s)
  RETURNING chunk
)
SELECT count(*) AS records, coalesce(array_agg(chunk) FILTER (WHERE chunk IS NOT NULL), '{}') AS chunks FROM gone;

-- name: old_drafts
SELECT id FROM data_import WHERE state = 'draft' AND created_at < clock() - interval '1 day' ORDER BY created_at LIMIT %(most)s;
