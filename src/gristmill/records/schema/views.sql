-- What search may ask of a record.

-- The columns of the record behind a chunk, by which hits are filtered.
CREATE VIEW chunk_columns WITH (security_invoker) AS
SELECT chunk, scope, id AS record, category, columns FROM data_records WHERE chunk IS NOT NULL;
