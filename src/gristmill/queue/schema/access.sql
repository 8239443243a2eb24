-- Who sees which tasks.

SELECT protect('task'), protect('task_group'), protect('task_progress'), protect('task_failure'), protect('serial_head'),
       protect('schedule'), protect('queue_tally', rights => 'SELECT, INSERT, UPDATE'),
       protect('queue_depth', rights => 'SELECT, INSERT'), protect('dead_tally', rights => 'SELECT, INSERT'),
       protect('queue_sample', rights => 'SELECT'), protect('queue_sampled', rights => 'SELECT'),
       protect('schedule_run', rights => 'SELECT, INSERT');
-- a bulk action of the operator names tasks of all clients, so nobody sees the actions of GLOBAL from elsewhere
SELECT protect('bulk_action', seen => 'scope = ANY ((SELECT own_scopes())::int[])', rights => 'SELECT, INSERT, UPDATE'),
       protect('bulk_change', seen => 'scope = ANY ((SELECT own_scopes())::int[])');
-- a ticket has no scope of its own: it is a place in line, and seen with its task
SELECT protect('ticket', seen => 'EXISTS (SELECT FROM task t WHERE t.id = ticket.id)',
                         own => 'EXISTS (SELECT FROM task t WHERE t.id = ticket.id AND t.scope = ANY ((SELECT own_scopes())::int[]))');
-- A task and its ticket are written by one statement, in which the ticket cannot see the task: the task is checked by its own
-- rule, and a ticket may be for any task but another client's.
DROP POLICY added ON ticket; CREATE POLICY added ON ticket FOR INSERT WITH CHECK (NOT is_foreign_task(id));

-- What belongs to the machines and to no client. Leases name nothing but numbers of tasks.
SELECT share('queue', 'SELECT, INSERT (name)'), share('lease', 'SELECT'), share('task_id', 'USAGE'),
       share('worker', 'SELECT (id, name, queues, concurrency, solo, state, lease_for, started_at, heartbeat_at)');
