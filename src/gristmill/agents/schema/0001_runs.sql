-- Runs of agents: what was asked, what was done for it, what a person is asked, and what was changed outside.
-- needs: queue

-- One request, and how far it is.
CREATE TABLE agent_run (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope       int NOT NULL DEFAULT 1 REFERENCES scope,
  request     text NOT NULL,
  asked_by    text,                                -- the person whose words the request is; none: it is the text of an item
  item        bigint,                              -- the item that it is done for
  item_type   text COLLATE "C",
  repository  text COLLATE "C",                    -- the git source that its workspace is a clone of
  foreground  boolean NOT NULL DEFAULT true,
  state       text COLLATE "C" NOT NULL DEFAULT 'queued'
              CHECK (state IN ('queued', 'running', 'waiting_for_user', 'completed', 'failed', 'stopped')),
  fence       int NOT NULL DEFAULT 0,              -- how often a worker took it over: the number of the one that holds it
  task        bigint,                              -- the task that carries it
  host        text,                                -- the machine on which its workspace lies
  report      text,
  error       text,
  stopped_by  text,
  tokens_in   bigint NOT NULL DEFAULT 0,
  tokens_out  bigint NOT NULL DEFAULT 0,
  created_at  timestamptz NOT NULL,
  started_at  timestamptz,
  finished_at timestamptz,
  CHECK ((finished_at IS NOT NULL) = (state IN ('completed', 'failed', 'stopped'))),
  CHECK ((state = 'completed') = (report IS NOT NULL)),
  CHECK ((state = 'failed') = (error IS NOT NULL)),
  CHECK ((state = 'stopped') = (stopped_by IS NOT NULL)),
  CHECK (asked_by IS NOT NULL OR item_type IS NOT NULL),
  CHECK (state <> 'running' OR fence > 0)
) WITH (fillfactor = 70);
CREATE INDEX agent_run_open ON agent_run (id) WHERE finished_at IS NULL;
CREATE INDEX agent_run_of_item ON agent_run (item) WHERE item IS NOT NULL;
CREATE INDEX agent_run_of_scope ON agent_run (scope, id);

-- A step of a run: one visit of a node.
CREATE TABLE agent_step (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run         bigint NOT NULL REFERENCES agent_run ON DELETE CASCADE,
  scope       int NOT NULL,
  parent      bigint REFERENCES agent_step ON DELETE CASCADE,
  node        text COLLATE "C" NOT NULL,
  title       text NOT NULL DEFAULT '',
  input       jsonb,
  output      jsonb,
  error       text,
  model       text,
  tokens_in   int NOT NULL DEFAULT 0,
  tokens_out  int NOT NULL DEFAULT 0,
  started_at  timestamptz NOT NULL,
  finished_at timestamptz,
  CHECK (finished_at IS NOT NULL OR (output IS NULL AND error IS NULL))
) WITH (fillfactor = 70);
CREATE INDEX agent_step_of_run ON agent_step (run, id);
CREATE INDEX agent_step_of_parent ON agent_step (parent) WHERE parent IS NOT NULL;

-- What a run knows at each level: of a step in full, of a goal and an epic what is needed above.
CREATE TABLE agent_context (
  run        bigint NOT NULL REFERENCES agent_run ON DELETE CASCADE,
  scope      int NOT NULL,
  level      text COLLATE "C" NOT NULL CHECK (level IN ('step', 'goal', 'epic')),
  place      text COLLATE "C" NOT NULL,            -- where in the plan: 2 of a goal, 2.1 of a step
  summary    text NOT NULL,
  detail     text NOT NULL DEFAULT '',
  updated_at timestamptz NOT NULL,
  PRIMARY KEY (run, level, place)
);

-- What a run has read that no person said to it: mails, pages, results of tools.
CREATE TABLE agent_text (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run     bigint NOT NULL REFERENCES agent_run ON DELETE CASCADE,
  scope   int NOT NULL,
  source  text NOT NULL,
  text    text NOT NULL,
  hash    bytea NOT NULL,
  read_at timestamptz NOT NULL,
  UNIQUE (run, hash, source)
);

