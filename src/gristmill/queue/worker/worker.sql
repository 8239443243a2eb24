-- The row of a worker: registered, kept alive, closed.

-- name: register
INSERT INTO worker (name, process, journal, queues, concurrency, solo, lease_for)
VALUES (%(name)s, %(process)s, %(journal)s, %(queues)s, %(concurrency)s, %(solo)s, %(lease)s) RETURNING id;

-- name: set_worker_state
UPDATE worker SET state = %(state)s WHERE id = %(worker)s AND state IN ('live', 'stopping') RETURNING id;

-- name: heartbeat
UPDATE worker SET heartbeat_at = clock() WHERE id = %(worker)s AND state IN ('live', 'stopping') RETURNING id;
