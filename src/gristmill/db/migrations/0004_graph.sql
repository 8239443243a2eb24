-- The graph: what each chunk names and says. A node is named by its mentions, an edge is nothing but its evidence:
-- neither can outlive the chunks it comes from, and no two writers ever meet in a row.

-- Other names under which a node is known.
CREATE TABLE alias (
  client text COLLATE "C" NOT NULL,
  alias  text COLLATE "C" NOT NULL,
  key    text COLLATE "C" NOT NULL,
  PRIMARY KEY (client, alias),
  CHECK (alias <> key)
);

-- Nodes that somebody stated, with what is known of them; those that are only mentioned need no row here.
CREATE TABLE entity (
  client     text COLLATE "C" NOT NULL,
  key        text COLLATE "C" NOT NULL,
  type       text COLLATE "C" NOT NULL,
  properties jsonb NOT NULL DEFAULT '{}',
  PRIMARY KEY (client, key)
);

CREATE TABLE mention (
  chunk      bigint NOT NULL REFERENCES chunk ON DELETE CASCADE,
  key        text COLLATE "C" NOT NULL,            -- namespace::name, normalised
  client     text COLLATE "C" NOT NULL,
  type       text COLLATE "C" NOT NULL,
  name       text NOT NULL,                        -- as it is written there
  count      int NOT NULL DEFAULT 1 CHECK (count > 0),
  properties jsonb NOT NULL DEFAULT '{}',
  PRIMARY KEY (chunk, key)
);
CREATE INDEX mention_by_key ON mention (client, key);

-- One piece of evidence: this chunk says that `source` stands in this relation to `target`.
CREATE TABLE relation (
  chunk      bigint NOT NULL,
  source     text COLLATE "C" NOT NULL,
  type       text COLLATE "C" NOT NULL,
  target     text COLLATE "C" NOT NULL,
  client     text COLLATE "C" NOT NULL,
  properties jsonb NOT NULL DEFAULT '{}',
  PRIMARY KEY (chunk, source, type, target),
  FOREIGN KEY (chunk, source) REFERENCES mention (chunk, key) ON DELETE CASCADE ON UPDATE CASCADE,
  FOREIGN KEY (chunk, target) REFERENCES mention (chunk, key) ON DELETE CASCADE ON UPDATE CASCADE
);
CREATE INDEX relation_by_source ON relation (client, source);
CREATE INDEX relation_by_target ON relation (client, target);

-- What was drawn from a chunk, and by what; the same key never has to be drawn again.
CREATE TABLE extraction (
  chunk bigint PRIMARY KEY REFERENCES chunk ON DELETE CASCADE,
  key   bytea NOT NULL,                            -- of text, context, code and model
  empty boolean NOT NULL
);
CREATE INDEX extraction_by_key ON extraction (key);
