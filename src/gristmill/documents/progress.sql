-- How many documents there are, and which are being worked on.

-- name: tally
-- from counters; what died is few, and has an index
SELECT coalesce(sum(documents), 0)::int AS documents, coalesce(sum(completed), 0)::int AS completed,
       (SELECT count(DISTINCT owner)::int FROM task WHERE died_at IS NOT NULL AND owner LIKE 'document:%%') AS with_errors
  FROM document_tally;

-- name: at_work
SELECT DISTINCT substr(t.owner, 10)::bigint AS id FROM leased k JOIN task t USING (id) WHERE t.owner LIKE 'document:%%';
