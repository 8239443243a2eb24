-- Sending: letters become tasks, and tickets once nothing holds them back.

-- name: ensure_queues
INSERT INTO queue (name) SELECT unnest(%(names)s::text[]) ON CONFLICT DO NOTHING;

-- name: enqueue_alike
-- nothing -> pending: letters that differ only in their payload, which can be claimed at once
WITH given AS MATERIALIZED (
  SELECT nextval('task_id') AS id, value AS payload, ordinality AS place
    FROM jsonb_array_elements(%(payloads)s::jsonb) WITH ORDINALITY
), written AS (
  INSERT INTO task (id, created_at, parent, scope, lane, priority, foreground, max_attempts, queue, kind, owner, payload)
  SELECT id, (SELECT clock()), %(parent)s, %(scope)s, %(lane)s, %(priority)s, %(foreground)s, %(max_attempts)s,
         %(queue)s, %(kind)s, %(owner)s, payload
    FROM given
), entered AS (
  INSERT INTO ticket (id, seq, lane, queue) SELECT id, id, %(lane)s, %(queue)s FROM given
), counted AS (
  INSERT INTO queue_depth (queue, scope, opened) SELECT %(queue)s, %(scope)s, count(*) FROM given
)
SELECT array_agg(id ORDER BY place) AS ids,
       pg_notify('gristmill', 'ready ' || %(queue)s || ' ' || %(lane)s || ' ' || min(id)) AS told
  FROM given;

-- name: enqueue_each
-- nothing -> pending: letters that can be claimed at once, each with an outside of its own
WITH given AS MATERIALIZED (
  SELECT nextval('task_id') AS id, r.*
    FROM unnest(%(payloads)b::text[], %(queues)b::text[], %(kinds)b::text[], %(lanes)s::int[], %(priorities)s::smallint[],
                %(foregrounds)s::boolean[], %(parents)s::bigint[], %(scopes)s::int[], %(max_attempts)s::int[], %(owners)s::text[])
         WITH ORDINALITY AS r (payload, queue, kind, lane, priority, foreground, parent, scope, max_attempts, owner, place)
), written AS (
  INSERT INTO task (id, created_at, parent, scope, lane, priority, foreground, max_attempts, queue, kind, owner, payload)
  SELECT id, (SELECT clock()), parent, scope, lane, priority, foreground, max_attempts, queue, kind, owner, payload::jsonb
    FROM given
), entered AS (
  INSERT INTO ticket (id, seq, lane, queue) SELECT id, id, lane, queue FROM given
), counted AS (
  INSERT INTO queue_depth (queue, scope, opened) SELECT queue, scope, count(*) FROM given GROUP BY queue, scope
)
SELECT (SELECT array_agg(id ORDER BY place) FROM given) AS ids,
       (SELECT count(pg_notify('gristmill', 'ready ' || queue || ' ' || lane || ' ' || first)::text)
          FROM (SELECT queue, lane, min(id) AS first FROM given GROUP BY queue, lane) f) AS told;

-- name: reserve_ids
SELECT array_agg(nextval('task_id')) AS ids, clock() AS now FROM generate_series(1, %(n)s);

-- name: copy_tasks
-- nothing -> pending, by the thousand
COPY task (id, created_at, parent, scope, lane, priority, foreground, max_attempts, queue, kind, owner, payload) FROM STDIN;

-- name: copy_tickets
COPY ticket (id, seq, lane, queue) FROM STDIN;

-- name: copied
-- counts the tasks of a COPY, and tells workers of them
WITH counted AS (
  INSERT INTO queue_depth (queue, scope, opened) VALUES (%(queue)s, %(scope)s, %(n)s)
)
SELECT pg_notify('gristmill', %(payload)s);

