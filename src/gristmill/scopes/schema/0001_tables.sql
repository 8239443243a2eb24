-- Scopes: whose data a row is.
-- needs: db

-- Whose knowledge it is. The empty client is GLOBAL; the empty project is the client as a whole.
CREATE TABLE scope (
  id      int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  client  text COLLATE "C" NOT NULL DEFAULT '',
  project text COLLATE "C" NOT NULL DEFAULT '',
  UNIQUE (client, project),
  CHECK (project = '' OR client <> '')
);

-- GLOBAL has the id 1 everywhere: rows without a scope of their own can name it without a look at this table.
INSERT INTO scope (client, project) VALUES ('', '');
