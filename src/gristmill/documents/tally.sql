-- How many documents there are, added up now and then.

-- name: fold_tally
-- Rows that wait to be added up are counted to a bound, so that asking costs the same however many there are. One fold of a
-- scope at a time: two would delete the same rows in different orders.
WITH due AS MATERIALIZED (
  SELECT pg_try_advisory_xact_lock(hashtext('gristmill tally'), %(scope)s) AS ours
    FROM (SELECT count(*) AS n FROM (SELECT FROM document_tally WHERE scope = %(scope)s LIMIT %(most)s) r) c
   WHERE c.n >= %(most)s
), gone AS (
  DELETE FROM document_tally WHERE scope = %(scope)s AND (SELECT ours FROM due) RETURNING documents, completed
)
INSERT INTO document_tally SELECT %(scope)s, sum(documents), sum(completed) FROM gone HAVING count(*) > 0;
