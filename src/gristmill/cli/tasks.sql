-- What `gristmill task` asks for itself.

-- name: holder
-- keys hold within a scope: a client may have the same one
SELECT id FROM task WHERE unique_key = %(key)s AND scope = %(scope)s AND unique_held;
