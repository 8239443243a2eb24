-- Policies: what agents may do in a project.

-- name: load_policy
SELECT branches, forbidden_files, max_files, auto_push, recipients, domains, commands, tools
  FROM agent_policy p JOIN scope s ON s.id = p.scope WHERE s.client = %(client)s AND s.project = %(project)s;

-- name: load_policies
-- everybody's, the client's, the project's own
SELECT branches, forbidden_files, max_files, auto_push, recipients, domains, commands, tools
  FROM agent_policy p JOIN scope s ON s.id = p.scope
 WHERE s.client IN ('', %(client)s) AND s.project IN ('', %(project)s) AND (s.client <> '' OR s.project = '')
 ORDER BY s.client <> '', s.project <> '';

-- name: set_policy
INSERT INTO agent_policy (scope, branches, forbidden_files, max_files, auto_push, recipients, domains, commands, tools,
                          updated_at, updated_by)
VALUES (%(scope)s, %(branches)s, %(forbidden_files)s, %(max_files)s, %(auto_push)s, %(recipients)s, %(domains)s,
        %(commands)s, %(tools)s, clock(), %(by)s)
ON CONFLICT (scope) DO UPDATE
SET branches = excluded.branches, forbidden_files = excluded.forbidden_files, max_files = excluded.max_files,
    auto_push = excluded.auto_push, recipients = excluded.recipients, domains = excluded.domains,
    commands = excluded.commands, tools = excluded.tools, updated_at = excluded.updated_at,
    updated_by = excluded.updated_by;

-- name: drop_policy
DELETE FROM agent_policy WHERE scope = %(scope)s RETURNING scope;
