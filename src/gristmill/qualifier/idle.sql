-- When people ask for something.

-- name: announce_request
WITH noted AS (
  INSERT INTO person_request (at, by) VALUES (clock(), %(by)s)
  ON CONFLICT (one) DO UPDATE SET at = excluded.at, by = excluded.by RETURNING at
)
SELECT pg_notify(%(channel)s, %(said)s) FROM noted;

-- name: last_request
SELECT at, clock() - at AS ago FROM person_request;
