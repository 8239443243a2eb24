-- What `gristmill task` asks for itself.

-- name: holder
-- a key is unique within one scope: two clients may use the same key
SELECT id FROM task WHERE unique_key = %(key)s AND scope = %(scope)s AND unique_held;
