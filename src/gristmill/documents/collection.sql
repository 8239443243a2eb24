-- Documents that another room fills.

-- name: hash_of
SELECT hash FROM document WHERE id = %(document)s FOR UPDATE;

-- name: exchange_bytes
UPDATE document SET hash = %(hash)s WHERE id = %(document)s;
