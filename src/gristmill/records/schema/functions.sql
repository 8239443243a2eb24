-- Records go with their import, lose their chunk with it, and are found by their columns.

CREATE OR REPLACE FUNCTION remove_records_of_gone_imports() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM data_records r USING gone WHERE r.import = gone.id;
  DELETE FROM data_tally t USING gone WHERE t.import = gone.id;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER data_import_gone AFTER DELETE ON data_import REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION remove_records_of_gone_imports();

-- Records are counted by every statement that changes any.
CREATE OR REPLACE FUNCTION tally_new_records() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO data_tally
  SELECT import, scope, count(*), count(chunk), count(trouble), count(*) FILTER (WHERE chunk IS NULL AND embed AND trouble IS NULL)
    FROM come GROUP BY import, scope;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER data_records_come AFTER INSERT ON data_records REFERENCING NEW TABLE AS come
  FOR EACH STATEMENT EXECUTE FUNCTION tally_new_records();

CREATE OR REPLACE FUNCTION tally_changed_records() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO data_tally
  SELECT * FROM (
    SELECT import, scope, sum(n) AS records, coalesce(sum(n) FILTER (WHERE chunk IS NOT NULL), 0) AS searchable,
           coalesce(sum(n) FILTER (WHERE trouble IS NOT NULL), 0) AS troubled,
           coalesce(sum(n) FILTER (WHERE chunk IS NULL AND embed AND trouble IS NULL), 0) AS waiting
      FROM (SELECT 1 AS n, import, scope, chunk, trouble, embed FROM come
            UNION ALL
            SELECT -1, import, scope, chunk, trouble, embed FROM gone) r
     GROUP BY import, scope) t
   WHERE (t.records, t.searchable, t.troubled, t.waiting) <> (0, 0, 0, 0); -- a new category changes no count
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER data_records_changed AFTER UPDATE ON data_records REFERENCING NEW TABLE AS come OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION tally_changed_records();

CREATE OR REPLACE FUNCTION tally_gone_records() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO data_tally
  SELECT import, scope, -count(*), -count(chunk), -count(trouble), -count(*) FILTER (WHERE chunk IS NULL AND embed AND trouble IS NULL)
    FROM gone GROUP BY import, scope;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER data_records_gone AFTER DELETE ON data_records REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION tally_gone_records();

-- The chunks of records of these scopes that have these values in their columns, at most so many. It has the rights of the
-- owner, because row-level security would keep the index from being used: `@>` might tell of rows that the policy hides. The
-- scopes that the session sees are asked for here instead; a session of the owner sees all.
CREATE OR REPLACE FUNCTION chunks_by_columns(wanted jsonb, among int[], most int) RETURNS SETOF bigint LANGUAGE sql STABLE
SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT chunk FROM data_records
   WHERE chunk IS NOT NULL AND columns @> chunks_by_columns.wanted AND scope = ANY (chunks_by_columns.among)
     AND (coalesce(nullif(current_setting('role'), 'none'), session_user) = current_user
          OR scope = ANY ((SELECT seen_scopes())::int[]))
   LIMIT chunks_by_columns.most
$$;
