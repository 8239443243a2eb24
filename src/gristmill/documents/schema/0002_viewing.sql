-- What people look at: the places of words on a picture, lists of documents, the texts of versions that were replaced.

-- Of a page that was read from its picture: where its words stand, 14 bytes each. Null where the page carried its text, and
-- where an older version of the program read it.
ALTER TABLE page ADD words bytea;
ALTER TABLE page ALTER words SET STORAGE EXTERNAL;

-- The newest of a type, of what is not complete, and of one container: each list begins where it is asked to.
CREATE INDEX document_by_type_newest ON document (scope, type, id);
CREATE INDEX document_incomplete_newest ON document (scope, id) WHERE completed_at IS NULL;
CREATE INDEX document_parts ON document (container, id) WHERE container IS NOT NULL;
DROP INDEX document_by_container;

-- The text of a version that a newer one took the place of, so that people see what has changed. It goes with the last
-- document of its source.
CREATE TABLE former_version (
  scope       int NOT NULL REFERENCES scope,
  urn         text NOT NULL,
  version     int NOT NULL CHECK (version > 0),
  name        text NOT NULL,
  title       text,
  type        text COLLATE "C",
  added_at    timestamptz NOT NULL,
  replaced_at timestamptz NOT NULL DEFAULT clock(),
  pages       int NOT NULL,
  text        text NOT NULL,                       -- the pages, with a form feed between two
  PRIMARY KEY (scope, urn, version)
);
