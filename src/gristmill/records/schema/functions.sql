-- Records go with their import, lose their chunk with it, and are found by their columns.

CREATE OR REPLACE FUNCTION remove_records_of_gone_imports() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM data_records r USING gone WHERE r.import = gone.id;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER data_import_gone AFTER DELETE ON data_import REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION remove_records_of_gone_imports();

-- The chunks of records that have these values in their columns, at most so many. It has the rights of the owner, because
-- row-level security would keep the index from being used: `@>` might tell of rows that the policy hides. The scopes that the
-- session sees are asked for here instead.
CREATE OR REPLACE FUNCTION chunks_with_columns(wanted jsonb, most int) RETURNS SETOF bigint LANGUAGE sql STABLE
SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT chunk FROM data_records
   WHERE chunk IS NOT NULL AND columns @> chunks_with_columns.wanted AND scope = ANY ((SELECT seen_scopes())::int[])
   LIMIT chunks_with_columns.most
$$;
