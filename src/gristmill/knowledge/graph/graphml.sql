-- The whole graph, which is read a portion at a time.

-- name: nodes
SELECT key, type, name, mentions, chunks, stated FROM visible_nodes(%(client)s, %(scopes)s::int[], NULL) ORDER BY key;

-- name: edges
SELECT source, type, target, evidence, properties FROM visible_edges(%(client)s, %(scopes)s::int[]) ORDER BY source, type, target;
