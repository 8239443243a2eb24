-- Who sees which documents.

SELECT protect('document'), protect('phase'), protect('page'), protect('kept_part'), protect('document_tally'),
       protect('former_version');

-- Bytes are kept once for each content, whoever has it, and are read through a document. They are written and removed by
-- functions alone (keep_bytes, claim_staged, drop_unused_blobs …).
SELECT protect('blob', seen => 'EXISTS (SELECT FROM document d WHERE d.hash = blob.hash)', own => 'false'),
       protect('blob_piece', seen => 'EXISTS (SELECT FROM blob b WHERE b.id = blob_piece.blob)', own => 'false');
SELECT share('blob', 'SELECT'), share('blob_piece', 'SELECT');
-- phases are the program's, and no client's
SELECT share('phase_kind', 'SELECT');
SELECT share('document_unreadable', 'SELECT');
SELECT share('phase_progress', 'SELECT'), share('document_progress', 'SELECT'), share('document_phase', 'SELECT'),
       share('page_phase', 'SELECT'),
       share('chunk_phase', 'SELECT'), share('document_status', 'SELECT'), share('page_status', 'SELECT'),
       share('chunk_status', 'SELECT');
