-- Who refused an effect: a person who said no is not asked again, in whatever words it was said.

ALTER TABLE agent_effect ADD COLUMN refused_by text;
ALTER TABLE agent_effect ADD CONSTRAINT agent_effect_refused CHECK (refused_by IS NULL OR state = 'failed');
-- as the program wrote it down until now
UPDATE agent_effect SET refused_by = split_part(error, ' said no', 1)
 WHERE state = 'failed' AND attempt = 0 AND error ~ '^\S.{0,80} said no($|[.:, ])';
