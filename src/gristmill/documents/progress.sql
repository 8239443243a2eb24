-- How many documents there are, and which are being worked on.

-- name: tally
-- from counters: nothing is counted
SELECT coalesce(sum(documents), 0)::int AS documents, coalesce(sum(completed), 0)::int AS completed,
       (SELECT coalesce(sum(n), 0)::int FROM dead_tally WHERE kind = ANY (%(kinds)s::text[])) AS errors
  FROM document_tally;

-- name: at_work
SELECT DISTINCT substr(t.owner, 10)::bigint AS id FROM leased k JOIN task t USING (id) WHERE t.owner LIKE 'document:%%';
