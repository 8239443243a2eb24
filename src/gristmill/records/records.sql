-- Records as people list, read and remove them.

-- name: list_records
SELECT r.id, r.scope, s.client, s.project, r.import AS document, r.row, r.external_id, r.category, r.content, r.columns,
       r.chunk IS NOT NULL AS searchable, r.trouble, r.created_at, r.updated_at
  FROM data_records r JOIN scope s ON s.id = r.scope
 WHERE r.id > %(after)s AND (%(scopes)s::int[] IS NULL OR r.scope = ANY(%(scopes)s::int[]))
   AND (%(document)s::bigint IS NULL OR r.import = %(document)s)
   AND (%(category)s::text IS NULL OR r.category = %(category)s)
 ORDER BY r.id LIMIT %(most)s;

-- name: load_record
SELECT r.id, r.scope, s.client, s.project, r.import AS document, r.row, r.external_id, r.category, r.content, r.columns,
       r.chunk IS NOT NULL AS searchable, r.trouble, r.created_at, r.updated_at
  FROM data_records r JOIN scope s ON s.id = r.scope
 WHERE r.id = %(record)s;

-- name: records_of_import
-- In the order of the file.
SELECT r.id, r.scope, s.client, s.project, r.import AS document, r.row, r.external_id, r.category, r.content, r.columns,
       r.chunk IS NOT NULL AS searchable, r.trouble, r.created_at, r.updated_at
  FROM data_records r JOIN scope s ON s.id = r.scope
 WHERE r.import = %(document)s AND r.row > %(after)s
 ORDER BY r.import, r.row LIMIT %(most)s;

-- name: plans
SELECT plan FROM data_import WHERE scope = ANY(%(scopes)s::int[]) ORDER BY id;

-- name: embedding_progress
-- How many of the records of an import can be found, and how many never will without help.
SELECT count(*) FILTER (WHERE chunk IS NOT NULL) AS searchable, count(*) FILTER (WHERE trouble IS NOT NULL) AS troubled,
       count(*) FILTER (WHERE chunk IS NULL AND embed AND trouble IS NULL) AS waiting
  FROM data_records WHERE import = %(document)s;

-- name: remove_records
WITH gone AS (DELETE FROM data_records WHERE id = ANY(%(ids)s) RETURNING chunk, scope)
SELECT count(*) AS records, coalesce(array_agg(chunk) FILTER (WHERE chunk IS NOT NULL), '{}') AS chunks,
       array_agg(DISTINCT scope) AS scopes
  FROM gone;
