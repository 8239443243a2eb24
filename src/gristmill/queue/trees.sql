-- Trees of groups and tasks, written down as a whole: nothing of them was there before.

-- name: copy_tasks
COPY task (id, created_at, started_at, finished_at, parent, after, scope, lane, priority, attempts, outcome, wait, foreground,
           awaited, queue, kind, owner, payload, error) FROM STDIN;

-- name: insert_tasks
INSERT INTO task (id, created_at, started_at, finished_at, parent, after, scope, lane, priority, attempts, outcome, wait,
                  foreground, awaited, queue, kind, owner, payload, error)
SELECT id, created_at, started_at, finished_at, parent, after, scope, lane, priority, attempts, outcome, wait, foreground,
       awaited, queue, kind, owner, (payload #>> '{}')::jsonb, error
  FROM json_populate_recordset(NULL::task, %(rows)s::json);

-- name: copy_groups
COPY task_group (id, parent, finished_at, scope, pending, completed, skipped, done, sealed, status) FROM STDIN;

-- name: insert_groups
INSERT INTO task_group (id, parent, finished_at, scope, pending, completed, skipped, done, sealed, status)
SELECT id, parent, finished_at, scope, pending, completed, skipped, done, sealed, status
  FROM json_populate_recordset(NULL::task_group, %(rows)s::json);

-- name: copy_tickets
COPY ticket (id, seq, lane, queue) FROM STDIN;

-- name: insert_tickets
INSERT INTO ticket (id, seq, lane, queue) SELECT id, seq, lane, queue FROM json_populate_recordset(NULL::ticket, %(rows)s::json);

-- name: count_planted
-- what was done before it was sent was never open
WITH counted AS (
  INSERT INTO queue_depth (queue, scope, opened, completed, skipped)
  SELECT * FROM unnest(%(queues)s::text[], %(scopes)s::int[], %(opened)s::bigint[], %(completed)s::bigint[], %(skipped)s::bigint[])
)
SELECT pg_notify('gristmill', told) FROM unnest(%(told)s::text[]) AS told;
