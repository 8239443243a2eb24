-- Functions that changes call, whoever makes them.

-- Notes in the transaction of a change that the write with this id takes place; `whole`: it makes no other change. Null if a
-- repetition has taken the write over meanwhile: the row has another id by then.
CREATE OR REPLACE FUNCTION confirm_write(write bigint, whole boolean) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $$
  UPDATE web_write SET is_committed = is_committed OR whole WHERE id = write AND status IS NULL RETURNING true
$$;

-- Writes a line of the operator into the audit log, also in a transaction that sees one client alone: no client reads it.
CREATE OR REPLACE FUNCTION record_of_operator(
  who text, key int, role text, action text, subject text, details jsonb, address text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $$
  INSERT INTO audit (scope, caller, access_key, role, action, subject, details, address)
  VALUES (1, who, key, role, action, subject, details, address)
$$;
