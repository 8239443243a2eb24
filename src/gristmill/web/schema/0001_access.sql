-- Access: who may call the API and open the console, and what they changed.
-- needs: scopes

-- A key is shown once, when it is made; what is kept is its SHA-256. 256 random bits need no slow hash.
CREATE TABLE access_key (
  id           int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  digest       bytea NOT NULL UNIQUE CHECK (octet_length(digest) = 32),
  name         text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
  role         text NOT NULL CHECK (role IN ('viewer', 'manager', 'admin')),
  bound_to     int REFERENCES scope, -- without it: the operator's, who sees all clients
  created_at   timestamptz NOT NULL DEFAULT clock(),
  last_used_at timestamptz, -- to the minute
  revoked_at   timestamptz
);
CREATE UNIQUE INDEX access_key_name ON access_key (name) WHERE revoked_at IS NULL;

-- A browser that is signed in. A session ends with its key.
CREATE TABLE web_session (
  digest     bytea PRIMARY KEY CHECK (octet_length(digest) = 32),
  access_key int REFERENCES access_key, -- without it: opened by a one-time link, which is the operator's
  address    text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX web_session_end ON web_session (expires_at);
CREATE INDEX web_session_key ON web_session (access_key);

-- A link that signs in once: whoever deletes its row has used it.
CREATE TABLE sign_in_link (
  digest     bytea PRIMARY KEY CHECK (octet_length(digest) = 32),
  expires_at timestamptz NOT NULL
);
CREATE INDEX sign_in_link_end ON sign_in_link (expires_at);

-- Attempts to sign in that did not succeed. An attempt is written down before it is judged: many at once count as many.
CREATE TABLE sign_in_attempt (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  address text NOT NULL,
  at      timestamptz NOT NULL DEFAULT clock()
);
CREATE INDEX sign_in_attempt_address ON sign_in_attempt (address, at);
CREATE INDEX sign_in_attempt_time ON sign_in_attempt (at);

-- Every change, written in the transaction of the change. The scope is that of the caller: a client sees what was done
-- with its own keys, and nothing that the operator did.
CREATE TABLE audit (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope      int NOT NULL REFERENCES scope,
  at         timestamptz NOT NULL DEFAULT clock(),
  caller     text NOT NULL,
  access_key int, -- no reference: the log outlives the key
  role       text NOT NULL,
  action     text NOT NULL,
  subject    text NOT NULL,
  details    jsonb NOT NULL DEFAULT '{}',
  address    text NOT NULL
);
CREATE INDEX audit_scope ON audit (scope, id);
CREATE INDEX audit_caller ON audit (caller, id);
CREATE INDEX audit_action ON audit (action, id);
