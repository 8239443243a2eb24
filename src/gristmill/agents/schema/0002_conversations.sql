-- Conversations: what people asked, what was answered, and on which passages the answers stand.

CREATE TABLE conversation (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope      int NOT NULL REFERENCES scope,        -- whose knowledge it asks
  owner      text COLLATE "C" NOT NULL,            -- who asks: a key, or the operator; nobody else sees it
  title      text NOT NULL DEFAULT '',             -- the first question, shortened
  language   text COLLATE "C",                     -- of the last question
  summary    text NOT NULL DEFAULT '',             -- of its messages up to the next one, that one included
  summarised bigint NOT NULL DEFAULT 0,            -- the last message that the summary has
  created_at timestamptz NOT NULL DEFAULT clock(),
  changed_at timestamptz NOT NULL DEFAULT clock(),
  writer     uuid,                                 -- who is writing an answer; a process that died stays here until alive_at is old
  alive_at   timestamptz,
  stop_asked boolean NOT NULL DEFAULT false,       -- somebody wants the answer at hand to end
  UNIQUE (id, scope),
  CHECK ((writer IS NULL) = (alive_at IS NULL)),
  CHECK (writer IS NOT NULL OR NOT stop_asked)
);
CREATE INDEX conversation_by_owner ON conversation (owner, changed_at DESC);

-- A question waits until an answer has taken it into account. An answer keeps what was written of it, whatever becomes of it.
CREATE TABLE conversation_message (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  conversation bigint NOT NULL,
  scope        int NOT NULL,
  role         text COLLATE "C" NOT NULL CHECK (role IN ('user', 'assistant')),
  state        text COLLATE "C" NOT NULL,
  text         text NOT NULL DEFAULT '',
  answer       jsonb,                              -- kind, sentences, places of citations and passages, note
  at           timestamptz NOT NULL DEFAULT clock(),
  FOREIGN KEY (conversation, scope) REFERENCES conversation (id, scope) ON DELETE CASCADE,
  CHECK (CASE role WHEN 'user' THEN state IN ('waiting', 'answered')
                   ELSE state IN ('writing', 'done', 'stopped', 'failed') END)
);
CREATE INDEX conversation_message_by_conversation ON conversation_message (conversation, id);
CREATE UNIQUE INDEX conversation_message_writing ON conversation_message (conversation) WHERE state = 'writing';
