-- Nodes and edges with their evidence counted, for people who write SQL.

CREATE VIEW node WITH (security_invoker) AS
SELECT c.client, n.key COLLATE "C" AS key, n.type, n.name, n.mentions, n.chunks
  FROM (SELECT client, array_agg(id) AS scopes FROM scope GROUP BY client) c CROSS JOIN LATERAL nodes_in(c.scopes) n;

CREATE VIEW edge WITH (security_invoker) AS
SELECT s.client, r.source, r.type, r.target, count(*) AS evidence
  FROM relation r JOIN scope s ON s.id = r.scope
 GROUP BY s.client, r.source, r.type, r.target;
