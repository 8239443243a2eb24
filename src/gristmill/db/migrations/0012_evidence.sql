-- What somebody states goes with its own evidence, and with nothing else.

-- Of a node that chunks were named for when it was stated, the statement goes with the last of them; of any other it stays.
ALTER TABLE entity ADD linked boolean NOT NULL DEFAULT false;

-- Whether what is stated in one scope may rest on a chunk of another: for a client all of its own; for a project itself and
-- its client's level.
CREATE FUNCTION may_rest_on(stated scope, shown scope) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT stated.client = shown.client AND (stated.project = '' OR shown.project IN ('', stated.project))
$$;

UPDATE entity e SET linked = true
  FROM scope s
 WHERE s.id = e.scope
   AND EXISTS (SELECT FROM mention m JOIN scope o ON o.id = m.scope WHERE m.key = e.key AND m.stated AND may_rest_on(s, o));

-- What was stated of a chunk is looked up when it goes, and there is little of it.
CREATE INDEX mention_stated ON mention (chunk) WHERE stated;

-- Waits for whoever adds an alias, and lets nobody add one until all is written: what was asked of aliases stays true.
CREATE FUNCTION write_mentions() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  LOCK TABLE mention IN ROW EXCLUSIVE MODE;
END $$;
