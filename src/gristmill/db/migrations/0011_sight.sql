-- Whose knowledge can be seen from where, in one place for all who ask.

-- GLOBAL by everybody; by a client, all of its own; by a project, itself and its client's level.
CREATE FUNCTION visible_scopes(client text, project text) RETURNS int[] LANGUAGE sql STABLE AS $$
  SELECT coalesce(array_agg(s.id ORDER BY s.id), '{}') FROM scope s
   WHERE s.client = ''
      OR s.client = visible_scopes.client
         AND (visible_scopes.project = '' OR s.project IN ('', visible_scopes.project))
$$;
