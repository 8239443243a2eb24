-- The one clock of the database. Tables use it in their defaults, so it is one of their migrations.

-- Tests move it with SET gristmill.clock_offset = '2 hours'.
CREATE FUNCTION clock() RETURNS timestamptz LANGUAGE sql STABLE AS
$$ SELECT clock_timestamp() + coalesce(nullif(current_setting('gristmill.clock_offset', true), ''), '0')::interval $$;
