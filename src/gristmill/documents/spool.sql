-- Copies of bytes on disk: which are still wanted, and what is in them.

-- name: wanted
SELECT hash FROM blob WHERE hash = ANY (%(hashes)s);

-- name: piece
SELECT p.bytes FROM blob b JOIN blob_piece p ON p.blob = b.id WHERE b.hash = %(hash)s AND p.n = %(n)s;
