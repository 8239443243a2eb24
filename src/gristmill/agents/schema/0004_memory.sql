-- What agents remember: what happened lately in a project, how things are done there, and facts with their evidence.
-- needs: queue, documents

-- What happened lately: at most fifty entries in each scope, for a week.
CREATE TABLE agent_session (
  id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope     int NOT NULL REFERENCES scope,
  run       bigint REFERENCES agent_run ON DELETE CASCADE,
  source    text COLLATE "C" NOT NULL CHECK (source IN ('chat', 'background', 'orchestrator_decision')),
  summary   text NOT NULL CHECK (length(summary) BETWEEN 1 AND 200),
  details   jsonb,
  timestamp timestamptz NOT NULL,
  UNIQUE (run, source, summary)                    -- a run that is carried on after a kill remembers nothing twice
);
CREATE INDEX agent_session_of_scope ON agent_session (scope, id);

-- How something is done: by which agents, in which order. A person stated it, or a run succeeded with it.
CREATE TABLE agent_procedure (
  id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope           int NOT NULL REFERENCES scope,
  trigger_pattern text NOT NULL CHECK (length(trigger_pattern) BETWEEN 1 AND 500),
  steps           jsonb NOT NULL,
  hash            bytea NOT NULL,                  -- of the pattern and the steps: the same one is kept once
  source          text COLLATE "C" NOT NULL CHECK (source IN ('learned', 'user_defined')),
  stated_by       text,                            -- the person; none: it was learned
  successes       int NOT NULL DEFAULT 0 CHECK (successes >= 0),
  failures        int NOT NULL DEFAULT 0 CHECK (failures >= 0),
  last_run        bigint,                          -- the run that used it last, which counts once
  last_used       timestamptz,                     -- moved by a use alone: nothing that looks at it, or forgets, moves it
  model           text COLLATE "C",                -- that made the vector of the pattern
  vector          vector,
  created_at      timestamptz NOT NULL,
  UNIQUE (scope, hash),
  CHECK ((source = 'user_defined') = (stated_by IS NOT NULL)),
  CHECK ((model IS NULL) = (vector IS NULL)),
  CHECK ((last_used IS NULL) = (successes + failures = 0))
) WITH (fillfactor = 70);

-- A fact that an agent wrote down, and the words that show it. It is found as a document of its own, while they stand there.
CREATE TABLE agent_fact (
  document       bigint PRIMARY KEY,
  scope          int NOT NULL,
  run            bigint,
  evidence_scope int NOT NULL,
  evidence_urn   text COLLATE "C" NOT NULL,
  quote          text NOT NULL CHECK (length(quote) BETWEEN 1 AND 2000),
  seen_in        bigint NOT NULL,                  -- the version of the evidence in which the words were seen last
  created_at     timestamptz NOT NULL,
  FOREIGN KEY (document, scope) REFERENCES document (id, scope) ON DELETE CASCADE
);
