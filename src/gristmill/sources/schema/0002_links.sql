-- Links: addresses that were found in documents, where, and what was decided about them.

-- One address of one client or project, however often it is found.
CREATE TABLE link (
  id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope         int NOT NULL REFERENCES scope,
  hash          bytea NOT NULL CHECK (length(hash) = 32),  -- of the address
  url           text NOT NULL,
  host          text COLLATE "C" NOT NULL,
  backward      text COLLATE "C" NOT NULL GENERATED ALWAYS AS (reverse(host)) STORED,  -- a domain is a beginning of it
  verdict       text COLLATE "C" NOT NULL CHECK (verdict IN ('skip', 'blocked', 'safe', 'unsafe', 'uncertain')),
  reason        text NOT NULL,
  rule          bigint,                            -- that decided; it may be gone
  state         text COLLATE "C" NOT NULL CHECK (state IN ('waiting', 'queued', 'indexed', 'failed', 'refused')),
  decided_by    text,                              -- null: the program
  decided_at    timestamptz NOT NULL DEFAULT clock(),
  label         text NOT NULL DEFAULT '',          -- as it was found first
  lead_in       text NOT NULL DEFAULT '',          -- the words right before it
  context       text NOT NULL DEFAULT '',
  task          bigint,                            -- that fetches it, or did
  document      bigint,                            -- that it became
  etag          text,
  last_modified text,
  fetched_at    timestamptz,
  error         text,
  first_at      timestamptz NOT NULL DEFAULT clock(),
  UNIQUE (scope, hash),
  UNIQUE (scope, id),
  CHECK (state <> 'queued' OR task IS NOT NULL)
) WITH (fillfactor = 80);
CREATE INDEX link_by_state ON link (state, id);
CREATE INDEX link_by_host ON link (scope, backward, id);

-- The edge found_in: where a link was found. It goes with the document.
CREATE TABLE link_place (
  link     bigint NOT NULL,
  scope    int NOT NULL,
  urn      text NOT NULL,
  document bigint,
  label    text NOT NULL,
  context  text NOT NULL,
  at       timestamptz NOT NULL DEFAULT clock(),
  PRIMARY KEY (link, urn),
  FOREIGN KEY (link, scope) REFERENCES link (id, scope) ON DELETE CASCADE,
  FOREIGN KEY (document, scope) REFERENCES document (id, scope) ON DELETE CASCADE
);
CREATE INDEX link_place_by_urn ON link_place (scope, urn);
CREATE INDEX link_place_by_document ON link_place (document) WHERE document IS NOT NULL;

-- What people decided: a domain with its subdomains, or a part of it.
CREATE TABLE link_rule (
  id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope  int NOT NULL REFERENCES scope,
  effect text COLLATE "C" NOT NULL CHECK (effect IN ('allow', 'deny')),
  domain text COLLATE "C" NOT NULL CHECK (domain <> ''),
  path   text COLLATE "C" NOT NULL DEFAULT '' CHECK (path = '' OR path LIKE '/%'),
  by     text NOT NULL,
  at     timestamptz NOT NULL DEFAULT clock(),
  UNIQUE (scope, domain, path)
);
