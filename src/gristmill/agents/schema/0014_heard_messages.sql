-- The last message of its item that the request of a run knows: one that came a moment later is for the next run.

ALTER TABLE agent_run ADD COLUMN heard bigint;
