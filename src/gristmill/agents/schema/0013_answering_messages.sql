-- Which message of its item answered a question: what answered something is no request of its own.

ALTER TABLE agent_question ADD COLUMN message bigint;
