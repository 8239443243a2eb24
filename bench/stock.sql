-- Fills the tables as a house has them after months.

-- name: tasks
-- one task in ten is open; every fifth belongs to a client, every fifth to a document
INSERT INTO task (id, created_at, run_at, started_at, finished_at, died_at, parent, worker, scope, lane, attempts, outcome, wait,
                  queue, kind, owner, payload, result, error, fingerprint)
SELECT n, clock() - interval '30 days' * (1 - n / %(total)s::float8), CASE WHEN w = 'time' THEN clock() + interval '1 day' END,
       CASE WHEN o IS NOT NULL THEN clock() END, CASE WHEN o IS NOT NULL THEN clock() END,
       CASE WHEN o = 'failed' THEN clock() - interval '7 days' * (n %% 997) / 997.0 END, NULL, NULL,
       CASE WHEN n %% 5 = 0 THEN 2 + n %% %(clients)s ELSE 1 END, 1203, CASE WHEN o IS NOT NULL THEN 1 ELSE 0 END, o, w,
       q, q || '.work', CASE WHEN n %% 5 = 1 THEN 'document:' || (1 + n %% %(documents)s) END,
       jsonb_build_object('item', n, 'page', n %% 40, 'path', 'archive/' || n %% 1000 || '/scan.pdf'),
       CASE WHEN o = 'completed' AND n %% 3 = 0 THEN jsonb_build_object('words', n %% 512) END,
       CASE WHEN o = 'failed' THEN 'The page of kind ' || n %% 211 || ' cannot be read' END,
       CASE WHEN o = 'failed' THEN md5((n %% 211)::text) END
  FROM (SELECT n, 'bench-' || n %% 12 AS q,
               CASE WHEN n %% 10 = 7 THEN NULL WHEN n %% 100 = 3 THEN 'failed' WHEN n %% 100 = 13 THEN 'skipped'
                    WHEN n %% 100 = 23 THEN 'cancelled' ELSE 'completed' END::task_status AS o,
               CASE WHEN n %% 100 = 17 THEN 'time' END::task_wait AS w
          FROM generate_series(%(first)s::bigint, %(last)s::bigint) n) t;

-- name: tickets
INSERT INTO ticket (id, seq, lane, queue)
SELECT n, n, 1203, 'bench-' || n %% 12 FROM generate_series(%(first)s::bigint, %(last)s::bigint) n
 WHERE n %% 10 = 7 AND n %% 100 <> 17;

-- name: documents
INSERT INTO document (scope, urn, version, hash, name, type, title, task, opening, pages, completed_at)
SELECT CASE WHEN n %% 5 = 0 THEN 2 + n %% %(clients)s ELSE 1 END, 'urn:bench:' || n, 1, sha256(''), 'file ' || n || '.pdf',
       CASE n %% 7 WHEN 0 THEN 'mail' WHEN 1 THEN 'text' ELSE 'pdf' END, 'Report ' || n, 0, 0, 1,
       CASE WHEN n %% 50 > 0 THEN clock() END
  FROM generate_series(%(first)s::bigint, %(last)s::bigint) n;

-- name: pages
INSERT INTO page (document, number, scope, method, text, key)
SELECT id, 1, scope, 'text', 'Some words of report ' || id, sha256(int8send(id)) FROM document;

-- name: group_counters
INSERT INTO task_group (id, scope, sealed, completed, failed, pending)
SELECT %(group)s, 1, true, %(children)s - %(children)s / 10 - 5, 5, %(children)s / 10;

-- name: group_task
INSERT INTO task (id, created_at, scope, lane, wait, kind, payload)
SELECT %(group)s, clock(), 1, 0, 'children', 'group', '{"label": "a large book"}';

-- name: group_children
INSERT INTO task (id, created_at, run_at, finished_at, died_at, parent, scope, lane, outcome, wait, queue, kind, payload, error,
                  fingerprint)
SELECT %(group)s + n, clock(), CASE WHEN n %% 10 = 7 THEN clock() + interval '1 day' END, CASE WHEN n %% 10 <> 7 THEN clock() END,
       CASE WHEN n <= 5 THEN clock() END, %(group)s, 1, 1203,
       CASE WHEN n %% 10 = 7 THEN NULL WHEN n <= 5 THEN 'failed' ELSE 'completed' END::task_status,
       CASE WHEN n %% 10 = 7 THEN 'time' END::task_wait, 'bench-0', 'bench-0.work', jsonb_build_object('page', n),
       CASE WHEN n <= 5 THEN 'The page is torn' END, CASE WHEN n <= 5 THEN md5('torn') END
  FROM generate_series(1, %(children)s) n;

-- name: queues
INSERT INTO queue (name) SELECT 'bench-' || n FROM generate_series(0, 11) n ON CONFLICT DO NOTHING;

-- name: depths
INSERT INTO queue_depth (queue, scope, opened, completed, failed, skipped, cancelled)
SELECT queue, scope, count(*) FILTER (WHERE outcome IS NULL), count(*) FILTER (WHERE outcome = 'completed'),
       count(*) FILTER (WHERE outcome = 'failed'), count(*) FILTER (WHERE outcome = 'skipped'),
       count(*) FILTER (WHERE outcome = 'cancelled')
  FROM task WHERE queue IS NOT NULL GROUP BY queue, scope;

