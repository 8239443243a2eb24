-- The graph: what each chunk names and says. A node is named by its mentions, an edge is nothing but its evidence:
-- neither can outlive the chunks it comes from, and no two writers ever meet in a row.

-- Other names under which a node is known to a client.
CREATE TABLE alias (
  client text COLLATE "C" NOT NULL,
  alias  text COLLATE "C" NOT NULL,
  key    text COLLATE "C" NOT NULL,                -- never itself an alias
  PRIMARY KEY (client, alias),
  CHECK (alias <> key)
);
CREATE INDEX alias_by_key ON alias (client, key);

-- Nodes that somebody stated, with what is known of them; those that are only mentioned need no row here.
CREATE TABLE entity (
  scope      int NOT NULL REFERENCES scope,
  key        text COLLATE "C" NOT NULL,
  type       text COLLATE "C" NOT NULL,
  properties jsonb NOT NULL DEFAULT '{}',
  PRIMARY KEY (key, scope)
);
CREATE INDEX entity_by_name ON entity (substr(key, strpos(key, '::') + 2), scope);

CREATE TABLE mention (
  chunk      bigint NOT NULL REFERENCES chunk ON DELETE CASCADE,
  key        text COLLATE "C" NOT NULL,            -- namespace::name, normalised
  scope      int NOT NULL,                         -- of the chunk
  type       text COLLATE "C" NOT NULL,
  name       text NOT NULL,                        -- as it is written there
  count      int NOT NULL DEFAULT 1,               -- how often it was found there
  stated     boolean NOT NULL DEFAULT false,       -- somebody linked it: drawing the chunk anew does not undo that
  properties jsonb NOT NULL DEFAULT '{}',
  PRIMARY KEY (chunk, key),
  CHECK (count > 0 OR (stated AND count = 0))
);
CREATE INDEX mention_by_key ON mention (key, scope);
CREATE INDEX mention_by_name ON mention (substr(key, strpos(key, '::') + 2), scope);

-- One piece of evidence: this chunk says that `source` stands in this relation to `target`.
CREATE TABLE relation (
  chunk      bigint NOT NULL,
  source     text COLLATE "C" NOT NULL,
  type       text COLLATE "C" NOT NULL,
  target     text COLLATE "C" NOT NULL,
  scope      int NOT NULL,
  drawn      boolean NOT NULL,                     -- from the text …
  stated     boolean NOT NULL DEFAULT false,       -- … or by somebody who named this chunk as evidence, or both
  properties jsonb NOT NULL DEFAULT '{}',
  PRIMARY KEY (chunk, source, type, target),
  FOREIGN KEY (chunk, source) REFERENCES mention (chunk, key) ON DELETE CASCADE,
  FOREIGN KEY (chunk, target) REFERENCES mention (chunk, key) ON DELETE CASCADE,
  CHECK (drawn OR stated),
  CHECK (source <> target)
);
CREATE INDEX relation_by_source ON relation (source, scope);
CREATE INDEX relation_by_target ON relation (target, scope);
CREATE INDEX relation_chunk_target ON relation (chunk, target);  -- for the cascade

-- What was drawn from a chunk, and by what; the same key never has to be drawn again.
CREATE TABLE extraction (
  chunk   bigint PRIMARY KEY REFERENCES chunk ON DELETE CASCADE,
  key     bytea NOT NULL,                          -- of client, text, context, code and model
  empty   boolean NOT NULL,                        -- nothing at all was found
  silent  boolean,                                 -- the LLM that was asked found nothing; null: none was asked
  dropped int NOT NULL DEFAULT 0,                  -- what it told that does not stand in the text
  at      timestamptz NOT NULL DEFAULT clock()
);
CREATE INDEX extraction_by_key ON extraction (key);
CREATE INDEX extraction_by_llm ON extraction (at) WHERE silent IS NOT NULL;

-- Nodes and edges with their evidence counted, for whoever writes SQL.
CREATE VIEW node AS
SELECT s.client, m.key, coalesce(max(m.type) FILTER (WHERE m.chunk IS NULL), max(m.type)) AS type, min(m.name) AS name,
       sum(m.count)::bigint AS mentions, count(DISTINCT m.chunk) AS chunks
  FROM (SELECT scope, key, type, name, count, chunk FROM mention
        UNION ALL
        SELECT scope, key, type, NULL, 0, NULL FROM entity) AS m
  JOIN scope s ON s.id = m.scope
 GROUP BY s.client, m.key;

CREATE VIEW edge AS
SELECT s.client, r.source, r.type, r.target, count(*) AS evidence
  FROM relation r JOIN scope s ON s.id = r.scope
 GROUP BY s.client, r.source, r.type, r.target;

-- Waits for whoever writes, and lets nobody begin; every writer of relations writes mentions in the same statement.
CREATE FUNCTION hold_mentions() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  LOCK TABLE mention IN SHARE ROW EXCLUSIVE MODE;
END $$;
