-- Who sees which scopes: no client learns the name of another.

SELECT protect('scope',
  seen => $$ client = '' OR client = seen_from_client() AND (seen_from_project() = '' OR project IN ('', seen_from_project())) $$,
  own => $$ client = seen_from_client() AND (seen_from_project() = '' OR project = seen_from_project()) $$,
  rights => 'SELECT, INSERT');
SELECT guard_definers();
