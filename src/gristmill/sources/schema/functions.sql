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

-- A link that stands nowhere any more, and that nobody has decided about, goes with its last document; of another one the words
-- around it go, which belonged to that document. Whoever holds one of these rows is just about to give it another place.
CREATE OR REPLACE FUNCTION forget_links_without_places() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  lost bigint[];
BEGIN
  lost := ARRAY(
    SELECT l.id FROM link l
     WHERE l.id IN (SELECT link FROM gone) AND NOT EXISTS (SELECT FROM link_place p WHERE p.link = l.id)
     ORDER BY l.id FOR UPDATE SKIP LOCKED);
  DELETE FROM link l
   WHERE l.id = ANY (lost) AND l.state IN ('waiting', 'refused', 'failed') AND l.decided_by IS NULL
     AND NOT EXISTS (SELECT FROM link_place p WHERE p.link = l.id);
  UPDATE link l SET label = '', lead_in = '', context = ''
   WHERE l.id = ANY (lost) AND (l.label, l.lead_in, l.context) <> ('', '', '')
     AND NOT EXISTS (SELECT FROM link_place p WHERE p.link = l.id);
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER place_gone AFTER DELETE ON link_place REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION forget_links_without_places();

-- A link whose page was removed waits for a person again: nobody but a person brings back what a person removed. One that stands
-- nowhere any more goes with its page.
CREATE OR REPLACE FUNCTION let_links_wait_again() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM link l USING gone g
   WHERE l.document = g.id AND l.state = 'indexed' AND NOT EXISTS (SELECT FROM link_place p WHERE p.link = l.id);
  UPDATE link l
     SET state = 'waiting', verdict = 'uncertain', reason = 'Its page was removed.', rule = NULL, decided_by = NULL,
         decided_at = clock(), document = NULL, etag = NULL, last_modified = NULL, error = NULL
    FROM gone g WHERE l.document = g.id AND l.state = 'indexed';
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER page_gone AFTER DELETE ON document REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION let_links_wait_again();
