-- Where LangGraph keeps how far a run is: its own tables, in a schema of its own, as version 9 of its own migrations.

-- an administrator may have made it for a user who may not
DO $$ BEGIN
  IF to_regnamespace('langgraph') IS NULL THEN CREATE SCHEMA langgraph; END IF;
END $$;

CREATE TABLE langgraph.checkpoint_migrations (v integer PRIMARY KEY);
INSERT INTO langgraph.checkpoint_migrations SELECT generate_series(0, 9);

CREATE TABLE langgraph.checkpoints (
  thread_id            text NOT NULL,              -- the number of the run
  checkpoint_ns        text NOT NULL DEFAULT '',
  checkpoint_id        text NOT NULL,
  parent_checkpoint_id text,
  type                 text,
  checkpoint           jsonb NOT NULL,
  metadata             jsonb NOT NULL DEFAULT '{}',
  PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
);
-- the runs that have more than their last state
CREATE INDEX checkpoints_with_past ON langgraph.checkpoints (thread_id) WHERE parent_checkpoint_id IS NOT NULL;

CREATE TABLE langgraph.checkpoint_blobs (
  thread_id     text NOT NULL,
  checkpoint_ns text NOT NULL DEFAULT '',
  channel       text NOT NULL,
  version       text NOT NULL,
  type          text NOT NULL,
  blob          bytea,
  PRIMARY KEY (thread_id, checkpoint_ns, channel, version)
);

CREATE TABLE langgraph.checkpoint_writes (
  thread_id     text NOT NULL,
  checkpoint_ns text NOT NULL DEFAULT '',
  checkpoint_id text NOT NULL,
  task_id       text NOT NULL,
  idx           integer NOT NULL,
  channel       text NOT NULL,
  type          text,
  blob          bytea NOT NULL,
  task_path     text NOT NULL DEFAULT '',
  PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
);

-- how often a model was asked
ALTER TABLE agent_step ADD COLUMN calls int NOT NULL DEFAULT 0;
ALTER TABLE agent_run ADD COLUMN calls bigint NOT NULL DEFAULT 0;
