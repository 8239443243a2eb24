-- The history of one thing, found in the log without reading all of it.

CREATE INDEX audit_subject ON audit (subject, id);
