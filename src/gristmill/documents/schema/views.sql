-- How far documents, pages and chunks are.

-- An error without a fingerprint is the reason of a snooze: as long as nothing is decided, it is no trouble.
CREATE OR REPLACE FUNCTION trouble(status task_status, error text, failed boolean) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN failed OR status NOT IN ('pending', 'processing') THEN error END
$$;

-- What is shown of a phase that has come to its end: some of it was cancelled, or none of it applied.
CREATE OR REPLACE FUNCTION phase_status(status task_status, completed int, cancelled int) RETURNS task_status LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN status <> 'completed' THEN status
              WHEN cancelled > 0 THEN 'cancelled'
              WHEN completed = 0 THEN 'skipped'
              ELSE status END::task_status $$;

-- One row for each phase of each document, from counters. Labels, times and errors need a look elsewhere: they are looked up
-- only for those who select them. Units that were done before the document came have no tasks: they began when they ended.
CREATE VIEW phase_progress WITH (security_invoker) AS
SELECT p.document, p.name AS phase, p.ordinal, (SELECT k.label FROM phase_kind k WHERE k.name = p.name) AS label, p.unit, p.shown,
       p.task, phase_status(g.status, g.completed, g.cancelled) AS status,
       g.pending, g.processing, g.completed, g.failed, g.skipped, g.cancelled,
       g.pending + g.processing + g.completed + g.failed + g.skipped + g.cancelled AS total,
       coalesce((SELECT min(coalesce(x.claimed_at, t.started_at)) FROM task t LEFT JOIN ticket x USING (id) WHERE t.parent = p.task),
                CASE WHEN g.completed > 0 THEN g.finished_at END) AS started_at,
       g.finished_at,
       (SELECT t.error FROM task t WHERE t.parent = p.task AND t.outcome = 'failed' ORDER BY t.id LIMIT 1) AS error
  FROM phase p JOIN task_group g ON g.id = p.task;