-- name: enqueue
-- nothing -> pending: letters with instructions of their own; `admit` gives them a ticket when nothing holds them back
WITH moment AS MATERIALIZED (
  SELECT clock() AS now  -- once: clock() for each row would be slow
), given AS MATERIALIZED (
  SELECT nextval('task_id') AS id, r.*
    FROM ROWS FROM (jsonb_to_recordset(%(rows)s::jsonb) AS (
           payload jsonb, queue text, kind text, lane int, priority smallint, foreground boolean, "position" bigint,
           run_at timestamptz, delay interval, parent bigint, after bigint, serial_key text, unique_key text,
           unique_for interval, max_attempts int, owner text, scope int)) WITH ORDINALITY
      AS r(payload, queue, kind, lane, priority, foreground, "position", run_at, delay, parent, after, serial_key,
           unique_key, unique_for, max_attempts, owner, scope, place)
), written AS (
  INSERT INTO task (id, created_at, run_at, parent, after, position, unique_until, lane, priority, max_attempts, wait,
                    foreground, unique_held, queue, kind, serial_key, unique_key, owner, scope, payload)
  SELECT id, now, coalesce(run_at, now + delay), parent, after, position, now + unique_for, lane, priority, max_attempts,
         CASE WHEN after IS NOT NULL THEN 'after'::task_wait END, foreground, CASE WHEN unique_key IS NOT NULL THEN true END,
         queue, kind, serial_key, unique_key, owner, scope, payload
    FROM given, moment
   ORDER BY unique_key, scope, place  -- one order of locking for all senders
  ON CONFLICT (unique_key, scope) WHERE unique_held DO NOTHING
  RETURNING id, queue, scope
), counted AS (
  INSERT INTO queue_depth (queue, scope, opened) SELECT queue, scope, count(*) FROM written GROUP BY queue, scope
)
SELECT g.id, g.place, w.id IS NOT NULL AS written FROM given g LEFT JOIN written w ON w.id = g.id ORDER BY g.place;

-- name: release_unique
UPDATE task SET unique_held = NULL
 WHERE unique_key = ANY (%(keys)s) AND unique_held AND outcome IS NOT NULL
   AND (unique_until IS NULL OR unique_until <= clock());

-- name: holders
SELECT t.unique_key, t.scope, t.id, t.queue, t.outcome IS NULL AND k.worker IS NULL AS replaceable
  FROM task t LEFT JOIN ticket k ON k.id = t.id
 WHERE t.unique_key = ANY (%(keys)s) AND t.unique_held;

-- name: replace
-- pending -> pending: a newer letter under the same unique key takes the place of the older one, which is in the queue `was`
WITH removed AS (
  DELETE FROM ticket WHERE id = %(id)s AND worker IS NULL AND queue = %(was)s RETURNING id
), replaced AS (
  UPDATE task t
     SET queue = %(queue)s, kind = %(kind)s, payload = %(payload)s::jsonb, max_attempts = %(max_attempts)s,
         lane = %(lane)s, priority = %(priority)s, foreground = %(foreground)s, position = %(position)s,
         run_at = coalesce(%(run_at)s, clock() + %(delay)s),
         wait = CASE WHEN t.wait IN ('after', 'serial') THEN t.wait END
   WHERE t.id = %(id)s AND t.outcome IS NULL AND t.queue = %(was)s AND (t.wait IS NOT NULL OR EXISTS (SELECT FROM removed))
  RETURNING t.id, t.scope, t.wait, t.parent, t.after, t.serial_key, t.owner
), counted AS (
  INSERT INTO queue_depth (queue, scope, opened)
  SELECT m.queue, r.scope, m.n FROM replaced r, (VALUES (%(was)s, -1), (%(queue)s, 1)) AS m(queue, n) WHERE %(was)s <> %(queue)s
)
SELECT id, wait, parent, after, serial_key, owner FROM replaced;

-- name: await_tasks
-- locked from low to high ids, as settling does; with the strongest lock at once, as raising a lock later can deadlock
WITH wanted AS MATERIALIZED (
  SELECT id, outcome, awaited FROM task WHERE id = ANY (%(ids)s) ORDER BY id FOR NO KEY UPDATE
), marked AS (
  UPDATE task t SET awaited = true FROM wanted w WHERE t.id = w.id AND NOT w.awaited AND w.outcome IS DISTINCT FROM 'cancelled'
)
SELECT id, outcome FROM wanted;

-- name: all_awaited
SELECT bool_and(awaited) FROM task WHERE id = ANY (%(ids)s);

-- name: lock_outcomes
SELECT id, outcome FROM task WHERE id = ANY (%(ids)s) ORDER BY id FOR SHARE;

-- name: admit
SELECT admit(array_agg(t.id)) FROM task t WHERE t.id = ANY (%(ids)s::bigint[])  -- those that the caller sees
HAVING count(*) > 0;

-- name: admit_new
-- a task that comes after one which is already done need not wait
SELECT admit(array_agg(t.id))
  FROM task t LEFT JOIN task a ON a.id = t.after
 WHERE t.id = ANY (%(ids)s::bigint[]) AND (t.after IS NULL OR a.outcome IN ('completed', 'skipped'))
HAVING count(*) > 0;
