-- Documents are counted as they come and go.

CREATE OR REPLACE FUNCTION tally_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO document_tally
  VALUES (NEW.scope, CASE TG_OP WHEN 'INSERT' THEN 1 ELSE 0 END, CASE WHEN NEW.completed_at IS NULL THEN 0 ELSE 1 END);
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER document_added AFTER INSERT ON document FOR EACH ROW EXECUTE FUNCTION tally_document();
CREATE OR REPLACE TRIGGER document_completed AFTER UPDATE OF completed_at ON document
  FOR EACH ROW WHEN (OLD.completed_at IS NULL AND NEW.completed_at IS NOT NULL) EXECUTE FUNCTION tally_document();

CREATE OR REPLACE FUNCTION tally_gone_documents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO document_tally SELECT scope, -count(*), -count(completed_at) FROM gone GROUP BY scope;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER document_gone AFTER DELETE ON document REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION tally_gone_documents();
