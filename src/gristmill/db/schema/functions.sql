-- The one clock of the database.

-- One clock. Tests move it with SET gristmill.clock_offset = '2 hours'.
CREATE OR REPLACE FUNCTION clock() RETURNS timestamptz LANGUAGE sql STABLE AS
$$ SELECT clock_timestamp() + coalesce(nullif(current_setting('gristmill.clock_offset', true), ''), '0')::interval $$;