-- One row for each document: how far it is, with an array for each thing that is known of the phases that are shown. From
-- counters, so that listing many is cheap; all phases of a document are looked up at once: one by one takes three times as
-- long. Arrays take a third of the time of JSON. A document that was written down as a whole (`index_document`) has no phases
-- of its own, and is complete.
--
-- What a phase shows is mostly its own status. But the first one shows that its document is being opened, or could not be; one
-- behind a hidden phase shows that the hidden one has failed; and of a document that was cancelled before, what was done is
-- cancelled, too. That is reckoned only for documents of which one of these may be true.
CREATE VIEW document_progress WITH (security_invoker) AS
SELECT d.id, d.name AS filename, c.client, c.project, d.urn, d.version, d.type, d.title, d.container, d.added_at, d.completed_at,
       CASE WHEN d.completed_at IS NOT NULL THEN 'completed'
            WHEN o.outcome = 'failed' THEN 'failed'
            WHEN a.processing > 0 THEN 'processing'
            WHEN o.outcome IS NULL AND d.opening <> 0 THEN CASE WHEN k.worker IS NULL THEN 'pending' ELSE 'processing' END
            WHEN a.pending > 0 THEN CASE WHEN a.done > 0 THEN 'processing' ELSE 'pending' END
            WHEN a.failed > 0 THEN 'failed'
            WHEN a.cancelled > 0 OR o.outcome = 'cancelled' THEN 'cancelled'
            WHEN (SELECT count(*) FROM task t WHERE t.owner = 'document:' || d.id AND t.outcome = 'failed'
                                                AND t.kind IN ('documents.seal', 'documents.finish')) > 0 THEN 'failed'
            ELSE 'processing' END::task_status AS status,
       d.pages AS total_pages, coalesce(a.chunks, w.chunks) AS total_chunks,
       coalesce(a.phases, ARRAY(SELECT s.name FROM phase_kind s WHERE s.shown ORDER BY s.ordinal)) AS phases,
       CASE WHEN a.known = 0 THEN ARRAY(SELECT s.written FROM phase_kind s WHERE s.shown ORDER BY s.ordinal)
            WHEN a.cancelled = 0 AND a.failed_hidden = 0
                 AND (o.outcome IN ('completed', 'skipped') OR o.outcome IS NULL AND k.worker IS NULL) THEN a.phase_status
            ELSE ARRAY(
              SELECT CASE WHEN p.is_first AND o.outcome IN ('failed', 'cancelled') THEN o.outcome
                          WHEN p.is_first AND o.outcome IS NULL AND k.worker IS NOT NULL THEN 'processing'
                          WHEN p.failed_before > 0 AND p.pending + p.processing = 0 THEN 'failed'
                          WHEN p.status IN ('completed', 'skipped') AND (p.cancelled_before > 0 OR o.outcome = 'cancelled') THEN 'cancelled'
                          ELSE p.status END
                FROM (SELECT q.shown, q.ordinal, q.status, q.pending, q.processing, lag(q.phase) OVER line IS NULL AS is_first,
                             CASE WHEN NOT lag(q.shown) OVER line THEN lag(q.failed) OVER line END AS failed_before,
                             sum(q.cancelled) OVER line - q.cancelled AS cancelled_before
                        FROM phase_progress q WHERE q.document = d.id WINDOW line AS (ORDER BY q.ordinal)) p
               WHERE p.shown ORDER BY p.ordinal) END AS phase_status,
       coalesce(a.phase_done, ARRAY(SELECT CASE s.unit WHEN 'page' THEN d.pages ELSE w.chunks END
                                      FROM phase_kind s WHERE s.shown ORDER BY s.ordinal)) AS phase_done,
       coalesce(a.phase_failed, ARRAY(SELECT 0 FROM phase_kind s WHERE s.shown)) AS phase_failed,
       (SELECT w.name FROM task t JOIN ticket x USING (id) JOIN worker w ON w.id = x.worker
         WHERE t.owner = 'document:' || d.id ORDER BY x.claimed_at DESC LIMIT 1) AS current_worker_id,
       (SELECT max(w.heartbeat_at) FROM task t JOIN ticket x USING (id) JOIN worker w ON w.id = x.worker
         WHERE t.owner = 'document:' || d.id) AS last_heartbeat,
       d.scope
  FROM document d
  JOIN scope c ON c.id = d.scope
  LEFT JOIN task o ON o.id = d.opening
  LEFT JOIN ticket k ON k.id = d.opening
  CROSS JOIN LATERAL (
    SELECT count(*) AS known, sum(p.pending) AS pending, sum(p.processing) AS processing, sum(p.failed) AS failed,
           sum(p.cancelled) AS cancelled, sum(p.completed + p.skipped) AS done,
           coalesce(sum(p.failed) FILTER (WHERE NOT p.shown), 0) AS failed_hidden,
           max(p.total) FILTER (WHERE p.unit = 'chunk') AS chunks,
           array_agg(p.phase ORDER BY p.ordinal) FILTER (WHERE p.shown) AS phases,
           array_agg(p.status ORDER BY p.ordinal) FILTER (WHERE p.shown) AS phase_status,
           array_agg(p.completed + p.skipped ORDER BY p.ordinal) FILTER (WHERE p.shown) AS phase_done,
           array_agg(p.failed ORDER BY p.ordinal) FILTER (WHERE p.shown) AS phase_failed
      FROM phase_progress p WHERE p.document = d.id) a
  CROSS JOIN LATERAL (SELECT count(*)::int AS chunks FROM chunk x WHERE a.known = 0 AND x.document = d.id) w;

-- The documents that could not be opened, or of which a page could not be read, each with its first error.
CREATE VIEW document_unreadable WITH (security_invoker) AS
SELECT d.id AS document, d.scope, d.urn, f.error
  FROM (SELECT owner, (array_agg(error ORDER BY id))[1] AS error FROM task
         WHERE died_at IS NOT NULL AND kind IN ('documents.open', 'ocr.read') AND owner ~ '^document:[0-9]{1,18}$'
         GROUP BY owner) f
  JOIN document d ON d.id = substr(f.owner, 10)::bigint;

-- `document_progress` as rows: one for each document and each phase that is shown. All phases of chunks have the chunks that are known as
-- their units: a phase gets its own one by one.
CREATE VIEW document_phase WITH (security_invoker) AS
SELECT p.id AS document, u.phase, k.ordinal, k.label, k.unit, u.status, u.done, u.failed,
       coalesce(CASE k.unit WHEN 'page' THEN p.total_pages ELSE p.total_chunks END, 0) AS total
  FROM document_progress p
 CROSS JOIN LATERAL unnest(p.phases, p.phase_status, p.phase_done, p.phase_failed) AS u (phase, status, done, failed)
  JOIN phase_kind k ON k.name = u.phase;

