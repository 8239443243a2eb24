-- The account at the provider of embeddings.

-- name: account
SELECT balance, checked_at, empty_since, reason FROM embedding_account;

-- name: is_paused
SELECT paused FROM queue WHERE name = %(queue)s FOR UPDATE;

-- name: note_empty
UPDATE embedding_account
   SET empty_since = coalesce(empty_since, clock()), reason = %(reason)s, checked_at = clock(),
       pauses = ARRAY(SELECT DISTINCT unnest(pauses || %(pauses)s::text[]));

-- name: note_balance
UPDATE embedding_account SET balance = %(balance)s, checked_at = clock();

-- name: note_filled
-- Which queues were paused because it was empty.
WITH before AS (SELECT pauses FROM embedding_account FOR UPDATE)
UPDATE embedding_account SET balance = %(balance)s, checked_at = clock(), empty_since = NULL, reason = NULL, pauses = '{}'
  FROM before
RETURNING before.pauses;
