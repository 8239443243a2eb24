-- Who sees which knowledge.

SELECT protect('chunk'), protect('embedding'), protect('fresh_terms'), protect('segment'), protect('posting'),
       protect('gone_chunk'), protect('entity'), protect('mention'), protect('extraction'), protect('node_merge'),
       protect('merged_mention'), protect('merged_relation'), protect('merged_entity');
-- A relation has the scope of its chunk, as mentions have. A client alone is asked for that: another key would slow down every
-- writer of the graph.
SELECT protect('relation', own => 'scope = ANY ((SELECT own_scopes())::int[])'
                                  ' AND EXISTS (SELECT FROM chunk c WHERE c.id = relation.chunk AND c.scope = relation.scope)');
-- an alias belongs to a whole client
SELECT protect('alias', seen => $$ client IN ('', seen_from_client()) $$,
                        own => $$ client = seen_from_client() AND seen_from_project() = '' $$);
-- models are the machines', and no client's
SELECT share('embedding_model', 'SELECT');
