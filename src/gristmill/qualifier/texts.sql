-- The pages of an item's documents.

-- name: pages_of
SELECT document, number, text FROM page
 WHERE document = ANY (%(documents)s::bigint[]) AND number <= %(most)s ORDER BY document, number;
