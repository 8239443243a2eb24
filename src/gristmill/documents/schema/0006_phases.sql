-- Phases are checked and removed for all documents of a statement at a time: `demand_documents_of_phases`.

ALTER TABLE phase DROP CONSTRAINT phase_document_scope_fkey;
