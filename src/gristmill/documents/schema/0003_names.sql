-- Lists of documents in the order of their names.

-- The beginning of the name, as it is sorted: an index takes no longer texts, and row-level security lets the planner compare a
-- column, but not the result of a function that may tell of rows which a policy hides.
ALTER TABLE document ADD sort_name text GENERATED ALWAYS AS (left(lower(name), 100)) STORED;
CREATE INDEX document_by_name ON document (scope, sort_name, id);
