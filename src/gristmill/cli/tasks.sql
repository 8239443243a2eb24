-- What `gristmill task` asks for itself.

-- name: holder
SELECT id FROM task WHERE unique_key = %(key)s AND unique_held;
