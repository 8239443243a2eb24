-- Records as people read them, and what search may ask of a record.

CREATE VIEW records WITH (security_invoker) AS
SELECT r.id, r.scope, s.client, s.project, r.import AS document, r.row, r.external_id, r.category, r.content, r.columns,
       r.chunk IS NOT NULL AS searchable, r.trouble, r.created_at, r.updated_at
  FROM data_records r JOIN scope s ON s.id = r.scope;

-- The columns of the record behind a chunk, by which hits are filtered.
CREATE VIEW chunk_columns WITH (security_invoker) AS
SELECT chunk, scope, id AS record, category, columns FROM data_records WHERE chunk IS NOT NULL;
