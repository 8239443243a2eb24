-- What somebody asked in a conversation of their own is remembered for them alone.
ALTER TABLE agent_session ADD COLUMN owner text;
