-- The breaker of an executor.

-- name: load_health
SELECT name, failures, opened_at, probed_at, error, clock() AS now FROM executor_health WHERE name = %(name)s;

-- name: take_probe
-- one of those who ask may try; the others wait for what it finds
UPDATE executor_health SET probed_at = clock()
 WHERE name = %(name)s AND opened_at IS NOT NULL AND greatest(opened_at, probed_at) + %(wait)s::interval <= clock()
RETURNING name;

-- name: note_healthy
UPDATE executor_health SET failures = 0, opened_at = NULL, probed_at = NULL, error = NULL WHERE name = %(name)s AND failures > 0;

-- name: note_failure
INSERT INTO executor_health AS h (name, failures, error) VALUES (%(name)s, 1, %(error)s)
ON CONFLICT (name) DO UPDATE
   SET failures = h.failures + 1, error = excluded.error,
       opened_at = CASE WHEN h.failures + 1 >= %(most)s THEN coalesce(h.opened_at, clock()) END;

-- name: close_breaker
UPDATE executor_health SET opened_at = NULL, probed_at = NULL, failures = 1 WHERE name = %(name)s AND opened_at IS NOT NULL;
