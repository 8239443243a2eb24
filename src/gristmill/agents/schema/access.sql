-- Who sees which runs, questions, effects, policies, conversations and memories.

-- a run of nobody's client is the operator's: its request and what it read are no client's to see. A run of a client may have
-- read what lies in any of its projects: no project sees it
SELECT protect(one, seen => 'scope <> 1 AND scope = ANY ((SELECT own_scopes())::int[])',
                    own => 'scope <> 1 AND scope = ANY ((SELECT own_scopes())::int[])',
                    rights => 'SELECT, INSERT, UPDATE')
  FROM unnest(ARRAY['agent_run', 'agent_effect', 'agent_question']) one;
SELECT protect(one, seen => 'scope <> 1 AND scope = ANY ((SELECT own_scopes())::int[])', rights => 'SELECT')
  FROM unnest(ARRAY['agent_step', 'agent_context', 'agent_text', 'agent_delegation']) one;
-- the policy of everybody holds for every client
SELECT protect('agent_policy');
-- a conversation belongs to whoever asked; one about what is everybody's is the operator's, and no client's
SELECT protect(one, seen => 'scope <> 1 AND scope = ANY ((SELECT own_scopes())::int[])',
                    own => 'scope <> 1 AND scope = ANY ((SELECT own_scopes())::int[])')
  FROM unnest(ARRAY['conversation', 'conversation_message']) one;
-- what happened in runs of nobody's client is the operator's, as these runs are; so are procedures that were learned there
SELECT protect('agent_session', seen => 'scope <> 1 AND scope = ANY ((SELECT own_scopes())::int[])',
                                own => 'scope <> 1 AND scope = ANY ((SELECT own_scopes())::int[])',
                                rights => 'SELECT, DELETE');
SELECT protect('agent_procedure', seen => $$ (scope <> 1 OR source = 'user_defined') AND scope = ANY ((SELECT seen_scopes())::int[]) $$);
-- a fact is seen as its document is
SELECT protect('agent_fact', rights => 'SELECT');
