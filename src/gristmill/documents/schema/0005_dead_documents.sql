-- Documents with dead letters, the newest first, of all and of one scope.

CREATE INDEX task_dead_of_document ON task ((substr(owner, 10)::bigint))
 WHERE died_at IS NOT NULL AND owner ~ '^document:[0-9]{1,18}$';
CREATE INDEX task_dead_of_document_by_scope ON task (scope, (substr(owner, 10)::bigint))
 WHERE died_at IS NOT NULL AND owner ~ '^document:[0-9]{1,18}$';