-- Something that a run wants to change, from before it acts until its end is known.
CREATE TABLE agent_effect (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run         bigint NOT NULL REFERENCES agent_run ON DELETE CASCADE,
  scope       int NOT NULL,
  key         text COLLATE "C" NOT NULL,           -- the place in the plan, and the number of the call there
  tool        text COLLATE "C" NOT NULL,
  arguments   jsonb NOT NULL,
  hash        bytea NOT NULL,                      -- of tool and arguments: another call under this key is refused
  prepared    jsonb NOT NULL DEFAULT '{}',         -- what was found out before, and is part of what is approved
  summary     text NOT NULL,
  changes     text COLLATE "C" NOT NULL CHECK (changes IN ('nothing', 'workspace', 'outside')),
  repeatable  boolean NOT NULL,
  files       text[] NOT NULL DEFAULT '{}',        -- of the workspace that it changes
  origins     jsonb NOT NULL DEFAULT '[]',         -- who said the values that choose its target
  reasons     text[] NOT NULL DEFAULT '{}',        -- why a person is asked, or why it is refused
  state       text COLLATE "C" NOT NULL DEFAULT 'intended'
              CHECK (state IN ('intended', 'approved', 'executing', 'done', 'failed', 'unknown')),
  attempt     int NOT NULL DEFAULT 0,              -- how often it was begun: fences who may settle it
  approved_by text,                                -- a person, or policy
  result      jsonb,
  error       text,
  intended_at timestamptz NOT NULL,
  approved_at timestamptz,
  started_at  timestamptz,
  settled_at  timestamptz,
  UNIQUE (run, key),
  CHECK ((approved_at IS NULL) = (approved_by IS NULL)),
  CHECK (state NOT IN ('approved', 'executing', 'done', 'unknown') OR approved_at IS NOT NULL),
  CHECK (state NOT IN ('executing', 'done', 'unknown') OR attempt > 0),
  CHECK ((state = 'done') = (result IS NOT NULL)),
  CHECK (state <> 'failed' OR error IS NOT NULL),
  CHECK ((state IN ('done', 'failed')) = (settled_at IS NOT NULL))
) WITH (fillfactor = 70);
CREATE INDEX agent_effect_executing ON agent_effect (started_at) WHERE state = 'executing';

-- Something that only a person can say. Each has a key of its own: asked again, it is the same question.
CREATE TABLE agent_question (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run          bigint NOT NULL REFERENCES agent_run ON DELETE CASCADE,
  scope        int NOT NULL,
  key          text COLLATE "C" NOT NULL,
  kind         text COLLATE "C" NOT NULL
               CHECK (kind IN ('clarify', 'commit', 'push', 'cloud_model', 'epic_plan', 'generative_design',
                               'approve_effect', 'unknown_effect')),
  sentence     text NOT NULL,
  details      jsonb NOT NULL DEFAULT '{}',
  choices      text[] NOT NULL DEFAULT '{}',       -- empty: the answer is free text
  effect       bigint REFERENCES agent_effect ON DELETE CASCADE,
  asked_at     timestamptz NOT NULL,
  answered_at  timestamptz,
  answered_by  text,
  choice       text,
  answer       text NOT NULL DEFAULT '',
  withdrawn_at timestamptz,                        -- nobody needs to know it any more
  UNIQUE (run, key),
  CHECK ((answered_at IS NULL) = (answered_by IS NULL)),
  CHECK (choice IS NULL OR choice = ANY (choices)),
  CHECK (answered_at IS NULL OR withdrawn_at IS NULL),
  CHECK ((kind IN ('approve_effect', 'unknown_effect')) = (effect IS NOT NULL))
);
CREATE INDEX agent_question_open ON agent_question (run) WHERE answered_at IS NULL AND withdrawn_at IS NULL;
CREATE INDEX agent_question_of_effect ON agent_question (effect) WHERE effect IS NOT NULL;

-- What agents may do in a project without asking, and what they may never do.
CREATE TABLE agent_policy (
  scope           int PRIMARY KEY REFERENCES scope,
  branches        text[] NOT NULL,                 -- patterns of branches that may be written
  forbidden_files text[] NOT NULL,
  max_files       int NOT NULL CHECK (max_files BETWEEN 0 AND 100000),
  auto_push       boolean NOT NULL,
  recipients      text[] NOT NULL,
  domains         text[] NOT NULL,
  commands        text[] NOT NULL,
  tools           text[] NOT NULL,
  updated_at      timestamptz NOT NULL,
  updated_by      text NOT NULL
);
