-- Who sees which tasks.

SELECT protect('task'), protect('task_group'), protect('queue_tally'), protect('task_progress'), protect('task_failure'), protect('serial_head'),
       protect('schedule');
-- a ticket has no scope of its own: it is a place in line, and seen with its task
SELECT protect('ticket', seen => 'EXISTS (SELECT FROM task t WHERE t.id = ticket.id)',
                         own => 'EXISTS (SELECT FROM task t WHERE t.id = ticket.id AND t.scope = ANY ((SELECT own_scopes())::int[]))');

-- What belongs to the machines and to no client. Leases name nothing but numbers of tasks.
SELECT share('queue', 'SELECT, INSERT'), share('worker', 'SELECT'), share('lease', 'SELECT'), share('tasks', 'SELECT'),
       share('leased', 'SELECT'), share('task_id', 'USAGE');
