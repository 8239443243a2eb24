-- Views: a filter and an order of a list under a name, for everybody with a key of the same scope.

CREATE TABLE saved_view (
  id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope int NOT NULL REFERENCES scope,
  page  text COLLATE "C" NOT NULL,                 -- the list that it is a view of
  name  text NOT NULL CHECK (length(name) BETWEEN 1 AND 60),
  query text NOT NULL,                             -- the part of the address behind the question mark
  UNIQUE (scope, page, name)
);
