-- Records are counted as they come, change and go, and listed by category; drafts are found among many imports.

LOCK TABLE data_records IN SHARE MODE; -- what others write from here on, they write when the triggers are there

-- How many records an import has. Every statement that changes records adds a row, so that no two writers meet in one; many
-- rows become one. The number of an import is the sum of its rows.
CREATE TABLE data_tally (
  import     bigint NOT NULL,
  scope      int NOT NULL,
  records    bigint NOT NULL,
  searchable bigint NOT NULL,
  troubled   bigint NOT NULL,
  waiting    bigint NOT NULL                       -- for their vectors
) WITH (autovacuum_vacuum_cost_delay = 0);
CREATE INDEX data_tally_by_import ON data_tally (import);
INSERT INTO data_tally
SELECT import, scope, count(*), count(chunk), count(trouble), count(*) FILTER (WHERE chunk IS NULL AND embed AND trouble IS NULL)
  FROM data_records GROUP BY import, scope;

CREATE INDEX data_records_by_category ON data_records (scope, category, id) WHERE category IS NOT NULL;
CREATE INDEX data_records_by_category_of_import ON data_records (import, category, row) WHERE category IS NOT NULL;
CREATE INDEX data_import_drafts ON data_import (created_at) WHERE state = 'draft';
