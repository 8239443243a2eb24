-- What the gate remembers: writes that must not be done twice, and how much every caller may still ask.

-- A write with an Idempotency-Key: being done, or done with its answer. `is_committed` is set in the transaction of the
-- write itself, so that a write whose process died is never done again.
CREATE TABLE web_write (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  caller       text NOT NULL,
  key          text NOT NULL,
  head         bytea NOT NULL, -- a digest of method, address and content type …
  body         bytea,          -- … and of the body, when it was read to its end
  began_at     timestamptz NOT NULL DEFAULT clock(),
  is_committed boolean NOT NULL DEFAULT false,
  status       smallint,       -- of the answer; none while it is being done
  headers      jsonb,
  answer       bytea,
  UNIQUE (caller, key)
);
CREATE INDEX web_write_age ON web_write (began_at);

-- Tokens that a caller has left. Servers take them in portions. After a crash everybody starts with a full bucket, so
-- the table needs no write-ahead log.
CREATE UNLOGGED TABLE web_allowance (
  caller text PRIMARY KEY,
  tokens double precision NOT NULL,
  at     timestamptz NOT NULL DEFAULT clock()
);
