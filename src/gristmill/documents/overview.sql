-- The documents of one scope and folder: which of them matter most just now, and how many there are. Notes about them are none.

-- name: choose_documents
-- those that are worked on, those with errors, and the newest: so many of each
WITH RECURSIVE ours AS MATERIALIZED (
  SELECT d.id FROM document d JOIN scope s ON s.id = d.scope
   WHERE s.client = %(client)s AND s.project = %(project)s AND starts_with(d.urn, %(prefix)s) AND d.container IS NULL
  UNION ALL
  SELECT d.id FROM ours o JOIN document d ON d.container = o.id AND d.task <> 0
), busy AS (
  SELECT substr(t.owner, 10)::bigint AS id FROM leased k JOIN task t USING (id) WHERE t.owner LIKE 'document:%%'
), dead AS (
  SELECT substr(owner, 10)::bigint AS id FROM task WHERE died_at IS NOT NULL AND owner LIKE 'document:%%'
)
(SELECT id FROM ours WHERE id IN (SELECT id FROM busy) ORDER BY id LIMIT %(most)s)
UNION
(SELECT id FROM ours WHERE id IN (SELECT id FROM dead) ORDER BY id DESC LIMIT %(most)s)
UNION
(SELECT id FROM ours ORDER BY id DESC LIMIT %(most)s);

-- name: count_documents
WITH RECURSIVE ours AS MATERIALIZED (
  SELECT d.id, d.completed_at FROM document d JOIN scope s ON s.id = d.scope
   WHERE s.client = %(client)s AND s.project = %(project)s AND starts_with(d.urn, %(prefix)s) AND d.container IS NULL
  UNION ALL
  SELECT d.id, d.completed_at FROM ours o JOIN document d ON d.container = o.id AND d.task <> 0
)
SELECT count(*)::int AS documents, count(completed_at)::int AS completed,
       (SELECT count(*)::int FROM task WHERE died_at IS NOT NULL AND owner ~ '^document:[0-9]{1,18}$'
           AND substr(owner, 10)::bigint IN (SELECT id FROM ours)) AS errors
  FROM ours;

-- name: dead_documents
-- of all scopes and folders, the newest first
SELECT d.id FROM dead_documents(NULL, %(before)s, %(most)s) AS d (id);
