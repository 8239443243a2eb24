-- Attempts that an agent made before a person let it try again: their calls are no rounds of the attempt after them.

ALTER TABLE agent_delegation ADD COLUMN earlier int NOT NULL DEFAULT 0;
