-- What the doctor and alarms ask about the extraction of the graph.

-- name: extraction
SELECT count(*) AS asked, count(*) FILTER (WHERE silent) AS silent
  FROM (SELECT silent FROM extraction WHERE silent IS NOT NULL ORDER BY at DESC LIMIT 50) AS recent;
