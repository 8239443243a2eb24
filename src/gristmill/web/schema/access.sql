-- Who sees what was changed: a client the changes that its own keys made; keys and sessions are the operator's.

SELECT protect('audit', seen => 'scope = ANY ((SELECT own_scopes())::int[])', rights => 'SELECT, INSERT');
-- a view may name clients in its filter: those of the operator are nobody else's
SELECT protect('saved_view', seen => 'scope = ANY ((SELECT own_scopes())::int[])');
