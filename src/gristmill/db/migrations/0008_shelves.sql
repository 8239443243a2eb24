-- Changing the embedding model loses no vector, documents are counted as they come and go, and found by type.

-- The models that were used before this one go, unless one of them has vectors left: whether it does is asked when nobody
-- can write any. An old vector goes only when its chunk has a new one.
DROP FUNCTION drop_vector_models(smallint);
CREATE FUNCTION retire_vector_models(except_model smallint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE old smallint;
BEGIN
  LOCK TABLE embedding IN ACCESS EXCLUSIVE MODE;
  IF EXISTS (SELECT FROM embedding WHERE model <> except_model) THEN
    RETURN false;
  END IF;
  FOR old IN SELECT id FROM embedding_model WHERE id <> except_model LOOP
    EXECUTE format('DROP INDEX IF EXISTS embedding_near_%s', old);
    DELETE FROM embedding_model WHERE id = old;
  END LOOP;
  RETURN true;
END $$;

-- A filter of a search that leaves few documents finds them without looking at all of a scope.
CREATE INDEX document_by_type ON document (scope, type, (coalesce(written_at, added_at)));
CREATE INDEX document_by_date ON document (scope, (coalesce(written_at, added_at)));

-- How many documents there are, and how many are complete: the sum of all rows. Each change adds a row, so that no two
-- writers ever meet in one; the fold of a scope makes one row of many.
CREATE TABLE document_tally (
  scope     int NOT NULL,
  documents int NOT NULL,
  completed int NOT NULL
);
CREATE INDEX document_tally_by_scope ON document_tally (scope);
INSERT INTO document_tally SELECT scope, count(*), count(completed_at) FROM document GROUP BY scope;

CREATE FUNCTION tally_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO document_tally
  VALUES (NEW.scope, CASE TG_OP WHEN 'INSERT' THEN 1 ELSE 0 END, CASE WHEN NEW.completed_at IS NULL THEN 0 ELSE 1 END);
  RETURN NULL;
END $$;
CREATE TRIGGER document_added AFTER INSERT ON document FOR EACH ROW EXECUTE FUNCTION tally_document();
CREATE TRIGGER document_completed AFTER UPDATE OF completed_at ON document
  FOR EACH ROW WHEN (OLD.completed_at IS NULL AND NEW.completed_at IS NOT NULL) EXECUTE FUNCTION tally_document();

CREATE FUNCTION tally_gone_documents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO document_tally SELECT scope, -count(*), -count(completed_at) FROM gone GROUP BY scope;
  RETURN NULL;
END $$;
CREATE TRIGGER document_gone AFTER DELETE ON document REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION tally_gone_documents();
