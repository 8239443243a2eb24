-- Merges of nodes that people may undo: how mentions, relations and statements were before.

CREATE TABLE node_merge (
  id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope     int NOT NULL REFERENCES scope,         -- of the client as a whole
  alias     text COLLATE "C" NOT NULL,             -- the node that went into the other …
  key       text COLLATE "C" NOT NULL,             -- … which is this
  repointed text[] NOT NULL,                       -- the aliases that the first node had
  merged_at timestamptz NOT NULL DEFAULT clock()
);
CREATE INDEX node_merge_by_scope ON node_merge (scope, id);

-- The rows of both nodes in the chunks that named the first one. They go with their chunk.
CREATE TABLE merged_mention (
  merge      bigint NOT NULL REFERENCES node_merge ON DELETE CASCADE,
  chunk      bigint NOT NULL,
  key        text COLLATE "C" NOT NULL,
  scope      int NOT NULL,
  type       text COLLATE "C" NOT NULL,
  name       text NOT NULL,
  count      int NOT NULL,
  stated     boolean NOT NULL,
  properties jsonb NOT NULL,
  PRIMARY KEY (merge, chunk, key),
  FOREIGN KEY (chunk, scope) REFERENCES chunk (id, scope) ON DELETE CASCADE
);
CREATE INDEX merged_mention_by_chunk ON merged_mention (chunk);
CREATE TABLE merged_relation (
  merge      bigint NOT NULL REFERENCES node_merge ON DELETE CASCADE,
  chunk      bigint NOT NULL,
  source     text COLLATE "C" NOT NULL,
  type       text COLLATE "C" NOT NULL,
  target     text COLLATE "C" NOT NULL,
  scope      int NOT NULL,
  extracted  boolean NOT NULL,
  stated     boolean NOT NULL,
  properties jsonb NOT NULL,
  PRIMARY KEY (merge, chunk, source, type, target),
  FOREIGN KEY (chunk, scope) REFERENCES chunk (id, scope) ON DELETE CASCADE
);
CREATE INDEX merged_relation_by_chunk ON merged_relation (chunk);
CREATE TABLE merged_entity (
  merge      bigint NOT NULL REFERENCES node_merge ON DELETE CASCADE,
  scope      int NOT NULL REFERENCES scope,
  key        text COLLATE "C" NOT NULL,
  type       text COLLATE "C" NOT NULL,
  properties jsonb NOT NULL,
  linked     boolean NOT NULL,
  PRIMARY KEY (merge, key, scope)
);
