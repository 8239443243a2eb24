-- Of an item that is gone, what people wrote goes, too: its id, its dates and the report of its removal are the proof.

UPDATE source_item SET title = NULL, note = '{}', thread = NULL
 WHERE state = 'DELETED' AND (title IS NOT NULL OR note <> '{}' OR thread IS NOT NULL);
ALTER TABLE source_item ADD CHECK (state <> 'DELETED' OR (title IS NULL AND thread IS NULL));
