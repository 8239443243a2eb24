-- Items are counted as they come, move and go.

CREATE OR REPLACE FUNCTION tally_new_items() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO source_tally SELECT source, scope, state, count(*) FROM fresh GROUP BY source, scope, state;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER item_added AFTER INSERT ON source_item REFERENCING NEW TABLE AS fresh
  FOR EACH STATEMENT EXECUTE FUNCTION tally_new_items();

CREATE OR REPLACE FUNCTION tally_moved_items() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO source_tally
  SELECT source, scope, state, sum(n)
    FROM (SELECT source, scope, state, 1 AS n FROM fresh UNION ALL SELECT source, scope, state, -1 FROM old_) moved
   GROUP BY source, scope, state HAVING sum(n) <> 0;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER item_moved AFTER UPDATE ON source_item REFERENCING OLD TABLE AS old_ NEW TABLE AS fresh
  FOR EACH STATEMENT EXECUTE FUNCTION tally_moved_items();

CREATE OR REPLACE FUNCTION tally_gone_items() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO source_tally SELECT source, scope, state, -count(*) FROM gone GROUP BY source, scope, state;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER item_gone AFTER DELETE ON source_item REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION tally_gone_items();
