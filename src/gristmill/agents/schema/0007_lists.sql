-- Lists of runs and questions read as much as they show, whatever else is stored.

CREATE INDEX agent_run_by_state ON agent_run (state, id);
CREATE INDEX agent_run_by_scope ON agent_run (scope, state, id);
DROP INDEX agent_run_of_scope;

CREATE INDEX agent_question_by_scope ON agent_question (scope, id);
CREATE INDEX agent_question_open_by_scope ON agent_question (scope, id) WHERE answered_at IS NULL AND withdrawn_at IS NULL;
CREATE INDEX agent_question_open_by_age ON agent_question (id) WHERE answered_at IS NULL AND withdrawn_at IS NULL;
