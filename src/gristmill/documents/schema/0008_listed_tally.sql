-- Documents are counted as they are listed: without notes about others, which nobody brought.

DELETE FROM document_tally;
INSERT INTO document_tally
SELECT scope, count(*), count(completed_at) FROM document WHERE container IS NULL OR task <> 0 GROUP BY scope;