-- One row for each chunk and each phase of chunks.
CREATE VIEW chunk_phase WITH (security_invoker) AS
SELECT c.document, c.page, c.ordinal AS chunk, c.id, k.name AS phase, k.ordinal, k.label,
       coalesce(t.status, CASE WHEN d.task = 0 THEN k.written
                               WHEN EXISTS (SELECT FROM phase_kind e JOIN task x ON x.kind = e.kind
                                             WHERE e.unit = 'chunk' AND e.ordinal < k.ordinal AND x.outcome = 'cancelled'
                                               AND x.owner = 'document:' || c.document AND (x.payload ->> 'page')::int = c.page
                                               AND (x.payload ->> 'ordinal')::int = c.ordinal) THEN 'cancelled'
                               ELSE 'pending' END::task_status) AS status,
       t.worker, t.started_at, t.finished_at, trouble(t.status, t.error, t.fingerprint IS NOT NULL) AS error,
       greatest(t.attempts - 1, 0) AS retries, t.heartbeat_at
  FROM chunk c
  JOIN document d ON d.id = c.document
  JOIN phase_kind k ON k.unit = 'chunk' AND k.shown
  -- OFFSET 0 on purpose, here and below: the planner would otherwise read the tasks of all documents and join them
  LEFT JOIN LATERAL (
    SELECT x.* FROM tasks x
     WHERE x.owner = 'document:' || c.document AND x.kind = k.kind
       AND (x.payload ->> 'page')::int = c.page AND (x.payload ->> 'ordinal')::int = c.ordinal OFFSET 0) t ON true;

