-- Runs of items: how far they are, and what came of them.

-- name: read_clock
SELECT clock();

-- name: keep_checkpoint
-- only by the run that has the item
INSERT INTO item_checkpoint (item, scope, run, done, data)
SELECT i.id, i.scope, i.run, %(done)s, %(data)s::jsonb FROM item i
 WHERE i.id = %(item)s AND i.run = %(run)s AND i.state = 'running' FOR SHARE OF i
ON CONFLICT (item) DO UPDATE SET run = excluded.run, done = excluded.done, data = excluded.data, at = clock()
RETURNING item;

-- name: load_checkpoint
SELECT done, data FROM item_checkpoint WHERE item = %(item)s;

-- name: drop_checkpoint
DELETE FROM item_checkpoint WHERE item = %(item)s;

-- name: keep_result
INSERT INTO item_result (item, run, scope, by, summary, reply, asked, citations)
SELECT id, %(run)s, scope, %(by)s, %(summary)s, %(reply)s, %(asked)s::jsonb, %(citations)s::jsonb FROM item WHERE id = %(item)s;

-- name: count_missed
SELECT count(*)::int FROM item_message WHERE item = %(item)s AND id > %(heard)s AND kind = ANY (%(kinds)s::text[]);
