-- Actions on all tasks that a filter fits.

-- name: add
INSERT INTO bulk_action (scope, everywhere, created_by, action, filter, value, last_id, expected)
VALUES (%(scope)s, %(everywhere)s, %(by)s, %(action)s, %(filter)s::jsonb, %(value)s,
        coalesce(pg_sequence_last_value('task_id'), 0), %(expected)s)
RETURNING id;

-- name: get
SELECT b.*, b.filter::text AS filter_text, clock() AS now FROM bulk_action b WHERE b.id = %(id)s;

-- name: lock
SELECT b.*, b.filter::text AS filter_text, clock() AS now FROM bulk_action b WHERE b.id = %(id)s FOR UPDATE;

-- name: latest
SELECT b.*, b.filter::text AS filter_text, clock() AS now FROM bulk_action b
 WHERE (%(before)s::bigint IS NULL OR b.id < %(before)s) ORDER BY b.id DESC LIMIT %(limit)s;

-- name: runner
-- the task that runs the next portions
SELECT id FROM task WHERE unique_key = %(key)s AND unique_held;

-- name: stop
-- running -> stopping
UPDATE bulk_action SET status = 'stopping' WHERE id = %(id)s AND status = 'running' RETURNING id;

-- name: undo
-- done | stopped | failed -> undoing
UPDATE bulk_action SET status = 'undoing', finished_at = NULL, spot = NULL, problem = NULL
 WHERE id = %(id)s AND status IN ('done', 'stopped', 'failed') RETURNING id;

-- name: advance
-- running -> running | done: one portion is done; what is left begins at `spot`
UPDATE bulk_action
   SET step = step + 1, spot = %(spot)s::jsonb, examined = examined + %(examined)s, changed = changed + %(changed)s,
       refused = refused + %(refused)s, status = CASE WHEN %(spot)s::jsonb IS NULL THEN 'done' ELSE status END,
       finished_at = CASE WHEN %(spot)s::jsonb IS NULL THEN clock() END
 WHERE id = %(id)s AND status = 'running';

-- name: take_back
-- undoing -> undoing | undone
UPDATE bulk_action
   SET step = step + 1, undone = undone + %(undone)s, status = CASE WHEN %(more)s THEN status ELSE 'undone' END,
       finished_at = CASE WHEN NOT %(more)s THEN clock() END
 WHERE id = %(id)s AND status = 'undoing';

-- name: finish
-- running | stopping | undoing -> stopped | failed
UPDATE bulk_action SET status = %(status)s, finished_at = clock(), problem = %(problem)s
 WHERE id = %(id)s AND finished_at IS NULL;

-- name: remember
INSERT INTO bulk_change (bulk, scope, task, was)
SELECT %(bulk)s, c.scope, c.task, c.was
  FROM jsonb_to_recordset(%(changes)s::jsonb) AS c(task bigint, scope int, was jsonb)
ON CONFLICT (bulk, task) DO NOTHING;

-- name: recall
-- the next changes to undo, each once; the oldest tasks first, as others may come after them
DELETE FROM bulk_change
 WHERE bulk = %(bulk)s AND task IN (SELECT task FROM bulk_change WHERE bulk = %(bulk)s ORDER BY task LIMIT %(n)s)
RETURNING task, was;

-- name: pace
-- tasks a second of the latest actions of this kind
SELECT sum(changed + refused) / nullif(sum(extract(epoch FROM finished_at - created_at)), 0)
  FROM (SELECT changed, refused, created_at, finished_at FROM bulk_action
         WHERE action = %(action)s AND status = 'done' AND changed + refused > 100 ORDER BY id DESC LIMIT 5) b;

-- name: viewpoint
SELECT client, project FROM scope WHERE id = %(scope)s;
