-- Decisions about items, the conventions of people that they follow, and who the people of a client are.
-- needs: queue, documents, sources

-- What was decided about an item, and why. Every decision is kept: the last one of an item holds.
CREATE TABLE decision (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  item         bigint NOT NULL,
  scope        int NOT NULL,
  decided_at   timestamptz NOT NULL DEFAULT clock(),
  author       text COLLATE "C" NOT NULL CHECK (author IN ('rules', 'convention', 'llm')),
  route        text COLLATE "C" NOT NULL CHECK (route IN ('info_only', 'handled', 'now', 'later', 'consolidate', 'decompose')),
  standing     text COLLATE "C" NOT NULL CHECK (standing IN ('info_only', 'handled', 'now', 'later')),  -- by itself, without others
  urgency      text COLLATE "C" NOT NULL CHECK (urgency IN ('low', 'normal', 'high', 'critical')),
  deadline     timestamptz,
  scheduled_at timestamptz,
  target       bigint,                             -- of consolidate: the item that it joins
  assign       text NOT NULL DEFAULT '',           -- whom a convention names
  conventions  bigint[] NOT NULL DEFAULT '{}',     -- those that held
  rules        int NOT NULL,                       -- the version of the rules of the program
  characters   int NOT NULL,                       -- of the text
  digest       bytea NOT NULL,                     -- of the text: a replay says whether it reads the same words
  silent       boolean NOT NULL DEFAULT false,     -- nothing at all was found in a text where something should be
  inputs       jsonb NOT NULL,                     -- facts with their places, conventions with their versions, lead, LLM
  path         jsonb NOT NULL,                     -- the rules that spoke, in order, each with its words
  FOREIGN KEY (item, scope) REFERENCES item (id, scope) ON DELETE CASCADE
);
CREATE INDEX decision_by_item ON decision (item, id);
CREATE INDEX decision_by_time ON decision (decided_at);

-- Rules that people state, as they stand now.
CREATE TABLE convention (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope      int NOT NULL REFERENCES scope,
  text       text NOT NULL,
  version    int NOT NULL DEFAULT 1,
  enabled    boolean NOT NULL DEFAULT true,
  note       text NOT NULL DEFAULT '',             -- why it was stated
  origin     bigint,                               -- the item whose decision it was made of
  created_at timestamptz NOT NULL DEFAULT clock(),
  created_by text NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT clock(),
  removed_at timestamptz,                          -- its row stays: decisions name it
  UNIQUE (scope, id)
);
CREATE INDEX convention_in_force ON convention (scope) WHERE removed_at IS NULL;

-- What a convention said before it was changed, and who changed it.
CREATE TABLE convention_version (
  convention bigint NOT NULL,
  version    int NOT NULL,
  scope      int NOT NULL,
  text       text NOT NULL,
  enabled    boolean NOT NULL,
  at         timestamptz NOT NULL DEFAULT clock(),
  by         text NOT NULL,
  PRIMARY KEY (convention, version),
  FOREIGN KEY (convention, scope) REFERENCES convention (id, scope) ON DELETE CASCADE
);

-- How often each convention held, and when last: the sum of all rows. Each batch of decisions adds a row, so that no two writers
-- meet in one; many rows become one now and then.
CREATE TABLE convention_tally (
  convention bigint NOT NULL,
  scope      int NOT NULL,
  n          int NOT NULL,
  last_at    timestamptz NOT NULL,
  FOREIGN KEY (convention, scope) REFERENCES convention (id, scope) ON DELETE CASCADE
);
CREATE INDEX convention_tally_by_convention ON convention_tally (convention);

-- Who the people of a scope are, and how long before a deadline they want to begin.
CREATE TABLE client_profile (
  scope      int PRIMARY KEY REFERENCES scope,
  names      text[] NOT NULL DEFAULT '{}',
  addresses  text[] NOT NULL DEFAULT '{}',
  lead_days  int CHECK (lead_days BETWEEN 0 AND 365),  -- null: as the level above, or the setting, says
  changed_at timestamptz NOT NULL DEFAULT clock(),
  changed_by text NOT NULL
);
