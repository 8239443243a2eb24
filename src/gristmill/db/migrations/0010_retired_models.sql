-- The models that are no longer used go without keeping a search waiting.

-- They go unless one of them has vectors left, which is asked when nobody can write any: whoever writes a vector holds the
-- row of its model. Only in the end, to drop an index, the table is locked, for which all searches must be done and behind
-- which new ones stand: where that, or a writer, takes longer than a moment, nothing is changed, and it is tried again.
CREATE OR REPLACE FUNCTION retire_vector_models(except_model smallint) RETURNS boolean LANGUAGE plpgsql
SET lock_timeout = '200ms' AS $$
DECLARE old smallint[];
BEGIN
  PERFORM FROM embedding_model WHERE id <> except_model ORDER BY id FOR UPDATE;
  IF EXISTS (SELECT FROM embedding WHERE model <> except_model) THEN
    RETURN false;
  END IF;
  WITH gone AS (DELETE FROM embedding_model WHERE id <> except_model RETURNING id)
  SELECT array_agg(id) INTO old FROM gone;
  FOR n IN 1 .. coalesce(cardinality(old), 0) LOOP
    EXECUTE format('DROP INDEX IF EXISTS embedding_near_%s', old[n]);
  END LOOP;
  RETURN true;
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END $$;
