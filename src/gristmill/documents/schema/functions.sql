-- Documents are counted as they come and go, and their bytes are kept once for all clients.
-- What lies in another document and was not read from a file is a note about it: no list names it, and nobody counts it.

CREATE OR REPLACE FUNCTION tally_new_documents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO document_tally SELECT scope, count(*), count(completed_at) FROM fresh
   WHERE container IS NULL OR task <> 0 GROUP BY scope;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER document_added AFTER INSERT ON document REFERENCING NEW TABLE AS fresh
  FOR EACH STATEMENT EXECUTE FUNCTION tally_new_documents();

CREATE OR REPLACE FUNCTION tally_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO document_tally VALUES (NEW.scope, 0, 1);
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER document_completed AFTER UPDATE OF completed_at ON document
  FOR EACH ROW WHEN (OLD.completed_at IS NULL AND NEW.completed_at IS NOT NULL AND (NEW.container IS NULL OR NEW.task <> 0))
  EXECUTE FUNCTION tally_document();

CREATE OR REPLACE FUNCTION tally_placed_note() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  change int := CASE WHEN NEW.container IS NULL THEN 1 ELSE -1 END;
BEGIN
  INSERT INTO document_tally VALUES (NEW.scope, change, CASE WHEN NEW.completed_at IS NULL THEN 0 ELSE change END);
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER note_placed AFTER UPDATE OF container ON document
  FOR EACH ROW WHEN (NEW.task = 0 AND (OLD.container IS NULL) <> (NEW.container IS NULL)) EXECUTE FUNCTION tally_placed_note();

CREATE OR REPLACE FUNCTION tally_gone_documents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO document_tally SELECT scope, -count(*), -count(completed_at) FROM gone
   WHERE container IS NULL OR task <> 0 GROUP BY scope;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER document_gone AFTER DELETE ON document REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION tally_gone_documents();

-- A phase belongs to a document of its scope, and goes with it. These triggers do for a whole statement what a foreign key does
-- row by row: four rows for each new document took a fifth of the time in which it is written. Phases are written in the
-- transaction that makes their document, so nobody else can take it away meanwhile.
CREATE OR REPLACE FUNCTION demand_documents_of_phases() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
  -- `+ 0` on purpose: a plan that is made while there are no documents would else look through all of a scope for each
  IF EXISTS (SELECT FROM (SELECT DISTINCT document, scope FROM fresh) f
              WHERE NOT EXISTS (SELECT FROM document d WHERE d.id = f.document AND d.scope + 0 = f.scope)) THEN
    RAISE foreign_key_violation USING MESSAGE = 'a phase belongs to a document of its scope';
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER phase_added AFTER INSERT ON phase REFERENCING NEW TABLE AS fresh
  FOR EACH STATEMENT EXECUTE FUNCTION demand_documents_of_phases();
CREATE OR REPLACE TRIGGER phase_moved AFTER UPDATE ON phase REFERENCING NEW TABLE AS fresh
  FOR EACH STATEMENT EXECUTE FUNCTION demand_documents_of_phases();

CREATE OR REPLACE FUNCTION drop_phases_of_documents() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
  DELETE FROM phase p USING gone WHERE p.document = gone.id;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER document_gone_with_phases AFTER DELETE ON document REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION drop_phases_of_documents();

