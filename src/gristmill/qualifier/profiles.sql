-- Who the people of a scope are.

-- name: load_profiles
-- all levels of these clients; which of them an item sees is decided for each item
SELECT s.client, s.project, p.names, p.addresses, p.lead_days, p.changed_at, p.changed_by
  FROM client_profile p JOIN scope s ON s.id = p.scope
 WHERE s.client = '' OR s.client = ANY (%(clients)s::text[])
 ORDER BY s.client, s.project;

-- name: list_profiles
SELECT s.client, s.project, p.names, p.addresses, p.lead_days, p.changed_at, p.changed_by
  FROM client_profile p JOIN scope s ON s.id = p.scope
 ORDER BY s.client, s.project LIMIT %(limit)s;

-- name: set_profile
INSERT INTO client_profile (scope, names, addresses, lead_days, changed_by)
VALUES (%(scope)s, %(names)s::text[], %(addresses)s::text[], %(lead_days)s, %(by)s)
ON CONFLICT (scope) DO UPDATE
   SET names = excluded.names, addresses = excluded.addresses, lead_days = excluded.lead_days, changed_by = excluded.changed_by,
       changed_at = clock();

-- name: remove_profile
DELETE FROM client_profile WHERE scope = %(scope)s RETURNING scope;

-- name: addresses_of
-- of each of these scopes: its own, its client's, everybody's
SELECT w.id AS scope, coalesce(array_agg(DISTINCT a.address) FILTER (WHERE a.address IS NOT NULL), '{}') AS addresses
  FROM scope w
  LEFT JOIN scope s ON s.client = '' OR s.client = w.client AND s.project IN ('', w.project)
  LEFT JOIN client_profile p ON p.scope = s.id
  LEFT JOIN LATERAL unnest(p.addresses) a (address) ON true
 WHERE w.id = ANY (%(scopes)s::int[])
 GROUP BY w.id;
