-- The statements of blobs: bytes in pieces, once for each content.

-- name: insert_blob
-- locks the row either way: nobody may delete it before our document refers to it
INSERT INTO blob AS b (hash, size) VALUES (%(hash)s, %(size)s)
ON CONFLICT (hash) DO UPDATE SET size = b.size;

-- name: has_pieces
SELECT EXISTS (SELECT FROM blob_piece WHERE hash = %(hash)s);

-- name: insert_piece
INSERT INTO blob_piece (hash, n, bytes) VALUES (%(hash)s, %(n)s, %(bytes)s);

-- name: kept
SELECT hash FROM blob WHERE hash = ANY (%(hashes)s);

-- name: piece
SELECT bytes FROM blob_piece WHERE hash = %(hash)s AND n = %(n)s;
