-- Items move by one function, and are counted as they come, move and go.

-- Whether an item may go from one state to another.
CREATE OR REPLACE FUNCTION may_move(was text, state text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT may_move.state = ANY (CASE was
    WHEN 'new' THEN ARRAY['ready_for_qualification', 'qualifying', 'done', 'scheduled', 'ready_for_execution', 'waiting_for_children', 'error']
    WHEN 'ready_for_qualification' THEN ARRAY['qualifying', 'done', 'scheduled', 'ready_for_execution', 'waiting_for_children', 'error']
    WHEN 'qualifying' THEN ARRAY['ready_for_qualification', 'done', 'scheduled', 'ready_for_execution', 'waiting_for_children', 'error']
    WHEN 'scheduled' THEN ARRAY['ready_for_qualification', 'ready_for_execution', 'waiting_for_children', 'done', 'error']
    WHEN 'ready_for_execution' THEN ARRAY['dispatched', 'done', 'waiting_for_children', 'error']
    WHEN 'dispatched' THEN ARRAY['running', 'ready_for_execution', 'done', 'error']
    WHEN 'running' THEN ARRAY['completed', 'waiting_for_user', 'ready_for_execution', 'done', 'error']
    WHEN 'waiting_for_user' THEN ARRAY['ready_for_execution', 'done', 'error']
    WHEN 'waiting_for_children' THEN ARRAY['completed', 'done', 'error']
    WHEN 'done' THEN ARRAY['ready_for_qualification', 'scheduled', 'ready_for_execution', 'waiting_for_children']
    WHEN 'completed' THEN ARRAY['ready_for_qualification', 'ready_for_execution', 'waiting_for_children']
    WHEN 'error' THEN ARRAY['ready_for_qualification', 'scheduled', 'ready_for_execution', 'waiting_for_children', 'done']
  END)
$$;

-- Moves an item, if it is in one of the states that are named: the one way by which a state changes. `columns` are further
-- columns by their names. Whatever belonged to the former state alone (outcome, error, question) goes with it. False if the
-- item is gone, or in another state.
CREATE OR REPLACE FUNCTION move_item(item_ bigint, since text[], state_ text, why_ text, by_ text, outcome_ text, columns jsonb)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  old item;
BEGIN
  SELECT * INTO old FROM item WHERE id = item_ FOR UPDATE;
  IF old.id IS NULL OR NOT old.state = ANY (since) THEN
    RETURN false;
  END IF;
  IF NOT may_move(old.state, state_) THEN
    RAISE check_violation USING MESSAGE = format('an item does not go from %s to %s', old.state, state_);
  END IF;
  UPDATE item i
     SET state = state_, outcome = outcome_, step = i.step + 1, changed_at = clock(),
         error = CASE state_ WHEN 'error' THEN coalesce(columns ->> 'error', why_) END,
         question = CASE state_ WHEN 'waiting_for_user' THEN coalesce(columns ->> 'question', why_) END,
         foreground = c.foreground, position = c.position, urgency = c.urgency, deadline = c.deadline, cron = c.cron,
         scheduled_at = CASE state_ WHEN 'scheduled' THEN c.scheduled_at END, merged_into = c.merged_into,
         warning = c.warning, task = c.task, decision = c.decision, run = c.run, started_at = c.started_at, heard = c.heard,
         dispatch_failures = c.dispatch_failures
    FROM jsonb_populate_record(old, columns) c
   WHERE i.id = item_;
  INSERT INTO item_event (item, scope, was, state, outcome, why, by, task)
  VALUES (item_, old.scope, old.state, state_, outcome_, why_, by_, coalesce((columns ->> 'task')::bigint, old.task));
  IF state_ = 'done' AND old.state IN ('dispatched', 'running') THEN
    PERFORM pg_notify('gristmill_request', 'stop ' || item_);  -- its executor works for nothing
  END IF;
  IF old.parent IS NOT NULL AND state_ IN ('done', 'completed', 'error') THEN
    PERFORM conclude_parent(old.parent);
  END IF;
  RETURN true;
END $$;

-- Ends an item that was decomposed when the last of its parts has ended. The lock comes first: of two parts that end at the
-- same time, the second one sees the first.
CREATE OR REPLACE FUNCTION conclude_parent(parent_ bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  unfinished int;
  failed int;
BEGIN
  PERFORM FROM item WHERE id = parent_ FOR UPDATE;
  SELECT count(*) FILTER (WHERE state NOT IN ('done', 'completed', 'error')), count(*) FILTER (WHERE state = 'error')
    INTO unfinished, failed FROM item WHERE parent = parent_;
  IF unfinished > 0 THEN
    RETURN;
  END IF;
  PERFORM move_item(parent_, ARRAY['waiting_for_children'], CASE WHEN failed > 0 THEN 'error' ELSE 'completed' END,
                    CASE WHEN failed > 0 THEN failed || ' of its parts failed: reopen them.' ELSE 'all of its parts are done' END,
                    'qualifier', NULL, '{}');
END $$;

CREATE OR REPLACE FUNCTION tally_new_work() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO item_tally SELECT scope, state, coalesce(outcome, ''), foreground, count(*) FROM fresh GROUP BY 1, 2, 3, 4;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER work_added AFTER INSERT ON item REFERENCING NEW TABLE AS fresh
  FOR EACH STATEMENT EXECUTE FUNCTION tally_new_work();

CREATE OR REPLACE FUNCTION tally_moved_work() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO item_tally
  SELECT scope, state, outcome, foreground, sum(n)
    FROM (SELECT scope, state, coalesce(outcome, '') AS outcome, foreground, 1 AS n FROM fresh UNION ALL
          SELECT scope, state, coalesce(outcome, ''), foreground, -1 FROM old_) moved
   GROUP BY 1, 2, 3, 4 HAVING sum(n) <> 0;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER work_moved AFTER UPDATE ON item REFERENCING OLD TABLE AS old_ NEW TABLE AS fresh
  FOR EACH STATEMENT EXECUTE FUNCTION tally_moved_work();

CREATE OR REPLACE FUNCTION tally_gone_work() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO item_tally SELECT scope, state, coalesce(outcome, ''), foreground, -count(*) FROM gone GROUP BY 1, 2, 3, 4;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER work_gone AFTER DELETE ON item REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION tally_gone_work();

-- An item goes with its last document: what was derived from it must not outlive it. An older version that a newer one
-- replaces takes nothing with it.
CREATE OR REPLACE FUNCTION drop_items_of_gone_documents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  WITH lost AS (
    SELECT DISTINCT g.scope, g.urn FROM gone g
     WHERE NOT EXISTS (SELECT FROM document d WHERE d.scope = g.scope AND d.urn = g.urn)
  ), unsent AS (
    DELETE FROM sent_mail s USING lost l WHERE s.scope = l.scope AND s.urn = l.urn
  ), freed AS (
    DELETE FROM item_source s USING lost l WHERE s.scope = l.scope AND s.urn = l.urn RETURNING s.item, s.urn
  )
  DELETE FROM item i USING (SELECT DISTINCT item FROM freed) f
   WHERE i.id = f.item
     AND NOT EXISTS (SELECT FROM item_source s WHERE s.item = i.id AND NOT EXISTS (SELECT FROM freed x WHERE x.urn = s.urn AND x.item = s.item));
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER document_left_items AFTER DELETE ON document REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION drop_items_of_gone_documents();
