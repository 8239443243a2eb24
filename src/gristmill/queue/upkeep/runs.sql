-- The history of schedules.

-- name: note
INSERT INTO schedule_run (scope, name, at, due, task, problem)
VALUES (%(scope)s, %(name)s, clock(), %(due)s, %(task)s, %(problem)s);

-- name: runs
-- the latest runs of each of these schedules; what became of a task is known as long as the task is kept
SELECT r.id, r.scope, r.name, r.at, r.due, r.task, r.problem, t.status, t.started_at, t.finished_at, t.error
  FROM unnest(%(scopes)s::int[], %(names)s::text[]) AS s(scope, name), LATERAL (
    SELECT * FROM schedule_run o
     WHERE o.scope = s.scope AND o.name = s.name AND (%(before)s::bigint IS NULL OR o.id < %(before)s)
     ORDER BY o.scope DESC, o.name DESC, o.id DESC LIMIT %(limit)s) r
  LEFT JOIN tasks t ON t.id = r.task
 ORDER BY r.id DESC;
