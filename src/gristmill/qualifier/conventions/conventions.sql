-- The conventions of people.

-- name: add_convention
WITH added AS (
  INSERT INTO convention (scope, text, note, origin, created_by) VALUES (%(scope)s, %(text)s, %(note)s, %(origin)s, %(by)s)
  RETURNING id, scope, text, version, enabled
)
INSERT INTO convention_version (convention, version, scope, text, enabled, by)
SELECT id, version, scope, text, enabled, %(by)s FROM added
RETURNING convention;

-- name: change_convention
WITH changed AS (
  UPDATE convention c SET text = coalesce(%(text)s, c.text), enabled = coalesce(%(enabled)s, c.enabled), version = version + 1,
         changed_at = clock()
   WHERE c.id = %(id)s AND c.removed_at IS NULL
  RETURNING id, scope, text, version, enabled
)
INSERT INTO convention_version (convention, version, scope, text, enabled, by)
SELECT id, version, scope, text, enabled, %(by)s FROM changed
RETURNING convention;

-- name: remove_convention
UPDATE convention SET removed_at = clock() WHERE id = %(id)s AND removed_at IS NULL RETURNING text;

-- name: list_conventions
SELECT c.id, s.client, s.project, c.text, c.version, c.enabled, c.note, c.origin, c.created_at, c.created_by, c.changed_at,
       coalesce(t.n, 0)::int AS fired, t.last_at AS fired_at
  FROM convention c JOIN scope s ON s.id = c.scope
  LEFT JOIN LATERAL (SELECT sum(n) AS n, max(last_at) AS last_at FROM convention_tally t WHERE t.convention = c.id) t ON true
 WHERE c.removed_at IS NULL AND (%(id)s::bigint IS NULL OR c.id = %(id)s)
   AND (%(scopes)s::int[] IS NULL OR c.scope = ANY (%(scopes)s::int[]))
 ORDER BY c.id LIMIT %(limit)s;

-- name: list_versions
SELECT version, text, enabled, at, by FROM convention_version WHERE convention = %(id)s ORDER BY version DESC LIMIT %(limit)s;

-- name: in_force
-- the conventions that items of these clients may see; which of their projects is decided for each item
SELECT c.id, c.version, c.text, s.client, s.project
  FROM convention c JOIN scope s ON s.id = c.scope
 WHERE c.removed_at IS NULL AND c.enabled AND (s.client = '' OR s.client = ANY (%(clients)s::text[]))
 ORDER BY c.id;

-- name: count_firings
INSERT INTO convention_tally (convention, scope, n, last_at)
SELECT c.id, c.scope, given.n, clock()
  FROM unnest(%(convention)s::bigint[], %(n)s::int[]) given (id, n) JOIN convention c ON c.id = given.id;

-- name: fold_firings
-- One fold at a time. Rows that wait to be added up are counted to a bound, so that asking costs the same however many there are.
WITH due AS MATERIALIZED (
  SELECT pg_try_advisory_xact_lock(hashtext('gristmill conventions'), 0) AS ours
    FROM (SELECT count(*) AS n FROM (SELECT FROM convention_tally LIMIT %(most)s) r) c
   WHERE c.n >= %(most)s
), gone AS (
  DELETE FROM convention_tally WHERE (SELECT ours FROM due) RETURNING convention, scope, n, last_at
)
INSERT INTO convention_tally SELECT convention, scope, sum(n), max(last_at) FROM gone GROUP BY convention, scope;
