-- A commit and a push are questions of their own name, also where they are effects that need approval.

ALTER TABLE agent_question DROP CONSTRAINT agent_question_check3;
ALTER TABLE agent_question ADD CONSTRAINT agent_question_of_an_effect
  CHECK (CASE WHEN kind IN ('approve_effect', 'unknown_effect') THEN effect IS NOT NULL
              ELSE effect IS NULL OR kind IN ('commit', 'push') END);