-- One row for each page and each phase that is shown. Of its chunks a page follows by the rules by which a group follows from
-- its children: the first start, the last end, all retries. Where a phase was skipped, the reason stands in place of an error:
-- that of its chunks, or why there are none.
CREATE VIEW page_phase WITH (security_invoker) AS
SELECT d.id AS document, n.number AS page, p.method, k.name AS phase, k.ordinal, k.label, k.unit, u.chunks,
       CASE WHEN k.unit = 'page' THEN coalesce(t.status, e.status, CASE d.task WHEN 0 THEN k.written ELSE 'pending' END)
            WHEN b.cancelled THEN 'cancelled'
            ELSE phase_status(group_status(coalesce(b.status IN ('completed', 'skipped') OR f.failed > 0, d.task = 0), u.pending,
                                           u.processing, u.completed, u.failed + f.failed, u.skipped, u.cancelled),
                              u.completed, u.cancelled)
            END::task_status AS status,
       CASE k.unit WHEN 'page' THEN trouble(t.status, t.error, t.fingerprint IS NOT NULL)
            ELSE coalesce(CASE WHEN k.ordinal = b.next AND NOT b.shown THEN b.error END, u.error,
                          CASE WHEN u.skipped = u.chunks THEN u.reason END,
                          CASE WHEN u.chunks = 0 AND b.status = 'completed' THEN b.reason END) END AS error,
       coalesce(t.worker, u.worker) AS worker, coalesce(t.started_at, e.at, u.started_at) AS started_at,
       coalesce(t.finished_at, e.at, u.finished_at) AS finished_at,
       CASE k.unit WHEN 'page' THEN greatest(t.attempts - 1, 0) ELSE u.retries END AS retries,
       coalesce(t.heartbeat_at, u.heartbeat_at) AS heartbeat_at
  FROM document d
 CROSS JOIN LATERAL generate_series(1, d.pages) AS n (number)
  LEFT JOIN page p ON p.document = d.id AND p.number = n.number
 -- the phases of the page as a whole: whether it was cancelled in one, why it has no text, and how the last one went, which
 -- makes its chunks
 CROSS JOIN LATERAL (
   SELECT bool_or(x.status = 'cancelled') AS cancelled, min(x.error) FILTER (WHERE x.status = 'skipped') AS reason,
          (array_agg(x.status ORDER BY s.ordinal DESC))[1] AS status, (array_agg(s.shown ORDER BY s.ordinal DESC))[1] AS shown,
          (array_agg(trouble(x.status, x.error, x.fingerprint IS NOT NULL) ORDER BY s.ordinal DESC))[1] AS error,
          (SELECT min(ordinal) FROM phase_kind WHERE unit = 'chunk') AS next
     FROM phase_kind s
     LEFT JOIN LATERAL (
       SELECT y.* FROM tasks y
        WHERE y.owner = 'document:' || d.id AND y.kind = s.kind
          AND (y.payload ->> 'page')::int = n.number AND (y.payload ->> 'ordinal')::int IS NULL OFFSET 0) x ON true
    WHERE s.unit = 'page') b
  JOIN phase_kind k ON k.shown
  LEFT JOIN LATERAL (
    SELECT x.* FROM tasks x
     WHERE k.unit = 'page' AND x.owner = 'document:' || d.id AND x.kind = k.kind
       AND (x.payload ->> 'page')::int = n.number AND (x.payload ->> 'ordinal')::int IS NULL OFFSET 0) t ON true
 -- a page that was read before its document came has no task in the first phase
  LEFT JOIN LATERAL (
    SELECT 'completed'::task_status AS status, d.added_at AS at
     WHERE d.opening = 0 AND d.task <> 0 AND p.number IS NOT NULL AND t.id IS NULL
       AND k.ordinal = (SELECT min(ordinal) FROM phase_kind)) e ON true
 CROSS JOIN LATERAL (SELECT coalesce(b.status = 'failed' AND NOT b.shown AND k.ordinal = b.next, false)::int AS failed) f
 CROSS JOIN LATERAL (
   SELECT count(*)::int AS chunks,
          count(*) FILTER (WHERE c.status = 'pending')::int AS pending,
          count(*) FILTER (WHERE c.status = 'processing')::int AS processing,
          count(*) FILTER (WHERE c.status = 'completed')::int AS completed,
          count(*) FILTER (WHERE c.status = 'skipped')::int AS skipped,
          count(*) FILTER (WHERE c.status = 'failed')::int AS failed,
          count(*) FILTER (WHERE c.status = 'cancelled')::int AS cancelled,
          min(c.error) FILTER (WHERE c.status <> 'skipped') AS error, min(c.error) FILTER (WHERE c.status = 'skipped') AS reason,
          max(c.worker) FILTER (WHERE c.status = 'processing') AS worker,
          min(c.started_at) AS started_at, max(c.finished_at) AS finished_at,
          coalesce(sum(c.retries), 0)::int AS retries, max(c.heartbeat_at) AS heartbeat_at
     FROM chunk_phase c
    WHERE k.unit = 'chunk' AND c.document = d.id AND c.page = n.number AND c.phase = k.name) u;

-- The three views below have the columns that the requirements name, for the phases that they name. They are made of the rows
-- above, which have all phases.

CREATE VIEW document_status WITH (security_invoker) AS
SELECT p.id, p.filename, p.client, p.project, p.urn, p.version, p.type, p.title, p.container, p.added_at, p.completed_at, p.status,
       p.total_pages,
       p.phase_status[n.ocr] AS ocr_status, p.phase_done[n.ocr] AS ocr_completed_pages, p.phase_failed[n.ocr] AS ocr_failed_pages,
       p.phase_status[n.vector] AS vector_index_status, p.total_chunks, p.phase_done[n.vector] AS vector_completed_chunks,
       p.phase_failed[n.vector] AS vector_failed_chunks,
       p.phase_status[n.graph] AS graphrag_index_status, p.phase_done[n.graph] AS graphrag_completed_chunks,
       p.phase_failed[n.graph] AS graphrag_failed_chunks,
       (SELECT q.started_at FROM phase_progress q WHERE q.document = p.id AND q.phase = 'ocr') AS ocr_started_at,
       (SELECT q.finished_at FROM phase_progress q WHERE q.document = p.id AND q.phase = 'ocr') AS ocr_completed_at,
       coalesce((SELECT o.error FROM document d JOIN task o ON o.id = d.opening WHERE d.id = p.id AND o.outcome = 'failed'),
                (SELECT q.error FROM phase_progress q WHERE q.document = p.id AND q.phase = 'ocr')) AS ocr_error,
       (SELECT q.started_at FROM phase_progress q WHERE q.document = p.id AND q.phase = 'vector') AS vector_started_at,
       (SELECT q.finished_at FROM phase_progress q WHERE q.document = p.id AND q.phase = 'vector') AS vector_completed_at,
       (SELECT q.error FROM phase_progress q WHERE q.document = p.id AND q.phase IN ('split', 'vector') AND q.failed > 0
         ORDER BY q.ordinal LIMIT 1) AS vector_error,
       (SELECT q.started_at FROM phase_progress q WHERE q.document = p.id AND q.phase = 'graph') AS graphrag_started_at,
       (SELECT q.finished_at FROM phase_progress q WHERE q.document = p.id AND q.phase = 'graph') AS graphrag_completed_at,
       (SELECT q.error FROM phase_progress q WHERE q.document = p.id AND q.phase = 'graph') AS graphrag_error,
       p.current_worker_id, p.last_heartbeat, p.scope
  FROM document_progress p
 CROSS JOIN LATERAL (SELECT array_position(p.phases, 'ocr') AS ocr, array_position(p.phases, 'vector') AS vector,
                            array_position(p.phases, 'graph') AS graph) n;

