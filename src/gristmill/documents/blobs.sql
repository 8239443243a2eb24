-- The bytes of documents: staged in many small transactions, kept once for each content.

-- name: keep_bytes
SELECT keep_all_bytes(%(contents)b);

-- name: pin
-- bytes that are here already need not be brought again
WITH known AS (
  SELECT id FROM blob b
   WHERE hash = %(hash)s AND (size = 0 OR EXISTS (SELECT FROM blob_piece p WHERE p.blob = b.id))
     FOR KEY SHARE
)
INSERT INTO staged_blob (blob) SELECT id FROM known RETURNING pin;

-- name: begin_staging
WITH begun AS (INSERT INTO blob (hash, size) VALUES (NULL, 0) RETURNING id)
INSERT INTO staged_blob (blob) SELECT id FROM begun RETURNING pin, blob;

-- name: renew
-- as long as bytes arrive, they are not left behind
UPDATE staged_blob SET at = clock() WHERE pin = %(pin)s RETURNING pin;

-- name: add_piece
INSERT INTO blob_piece (blob, n, bytes) VALUES (%(blob)s, %(n)s, %(bytes)b);

-- name: keep_blob
SELECT keep_blob(%(hash)s, %(size)s);

-- name: hand_pieces
-- only the short row of a piece is written anew: its bytes lie elsewhere, and stay there
UPDATE blob_piece SET blob = %(kept)s
 WHERE blob = %(staged)s AND NOT EXISTS (SELECT FROM blob_piece WHERE blob = %(kept)s);

-- name: move_pin
UPDATE staged_blob SET blob = %(kept)s WHERE pin = %(pin)s;

-- name: drop_staging
DELETE FROM blob WHERE id = %(staged)s AND hash IS NULL;

-- name: claim
SELECT claim_staged(%(pin)s, %(hash)s);

-- name: release
SELECT release_staged(%(pin)s, %(hash)s);

-- name: has_document
SELECT EXISTS (SELECT FROM document d WHERE d.hash = %(hash)s);

-- name: hold
SELECT hold_blob(%(hash)s);

-- name: lock
SELECT lock_blobs(%(hashes)s);

-- name: drop_unused
SELECT drop_unused_blobs(%(hashes)s);

-- name: unpin_abandoned
DELETE FROM staged_blob WHERE at < clock() - %(age)s::interval RETURNING blob;

-- name: drop_unfinished
DELETE FROM blob b WHERE b.id = ANY (%(blobs)s) AND b.hash IS NULL;

-- name: drop_abandoned
SELECT drop_unused_blobs(ARRAY (SELECT hash FROM blob WHERE id = ANY (%(blobs)s) AND hash IS NOT NULL));

-- name: forget_claims
-- those that another transaction sees are of transactions that have ended
DELETE FROM claimed_blob;
