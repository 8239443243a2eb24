-- Functions that changes call, whoever makes them.

-- Notes in the transaction of a change that the write with this id takes place.
CREATE OR REPLACE FUNCTION note_write(write bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $$
  UPDATE web_write SET is_committed = true WHERE id = write AND status IS NULL
$$;
