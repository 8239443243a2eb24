-- What bulk actions do to a portion of tasks, and how it is undone.

-- name: lock_tickets
-- tickets before tasks before groups, as everybody
SELECT id FROM ticket WHERE id = ANY (%(ids)s::bigint[]) ORDER BY id FOR UPDATE;

-- name: lock_tasks
-- with everything that a change may overwrite
SELECT t.id, t.scope, t.queue, t.outcome::text AS outcome, t.parent, t.owner, t.position, t.priority, t.foreground, t.lane,
       t.unique_held, k.worker,
       jsonb_build_object('outcome', t.outcome, 'finished_at', t.finished_at, 'died_at', t.died_at, 'started_at', t.started_at,
                          'run_at', t.run_at, 'attempts', coalesce(k.attempts, t.attempts), 'worker', t.worker,
                          'result', t.result, 'error', t.error, 'fingerprint', t.fingerprint, 'lane', t.lane,
                          'position', t.position, 'priority', t.priority, 'foreground', t.foreground)::text AS was
  FROM task t LEFT JOIN ticket k ON k.id = t.id
 WHERE t.id = ANY (%(ids)s::bigint[]) ORDER BY t.id FOR UPDATE OF t;

-- name: followers
-- tasks that wait for these, and for those, and so on: they are cancelled together
WITH RECURSIVE behind AS (
  SELECT id FROM task WHERE wait = 'after' AND after = ANY (%(ids)s::bigint[])
  UNION
  SELECT t.id FROM behind JOIN task t ON t.after = behind.id AND t.wait = 'after'
)
SELECT id FROM behind;

-- name: move
-- pending -> pending, each at its new place
WITH given AS MATERIALIZED (
  SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb)
    AS g(id bigint, "position" bigint, priority smallint, foreground boolean, lane int, by_age boolean)
), placed AS (
  UPDATE task t SET position = g.position, priority = g.priority, foreground = g.foreground, lane = g.lane
    FROM given g WHERE t.id = g.id AND t.outcome IS NULL
), moved AS (
  UPDATE ticket k SET lane = g.lane, seq = coalesce(g.position, CASE WHEN g.by_age THEN k.id ELSE k.seq END)
    FROM given g WHERE k.id = g.id AND k.worker IS NULL
  RETURNING k.queue, k.lane, k.seq
)
SELECT count(pg_notify('gristmill', 'ready ' || queue || ' ' || lane || ' ' || seq)::text)
  FROM (SELECT queue, lane, min(seq) AS seq FROM moved GROUP BY queue, lane) f;

-- name: uncount
-- retention may not delete them any more: they go now
INSERT INTO queue_tally AS y (queue, scope, worker, prunable)
SELECT queue, scope, 0, -count(*) FROM task
 WHERE id = ANY (%(ids)s::bigint[]) AND outcome IN ('completed', 'skipped', 'cancelled') AND parent IS NULL AND owner IS NULL
 GROUP BY 1, 2 ORDER BY 1, 2
ON CONFLICT (queue, scope, worker) DO UPDATE SET prunable = y.prunable + excluded.prunable;

-- name: put_back
-- pending -> failed | cancelled | completed | skipped: as it was before it was retried; `conclude` is a statement of its own
WITH given AS MATERIALIZED (
  SELECT g.id, w.* FROM jsonb_to_recordset(%(rows)s::jsonb) AS g(id bigint, was jsonb), jsonb_to_record(g.was) AS w(
    outcome task_status, finished_at timestamptz, died_at timestamptz, started_at timestamptz, run_at timestamptz, attempts int,
    worker int, result jsonb, error text, fingerprint text, lane int)
), removed AS (
  DELETE FROM ticket k USING given g WHERE k.id = g.id AND k.worker IS NULL RETURNING k.id
), closed AS (
  UPDATE task t
     SET outcome = g.outcome, finished_at = g.finished_at, died_at = g.died_at, started_at = g.started_at, run_at = g.run_at,
         attempts = g.attempts, worker = g.worker, result = nullif(g.result, 'null'), error = g.error, fingerprint = g.fingerprint,
         lane = g.lane, wait = NULL, unique_held = NULL
    FROM given g LEFT JOIN removed r ON r.id = g.id
   WHERE t.id = g.id AND t.outcome IS NULL AND (t.wait IS NOT NULL OR r.id IS NOT NULL)
  RETURNING t.id, t.queue, t.scope, t.kind, t.outcome, t.died_at, t.error, t.fingerprint,
            t.parent IS NULL AND t.owner IS NULL AND t.outcome <> 'failed' AS prunable
), counted AS (
  INSERT INTO queue_tally AS y (queue, scope, worker, prunable)
  SELECT queue, scope, 0, count(*) FROM closed WHERE prunable GROUP BY 1, 2 ORDER BY 1, 2
  ON CONFLICT (queue, scope, worker) DO UPDATE SET prunable = y.prunable + excluded.prunable
), closing AS (
  INSERT INTO queue_depth (queue, scope, opened, completed, failed, skipped, cancelled)
  SELECT queue, scope, -count(*), count(*) FILTER (WHERE outcome = 'completed'), count(*) FILTER (WHERE outcome = 'failed'),
         count(*) FILTER (WHERE outcome = 'skipped'), count(*) FILTER (WHERE outcome = 'cancelled')
    FROM closed GROUP BY queue, scope
), clustered AS (
  INSERT INTO dead_tally (queue, scope, kind, fingerprint, n, first_at, last_at, error, examples)
  SELECT queue, scope, kind, coalesce(fingerprint, ''), count(*), min(died_at), max(died_at), max(error),
         (array_agg(id ORDER BY id DESC))[1:5]
    FROM closed WHERE died_at IS NOT NULL GROUP BY 1, 2, 3, 4
)
SELECT id FROM closed;

-- name: restore
-- pending -> pending: a reopened task has the attempts and the time that it had before it was cancelled
WITH given AS MATERIALIZED (
  SELECT g.id, w.* FROM jsonb_to_recordset(%(rows)s::jsonb) AS g(id bigint, was jsonb), jsonb_to_record(g.was) AS w(
    run_at timestamptz, attempts int)
), asleep AS (
  DELETE FROM ticket k USING given g WHERE k.id = g.id AND k.worker IS NULL AND g.run_at > clock() RETURNING k.id
), counted AS (
  UPDATE ticket k SET attempts = g.attempts FROM given g WHERE k.id = g.id AND (g.run_at > clock()) IS NOT TRUE
)
UPDATE task t
   SET attempts = g.attempts, run_at = g.run_at, wait = CASE WHEN s.id IS NOT NULL THEN 'time'::task_wait ELSE t.wait END
  FROM given g LEFT JOIN asleep s ON s.id = g.id WHERE t.id = g.id AND t.outcome IS NULL;
