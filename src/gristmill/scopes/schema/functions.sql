-- Who sees and who changes which rows, and how a table is put under that rule.

-- From everywhere GLOBAL is seen; from a client all of its own; from a project itself and its client's level.
CREATE OR REPLACE FUNCTION visible_scopes(client text, project text) RETURNS int[] LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT coalesce(array_agg(s.id ORDER BY s.id), '{}') FROM scope s
   WHERE s.client = ''
      OR s.client = visible_scopes.client
         AND (visible_scopes.project = '' OR s.project IN ('', visible_scopes.project))
$$;

-- The client and the project that this session looks from. A session that never said so sees GLOBAL alone.
CREATE OR REPLACE FUNCTION seen_from_client() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT coalesce(current_setting('gristmill.client', true), '')
$$;
CREATE OR REPLACE FUNCTION seen_from_project() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT coalesce(current_setting('gristmill.project', true), '')
$$;

-- The scopes that this session sees.
CREATE OR REPLACE FUNCTION seen_scopes() RETURNS int[] LANGUAGE sql STABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
  SELECT visible_scopes(seen_from_client(), seen_from_project())
$$;

-- The scopes whose rows this session may change: its own client's, or of a project that project alone. GLOBAL is changed
-- only from GLOBAL.
CREATE OR REPLACE FUNCTION own_scopes() RETURNS int[] LANGUAGE sql STABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
  SELECT coalesce(array_agg(s.id), '{}') FROM scope s
   WHERE s.client = seen_from_client() AND (seen_from_project() = '' OR s.project = seen_from_project())
$$;

-- Puts a table under policies: `seen` decides which rows can be read, `own` which can be written. The owner of the tables
-- (workers, migrations, the operator's commands) is not bound by them; the role gristmill_tenant is.
CREATE OR REPLACE FUNCTION protect(of text, seen text DEFAULT 'scope = ANY ((SELECT seen_scopes())::int[])',
                                   own text DEFAULT 'scope = ANY ((SELECT own_scopes())::int[])',
                                   rights text DEFAULT 'SELECT, INSERT, UPDATE, DELETE')
RETURNS void LANGUAGE plpgsql SET client_min_messages = warning AS $$
BEGIN
  EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', of);
  EXECUTE format('DROP POLICY IF EXISTS seen ON %1$I; CREATE POLICY seen ON %1$I FOR SELECT USING (%2$s)', of, seen);
  EXECUTE format('DROP POLICY IF EXISTS added ON %1$I; CREATE POLICY added ON %1$I FOR INSERT WITH CHECK (%2$s)', of, own);
  EXECUTE format('DROP POLICY IF EXISTS changed ON %1$I; CREATE POLICY changed ON %1$I FOR UPDATE USING (%2$s)', of, own);
  EXECUTE format('DROP POLICY IF EXISTS removed ON %1$I; CREATE POLICY removed ON %1$I FOR DELETE USING (%2$s)', of, own);
  PERFORM share(of, rights);
END $$;

-- Lets gristmill_tenant use a table, a view or a sequence, if that role is there.
CREATE OR REPLACE FUNCTION share(of text, rights text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF to_regrole('gristmill_tenant') IS NOT NULL THEN
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO gristmill_tenant', current_schema());
    EXECUTE format('REVOKE ALL ON %I FROM gristmill_tenant', of);
    EXECUTE format('GRANT %s ON %I TO gristmill_tenant', rights, of);
  END IF;
END $$;

-- Functions that run with the rights of the owner are for gristmill_tenant, and for nobody else who may log in here.
CREATE OR REPLACE FUNCTION guard_definers() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  one regprocedure;
BEGIN
  FOR one IN SELECT oid FROM pg_proc WHERE prosecdef AND pronamespace = current_schema()::regnamespace LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', one);
    IF to_regrole('gristmill_tenant') IS NOT NULL THEN
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO gristmill_tenant', one);
    END IF;
  END LOOP;
END $$;
