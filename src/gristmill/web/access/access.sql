-- Keys, sessions and one-time links.

-- name: add_key
INSERT INTO access_key (digest, name, role, bound_to) VALUES (%(digest)s, %(name)s, %(role)s, %(bound_to)s)
ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING
RETURNING id;

-- name: list_keys
SELECT k.id, k.name, k.role, s.client, s.project, k.created_at, k.last_used_at, k.revoked_at
  FROM access_key k LEFT JOIN scope s ON s.id = k.bound_to
 WHERE (%(all)s OR k.revoked_at IS NULL) AND (%(id)s::int IS NULL OR k.id = %(id)s) AND k.id > %(after)s
 ORDER BY k.id LIMIT %(limit)s;

-- name: find_key_by_name
SELECT id FROM access_key WHERE name = %(name)s AND revoked_at IS NULL;

-- name: has_key
SELECT EXISTS (SELECT FROM access_key WHERE revoked_at IS NULL);

-- name: revoke_key
-- its sessions end in the same transaction
WITH ended AS (DELETE FROM web_session WHERE access_key = %(id)s)
UPDATE access_key SET revoked_at = clock() WHERE id = %(id)s AND revoked_at IS NULL
RETURNING id;

-- name: find_by_key
SELECT k.id AS key, k.name, k.role, s.client, s.project,
       coalesce(k.last_used_at < clock() - interval '1 minute', true) AS is_stale
  FROM access_key k LEFT JOIN scope s ON s.id = k.bound_to
 WHERE k.digest = %(digest)s AND k.revoked_at IS NULL;

-- name: find_by_session
SELECT k.id AS key, coalesce(k.name, 'operator') AS name, coalesce(k.role, 'admin') AS role, s.client, s.project,
       k.id IS NOT NULL AND coalesce(k.last_used_at < clock() - interval '1 minute', true) AS is_stale
  FROM web_session w LEFT JOIN access_key k ON k.id = w.access_key LEFT JOIN scope s ON s.id = k.bound_to
 WHERE w.digest = %(digest)s AND w.expires_at > clock() AND (w.access_key IS NULL OR k.revoked_at IS NULL);

-- name: note_use
UPDATE access_key SET last_used_at = clock() WHERE id = %(id)s;

-- name: begin_session
-- the key is locked, so that a key which is revoked at this moment gets no session; old sessions go, a few at a time
WITH old AS (
  DELETE FROM web_session WHERE digest IN
    (SELECT digest FROM web_session WHERE expires_at <= clock() ORDER BY expires_at LIMIT 20 FOR UPDATE SKIP LOCKED)
), holder AS (
  SELECT id FROM access_key WHERE id = %(key)s AND revoked_at IS NULL FOR SHARE
)
INSERT INTO web_session (digest, access_key, address, expires_at)
SELECT %(digest)s, %(key)s, %(address)s, clock() + %(lifetime)s::interval
 WHERE %(key)s::int IS NULL OR EXISTS (SELECT FROM holder)
RETURNING expires_at;

-- name: end_session
DELETE FROM web_session WHERE digest = %(digest)s;

-- name: add_link
WITH old AS (
  DELETE FROM sign_in_link WHERE digest IN
    (SELECT digest FROM sign_in_link WHERE expires_at <= clock() ORDER BY expires_at LIMIT 20 FOR UPDATE SKIP LOCKED)
)
INSERT INTO sign_in_link (digest, expires_at) VALUES (%(digest)s, clock() + %(lifetime)s::interval);

-- name: use_link
DELETE FROM sign_in_link WHERE digest = %(digest)s AND expires_at > clock() RETURNING digest;

-- name: note_attempt
WITH old AS (
  DELETE FROM sign_in_attempt WHERE id IN
    (SELECT id FROM sign_in_attempt WHERE at <= clock() - %(window)s::interval ORDER BY at LIMIT 20
        FOR UPDATE SKIP LOCKED)
)
INSERT INTO sign_in_attempt (address) VALUES (%(address)s) RETURNING id;

-- name: count_attempts
SELECT (SELECT count(*) FROM (SELECT FROM sign_in_attempt
                               WHERE address = %(address)s AND at > clock() - %(window)s::interval
                               LIMIT %(most)s + 1) a) AS own,
       (SELECT count(*) FROM (SELECT FROM sign_in_attempt WHERE at > clock() - %(window)s::interval
                               LIMIT %(most_in_all)s + 1) a) AS in_all;

-- name: forget_attempt
DELETE FROM sign_in_attempt WHERE id = %(id)s;
