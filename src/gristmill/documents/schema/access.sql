-- Who sees which documents.

SELECT protect('document'), protect('phase'), protect('page'), protect('kept_part'), protect('document_tally');

-- Bytes are kept once for each content, whoever has it, and are read through a document. They are written before their
-- document stands, and removed after it.
SELECT protect('blob', seen => 'EXISTS (SELECT FROM document d WHERE d.hash = blob.hash)', own => 'true'),
       protect('blob_piece', seen => 'EXISTS (SELECT FROM document d WHERE d.hash = blob_piece.hash)', own => 'true');
SELECT share('phase_progress', 'SELECT'), share('document_progress', 'SELECT'), share('chunk_status', 'SELECT'),
       share('page_status', 'SELECT');
