-- Delegations: what a run gave to which agent, what came of it, and what it cost.

CREATE TABLE agent_delegation (
  run         bigint NOT NULL REFERENCES agent_run ON DELETE CASCADE,
  scope       int NOT NULL,
  delegation  text COLLATE "C" NOT NULL,           -- d2 of the plan; d2.1 is a part of it that its agent gave away
  parent      text COLLATE "C",
  depth       int NOT NULL CHECK (depth BETWEEN 1 AND 4),
  agent       text COLLATE "C" NOT NULL,           -- that has it now
  task        text NOT NULL,
  state       text COLLATE "C" NOT NULL DEFAULT 'running'
              CHECK (state IN ('pending', 'running', 'completed', 'failed', 'interrupted')),
  attempts    int NOT NULL DEFAULT 0,              -- of this agent, that were judged
  asked       int NOT NULL DEFAULT 0,              -- questions to a person about it that were answered
  question    text,                                -- that waits for a person now
  tried       text[] NOT NULL DEFAULT '{}',        -- agents that did not manage it
  complaints  text[] NOT NULL DEFAULT '{}',        -- about the last attempt
  output      jsonb,                               -- of the last attempt, complete
  summary     text NOT NULL DEFAULT '',            -- that its parent sees
  tokens      bigint NOT NULL DEFAULT 0,
  calls       int NOT NULL DEFAULT 0,              -- of the model
  parts       int NOT NULL DEFAULT 0,
  success     boolean NOT NULL DEFAULT false,
  started_at  timestamptz NOT NULL,
  finished_at timestamptz,
  PRIMARY KEY (run, delegation),
  CHECK ((finished_at IS NOT NULL) = (state IN ('completed', 'failed'))),
  CHECK (NOT success OR state = 'completed'),
  CHECK (state NOT IN ('completed', 'failed') OR output IS NOT NULL)
) WITH (fillfactor = 70);
CREATE INDEX agent_delegation_by_age ON agent_delegation (started_at);
