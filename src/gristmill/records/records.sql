-- Records as people list, read and remove them.

-- name: oldest_of_all
SELECT * FROM records WHERE id > %(after)s ORDER BY id LIMIT %(most)s;

-- name: oldest_of_scopes
-- Bounds instead of `=`: the planner would take the order of the ids from the primary key, and pass over the records of all
-- others to find that a scope has none.
SELECT r.* FROM unnest(%(scopes)s::int[]) AS o (scope)
 CROSS JOIN LATERAL (SELECT id FROM data_records WHERE (scope, id) > (o.scope, %(after)s) AND scope <= o.scope
                      ORDER BY scope, id LIMIT %(most)s) f
  JOIN records r ON r.id = f.id
 ORDER BY r.id LIMIT %(most)s;

-- name: oldest_of_category
SELECT r.* FROM unnest(%(scopes)s::int[]) AS o (scope)
 CROSS JOIN LATERAL (SELECT id FROM data_records WHERE category IS NOT NULL
                        AND (scope, category, id) > (o.scope, %(category)s, %(after)s)
                        AND (scope, category) <= (o.scope, %(category)s)
                      ORDER BY scope, category, id LIMIT %(most)s) f
  JOIN records r ON r.id = f.id
 ORDER BY r.id LIMIT %(most)s;

-- name: load_record
SELECT * FROM records WHERE id = %(record)s;

-- name: rows_of_import
-- in the order of the file
SELECT * FROM records WHERE document = %(document)s AND row > %(after)s ORDER BY document, row LIMIT %(most)s;

-- name: rows_of_category
SELECT * FROM records WHERE document = %(document)s AND category = %(category)s AND row > %(after)s
 ORDER BY document, category, row LIMIT %(most)s;

-- name: all_scopes
SELECT array_agg(id) FROM scope;

-- name: plans
SELECT plan FROM data_import WHERE scope = ANY(%(scopes)s::int[]) ORDER BY id;

-- name: columns
-- Of the newest imports of each scope: a person chooses among them. Without scopes, of all.
SELECT DISTINCT jsonb_array_elements_text(i.plan -> 'columns') AS name
  FROM scope s
 CROSS JOIN LATERAL (SELECT plan FROM data_import WHERE scope = s.id ORDER BY id DESC LIMIT %(imports)s) i
 WHERE %(scopes)s::int[] IS NULL OR s.id = ANY(%(scopes)s::int[])
 ORDER BY name LIMIT %(most)s;

-- name: embedding_progress
-- From counters: how many of the records of an import can be found, and how many never will without help.
SELECT coalesce(sum(searchable), 0)::int AS searchable, coalesce(sum(troubled), 0)::int AS troubled,
       coalesce(sum(waiting), 0)::int AS waiting
  FROM data_tally WHERE import = %(document)s;

-- name: fold_tally
-- One fold of an import at a time: two would delete the same rows in different orders.
WITH due AS MATERIALIZED (
  SELECT pg_try_advisory_xact_lock(hashtext('gristmill records ' || %(document)s::bigint)) AS ours
    FROM (SELECT count(*) AS n FROM (SELECT FROM data_tally WHERE import = %(document)s LIMIT %(most)s) r) c
   WHERE c.n >= %(most)s
), gone AS (
  DELETE FROM data_tally WHERE import = %(document)s AND (SELECT ours FROM due) RETURNING *
)
INSERT INTO data_tally
SELECT import, scope, sum(records), sum(searchable), sum(troubled), sum(waiting) FROM gone GROUP BY import, scope;

-- name: remove_records
WITH gone AS (DELETE FROM data_records WHERE id = ANY(%(ids)s) RETURNING chunk, scope)
SELECT count(*) AS records, coalesce(array_agg(chunk) FILTER (WHERE chunk IS NOT NULL), '{}') AS chunks,
       array_agg(DISTINCT scope) AS scopes
  FROM gone;