-- The row of some bytes, made if it is missing, and kept from being removed until the transaction ends.
CREATE OR REPLACE FUNCTION keep_blob(digest bytea, total bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  kept bigint;
BEGIN
  LOOP
    SELECT id INTO kept FROM blob WHERE hash = digest FOR KEY SHARE;
    EXIT WHEN kept IS NOT NULL;
    -- another transaction that makes the same row is waited for; should it be removed again, we look once more
    INSERT INTO blob (hash, size) VALUES (digest, total) ON CONFLICT (hash) DO NOTHING RETURNING id INTO kept;
    EXIT WHEN kept IS NOT NULL;
  END LOOP;
  RETURN kept;
END $$;

-- The functions below are for clients, too, who cannot touch the tables of bytes: two clients may have the same bytes, and
-- neither may be kept from its own, or learn of the other. Each function does one thing that needs no trust in its caller.

-- Remembers that the caller has had these bytes in its hands. The owner may make documents of all bytes, and needs no proof.
CREATE OR REPLACE FUNCTION note_claim(digest bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF coalesce(nullif(current_setting('role'), 'none'), session_user) <> current_user THEN
    INSERT INTO claimed_blob VALUES (pg_current_xact_id(), digest) ON CONFLICT DO NOTHING;
  END IF;
END $$;

-- Whether this transaction has had these bytes in its hands.
CREATE OR REPLACE FUNCTION has_claimed(digest bytea) RETURNS boolean LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  RETURN EXISTS (SELECT FROM claimed_blob c WHERE c.transaction = pg_current_xact_id() AND c.hash = digest);
END $$;

-- A client makes documents only of bytes that it has had in its hands, or that a document has which it sees: whoever has a
-- document may read its bytes. The answer is the same whether nobody has such bytes or another client.
CREATE OR REPLACE FUNCTION demand_claim() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF NOT has_claimed(NEW.hash) AND NOT EXISTS (SELECT FROM document d WHERE d.hash = NEW.hash) THEN
    RAISE insufficient_privilege USING MESSAGE = 'a document is made of bytes that its client has handed in';
  END IF;
  RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER document_claims BEFORE INSERT OR UPDATE OF hash ON document
  FOR EACH ROW WHEN (row_security_active('document'::regclass)) EXECUTE FUNCTION demand_claim();

-- Keeps these bytes; their hash is reckoned here, so that nobody can lay claim to bytes that it does not have: see `demand_claim`.
CREATE OR REPLACE FUNCTION keep_bytes(content bytea) RETURNS bytea LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  digest bytea := sha256(content);
  kept bigint := keep_blob(digest, length(content));
  piece int := 1 << 20;
BEGIN
  IF length(content) > 0 AND NOT EXISTS (SELECT FROM blob_piece WHERE blob = kept) THEN
    INSERT INTO blob_piece (blob, n, bytes)
    SELECT kept, i, substr(content, i * piece + 1, piece) FROM generate_series(0, (length(content) - 1) / piece) AS i
    ON CONFLICT DO NOTHING;
  END IF;
  PERFORM note_claim(digest);
  RETURN digest;
END $$;

-- The same for many contents at a time, in the order of their hashes: everybody locks bytes in this order.
CREATE OR REPLACE FUNCTION keep_all_bytes(contents bytea[]) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  digests bytea[];
  bodies bytea[];
  missing bytea[];
  held bytea[];
  found bytea[] := '{}';  -- those that were here before us
  piece int := 1 << 20;
BEGIN
  SELECT array_agg(digest ORDER BY digest), array_agg(body ORDER BY digest) INTO digests, bodies
    FROM (SELECT DISTINCT ON (1) sha256(body) AS digest, body FROM unnest(contents) AS body) given;
  missing := digests;
  WHILE cardinality(missing) > 0 LOOP
    -- another transaction that makes the same row is waited for; should it be removed again, we look once more
    WITH made AS (
      INSERT INTO blob (hash, size)
      SELECT digest, length(g.body) FROM unnest(digests, bodies) AS g (digest, body) JOIN unnest(missing) AS m (digest) USING (digest)
       ORDER BY digest
      ON CONFLICT (hash) DO NOTHING RETURNING id, hash
    ), written AS (  -- nobody else knows these rows yet, so they have no pieces: nothing needs to be looked up
      INSERT INTO blob_piece (blob, n, bytes)
      SELECT m.id, i, substr(g.body, i * piece + 1, piece)
        FROM made m JOIN unnest(digests, bodies) AS g (digest, body) ON g.digest = m.hash
       CROSS JOIN generate_series(0, (length(g.body) - 1) / piece) AS i
       WHERE length(g.body) > 0
    )
    SELECT coalesce(array_agg(hash), '{}') INTO held FROM made;
    missing := ARRAY (SELECT unnest(missing) EXCEPT SELECT unnest(held) ORDER BY 1);
    EXIT WHEN cardinality(missing) = 0;
    held := ARRAY (SELECT hash FROM blob WHERE hash = ANY (missing) ORDER BY hash FOR KEY SHARE);
    found := found || held;
    missing := ARRAY (SELECT unnest(missing) EXCEPT SELECT unnest(held) ORDER BY 1);
  END LOOP;
  IF cardinality(found) > 0 THEN
    INSERT INTO blob_piece (blob, n, bytes)
    SELECT b.id, i, substr(g.body, i * piece + 1, piece)
      FROM unnest(digests, bodies) AS g (digest, body)
      JOIN unnest(found) AS f (digest) USING (digest)
      JOIN blob b ON b.hash = g.digest
     CROSS JOIN generate_series(0, (length(g.body) - 1) / piece) AS i
     WHERE length(g.body) > 0 AND NOT EXISTS (SELECT FROM blob_piece p WHERE p.blob = b.id)
    ON CONFLICT DO NOTHING;
  END IF;
  PERFORM note_claim(digest) FROM unnest(digests) AS digest;
END $$;

-- Numbers for new documents: the tasks about a document name it, and are written before it.
CREATE OR REPLACE FUNCTION reserve_documents(n int) RETURNS SETOF bigint LANGUAGE sql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT nextval(pg_get_serial_sequence('document', 'id')) FROM generate_series(1, n)
$$;

-- Takes the pin from staged bytes: from now on, until the transaction ends, they are kept from being removed by a lock.
-- False if the pin is not, or no more, that of these bytes.
CREATE OR REPLACE FUNCTION claim_staged(pin_ uuid, digest bytea) RETURNS boolean LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  kept bigint;
BEGIN
  DELETE FROM staged_blob s USING blob b WHERE s.pin = pin_ AND b.id = s.blob AND b.hash = digest RETURNING b.id INTO kept;
  IF kept IS NULL THEN
    RETURN false;
  END IF;
  PERFORM FROM blob WHERE id = kept FOR KEY SHARE;
  PERFORM note_claim(digest);
  RETURN true;
END $$;

-- Keeps bytes that a document has from being removed until the transaction ends.
CREATE OR REPLACE FUNCTION hold_blob(digest bytea) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM FROM blob WHERE hash = digest FOR KEY SHARE;
END $$;

-- Whoever keeps or drops one of these right now is done with it when this returns. The bytes of nothing are left out: they are
-- never removed, and so many documents have them that everybody would wait for everybody.
CREATE OR REPLACE FUNCTION lock_blobs(digests bytea[]) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM FROM blob WHERE hash = ANY (digests) AND size > 0 ORDER BY hash FOR UPDATE;
END $$;

-- Removes the bytes among these that no document has, of whichever client, and nobody has staged.
CREATE OR REPLACE FUNCTION drop_unused_blobs(digests bytea[]) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM lock_blobs(digests);
  DELETE FROM blob b
   WHERE b.hash = ANY (digests) AND b.size > 0
     AND NOT EXISTS (SELECT FROM document d WHERE d.hash = b.hash)
     AND NOT EXISTS (SELECT FROM staged_blob s WHERE s.blob = b.id);
END $$;

-- Takes the pin from staged bytes that no document is to have, and removes them if nothing else needs them.
CREATE OR REPLACE FUNCTION release_staged(pin_ uuid, digest bytea) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  DELETE FROM staged_blob s USING blob b WHERE s.pin = pin_ AND b.id = s.blob AND b.hash = digest;
  IF FOUND THEN
    PERFORM drop_unused_blobs(ARRAY[digest]);
  END IF;
END $$;

-- The documents of these scopes (null: of all) that have dead letters, the newest first. It has the rights of the owner, because
-- row-level security would keep the index from being used: `substr` might tell of rows that the policy hides. The scopes that
-- the session sees are asked for here instead; a session of the owner sees all. Each round finds the next document, however many
-- dead letters the one before it has.
CREATE OR REPLACE FUNCTION dead_documents(among int[], before bigint, most int) RETURNS SETOF bigint LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
  at bigint := before;
BEGIN
  IF coalesce(nullif(current_setting('role'), 'none'), session_user) <> current_user THEN
    among := ARRAY (SELECT s FROM unnest(seen_scopes()) s WHERE among IS NULL OR s = ANY (among));
  END IF;
  FOR n IN 1..most LOOP
    IF among IS NULL THEN
      SELECT substr(owner, 10)::bigint INTO at FROM task
       WHERE died_at IS NOT NULL AND owner ~ '^document:[0-9]{1,18}$' AND substr(owner, 10)::bigint < at
       ORDER BY substr(owner, 10)::bigint DESC LIMIT 1;
    ELSE
      SELECT max(d.id) INTO at FROM unnest(among) AS o (scope), LATERAL (
        SELECT substr(owner, 10)::bigint AS id FROM task
         WHERE scope = o.scope AND died_at IS NOT NULL AND owner ~ '^document:[0-9]{1,18}$' AND substr(owner, 10)::bigint < at
         ORDER BY scope DESC, substr(owner, 10)::bigint DESC LIMIT 1) d;
    END IF;
    EXIT WHEN at IS NULL;
    RETURN NEXT at;
  END LOOP;
END $$;
