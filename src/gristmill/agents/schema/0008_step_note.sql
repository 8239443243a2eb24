-- What a step waits for while it goes on: a person who watches is told.

ALTER TABLE agent_step ADD COLUMN note text CHECK (note IS NULL OR finished_at IS NULL);
