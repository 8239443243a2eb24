-- Which documents could not be read is asked whenever somebody looks at their source (`document_unreadable`).

CREATE INDEX task_unreadable ON task (owner) WHERE died_at IS NOT NULL AND kind IN ('documents.open', 'ocr.read');