-- name: dead
INSERT INTO dead_tally (queue, scope, kind, fingerprint, n, first_at, last_at, error, examples)
SELECT queue, scope, kind, fingerprint, count(*), min(died_at), max(died_at), max(error), (array_agg(id))[1:5]
  FROM task WHERE died_at IS NOT NULL GROUP BY 1, 2, 3, 4;

-- name: samples
INSERT INTO queue_sample (queue, scope, at, opened, completed, failed, skipped, cancelled, retried, dead)
SELECT 'bench-' || q, s, date_trunc('minute', clock()) - m * interval '1 min', 60, 55, 2, 1, 1, 3, 1
  FROM generate_series(0, 11) q, generate_series(1, 5) s, generate_series(1, 1440) m;

-- name: sampled
INSERT INTO queue_sampled (queue, scope, opened, completed, failed, skipped, cancelled, retried, dead)
SELECT queue, scope, opened, completed, failed, skipped, cancelled, retried, kept_failed FROM queue_count;

-- name: document_tally
INSERT INTO document_tally SELECT scope, count(*), count(completed_at) FROM document GROUP BY scope;

-- name: blob
INSERT INTO blob (hash, size) VALUES (sha256(''), 0);

-- name: clients
INSERT INTO scope (client) SELECT 'client ' || n FROM generate_series(1, %(clients)s) n;

-- name: indexes
SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'task' AND indexname <> 'task_pkey';

-- name: numbers
-- later tasks come after these
SELECT setval('task_id', %(last)s);

-- What lies in the rooms above; triggers count it as they do in a running house.

-- name: items
INSERT INTO item (scope, type, title, text, state, outcome, written_at)
SELECT CASE WHEN n %% 5 = 0 THEN 2 + n %% %(clients)s ELSE 1 END, 'email', 'Mail ' || n, 'Please look at report ' || n,
       CASE WHEN n %% 50 = 0 THEN 'ready_for_execution' ELSE 'done' END, CASE WHEN n %% 50 > 0 THEN 'info_only' END, clock()
  FROM generate_series(1, %(n)s) n;

-- name: sources
INSERT INTO source (scope, name, kind, options, every, listing_every)
SELECT 1, 'mailbox ' || n, 'eml', '{"path": "/mail"}', '5 min', '1 day' FROM generate_series(1, 10) n;

-- name: source_items
INSERT INTO source_item (source, scope, external, state, urn, title, error)
SELECT 1 + n %% 10, 1, 'INBOX;' || n, CASE WHEN n %% 100 = 0 THEN 'SET_ASIDE' ELSE 'INDEXED' END, 'mail:' || n, 'Mail ' || n,
       CASE WHEN n %% 100 = 0 THEN 'It is no mail.' END
  FROM generate_series(1, %(n)s) n;

-- name: links
INSERT INTO link (scope, hash, url, host, verdict, reason, state)
SELECT CASE WHEN n %% 5 = 0 THEN 2 + n %% %(clients)s ELSE 1 END, sha256(int8send(n)), 'https://host' || n %% 997 || '.example/' || n,
       'host' || n %% 997 || '.example', 'uncertain', 'nobody knows it', CASE WHEN n %% 3 = 0 THEN 'waiting' ELSE 'refused' END
  FROM generate_series(1, %(n)s) n;

-- name: imports
INSERT INTO data_import (id, scope, name, state, plan, hash, size, loaded, estimated_rows, estimated_tokens, estimated_cost, finished_at)
SELECT id, scope, 'table ' || id || '.csv', 'loaded', %(plan)s::jsonb, hash, 1, 1000, 1000, 1, 0, clock()
  FROM document WHERE id <= 100;

-- name: records
INSERT INTO data_records (scope, import, row, hash, whole, external_id, content, columns, embed, created_at, updated_at, category)
SELECT i.scope, i.id, n, md5(i.id || ' ' || n)::uuid, md5(n::text)::uuid, i.id || ':' || n, 'Record ' || n, '{"rating": "1"}', false,
       clock(), clock(), CASE WHEN n %% 10 = 0 THEN 'TOP_10' END
  FROM data_import i, generate_series(1, %(n)s / 100) n;

-- name: runs
INSERT INTO agent_run (scope, request, asked_by, state, fence, report, created_at, finished_at)
SELECT CASE WHEN n %% 5 = 0 THEN 2 + n %% %(clients)s ELSE 1 END, 'Answer mail ' || n, 'anna', 'completed', 1, 'Done.', clock(), clock()
  FROM generate_series(1, %(n)s) n;

-- name: questions
INSERT INTO agent_question (run, scope, key, kind, sentence, details, asked_at, answered_at, answered_by)
SELECT id, scope, '1', 'clarify', 'Which mill?', '{"reasons": [], "origins": [], "arguments": {}}', clock(),
       CASE WHEN id %% 100 > 0 THEN clock() END, CASE WHEN id %% 100 > 0 THEN 'anna' END
  FROM agent_run;

-- name: audit
INSERT INTO audit (scope, caller, role, action, subject, address)
SELECT CASE WHEN n %% 5 = 0 THEN 2 + n %% %(clients)s ELSE 1 END, 'key ' || n %% 50, 'manager', 'retry', 'task ' || n, '127.0.0.1'
  FROM generate_series(1, %(n)s) n;

-- name: alarms
INSERT INTO alarm (rule, subject, level, sentence, since, seen_at, fired_at, over_at)
SELECT 'queue-depth', 'bench-' || n, 'warning', 'Many tasks wait.', clock(), clock(), clock(), CASE WHEN n > 5 THEN clock() END
  FROM generate_series(1, 10000) n;
