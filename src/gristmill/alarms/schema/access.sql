-- Who sees which alarms.

-- GLOBAL alarms are about the machines and all clients: they are the operator's, and no client's
SELECT protect('alarm', seen => 'scope <> 1 AND scope = ANY ((SELECT seen_scopes())::int[])',
                        own => 'scope <> 1 AND scope = ANY ((SELECT own_scopes())::int[])',
                        rights => 'SELECT, UPDATE (acknowledged_at, acknowledged_by, note)'),
       protect('alarm_delivery', seen => 'scope <> 1 AND scope = ANY ((SELECT seen_scopes())::int[])', rights => 'SELECT');
SELECT share('alarm_round', 'SELECT');
