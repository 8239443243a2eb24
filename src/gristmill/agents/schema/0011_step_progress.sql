-- How far a step is: who goes on after a kill knows what was read, and how many rounds are left.

ALTER TABLE agent_step ADD COLUMN progress jsonb;
