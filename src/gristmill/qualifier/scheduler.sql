-- Items whose time has nearly come.

-- name: read_clock
SELECT clock();

-- name: due_items
SELECT i.*, s.client, s.project FROM item i JOIN scope s ON s.id = i.scope
 WHERE i.state = 'scheduled' AND i.scheduled_at <= clock() + %(ahead)s::interval
 ORDER BY i.scheduled_at LIMIT %(limit)s FOR UPDATE OF i SKIP LOCKED;

-- name: set_next
UPDATE item SET scheduled_at = %(scheduled_at)s WHERE id = %(id)s AND state = 'scheduled';
