-- Who sees which knowledge.

SELECT protect('chunk'), protect('embedding'), protect('fresh_terms'), protect('segment'), protect('posting'),
       protect('gone_chunk'), protect('entity'), protect('mention'), protect('relation'), protect('extraction');
-- an alias belongs to a whole client
SELECT protect('alias', seen => $$ client IN ('', seen_from_client()) $$,
                        own => $$ client = seen_from_client() AND seen_from_project() = '' $$);
-- models are the machines', and no client's
SELECT share('embedding_model', 'SELECT');