-- How much was drawn from a chunk is counted only for those who select it; what somebody stated of it was not drawn from it.
CREATE VIEW chunk_status WITH (security_invoker) AS
SELECT c.id, c.document AS document_id, c.page AS page_number, c.ordinal AS chunk_index, c.hash AS chunk_content_hash,
       c.start, c.stop, c.tokens, c.heading,
       v.status AS vector_status, v.worker AS vector_worker_id, v.started_at AS vector_started_at,
       v.finished_at AS vector_completed_at, v.error AS vector_error, v.retries AS vector_retry_count,
       v.heartbeat_at AS vector_last_heartbeat,
       g.status AS graphrag_status, g.worker AS graphrag_worker_id, g.started_at AS graphrag_started_at,
       g.finished_at AS graphrag_completed_at, g.error AS graphrag_error, g.retries AS graphrag_retry_count,
       g.heartbeat_at AS graphrag_last_heartbeat,
       (SELECT count(*)::int FROM mention m WHERE m.chunk = c.id AND m.count > 0) AS entities_extracted,
       (SELECT count(*)::int FROM relation r WHERE r.chunk = c.id AND r.extracted) AS relationships_extracted
  FROM chunk c
  LEFT JOIN chunk_phase v ON v.id = c.id AND v.phase = 'vector'
  LEFT JOIN chunk_phase g ON g.id = c.id AND g.phase = 'graph';

CREATE VIEW page_status WITH (security_invoker) AS
SELECT o.document AS document_id, o.page AS page_number, (o.ocr).method AS ocr_method,
       (o.ocr).status AS ocr_status, (o.ocr).worker AS ocr_worker_id, (o.ocr).started_at AS ocr_started_at,
       (o.ocr).finished_at AS ocr_completed_at, (o.ocr).error AS ocr_error, (o.ocr).retries AS ocr_retry_count,
       (o.ocr).heartbeat_at AS ocr_last_heartbeat,
       (o.vector).chunks AS chunk_count,
       (o.vector).status AS vector_status, (o.vector).error AS vector_error, (o.vector).worker AS vector_worker_id,
       (o.vector).started_at AS vector_started_at, (o.vector).finished_at AS vector_completed_at,
       (o.vector).retries AS vector_retry_count, (o.vector).heartbeat_at AS vector_last_heartbeat,
       (o.graph).status AS graphrag_status, (o.graph).error AS graphrag_error, (o.graph).worker AS graphrag_worker_id,
       (o.graph).started_at AS graphrag_started_at, (o.graph).finished_at AS graphrag_completed_at,
       (o.graph).retries AS graphrag_retry_count, (o.graph).heartbeat_at AS graphrag_last_heartbeat
  FROM (SELECT p.document, p.page, (array_agg(p) FILTER (WHERE p.phase = 'ocr'))[1] AS ocr,
               (array_agg(p) FILTER (WHERE p.phase = 'vector'))[1] AS vector, (array_agg(p) FILTER (WHERE p.phase = 'graph'))[1] AS graph
          FROM page_phase p GROUP BY p.document, p.page) o;
