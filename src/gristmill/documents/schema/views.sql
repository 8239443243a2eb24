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

CREATE VIEW phase_progress WITH (security_invoker) AS
SELECT p.document, p.name AS phase, p.ordinal, p.task, phase_status(g.status, g.completed, g.cancelled) AS status,
       g.pending, g.processing, g.completed, g.failed, g.skipped, g.cancelled,
       g.pending + g.processing + g.completed + g.failed + g.skipped + g.cancelled AS total, g.finished_at
  FROM phase p JOIN task_group g ON g.id = p.task;

-- How far each document is: from counters, so that listing many is cheap. What needs a look at single tasks (errors,
-- times, workers) is computed only for those who select it. All phases of a document are looked up at once: one by one
-- takes three times as long. What was written down as a whole (`index_document`) has no phases, and is complete.
CREATE VIEW document_progress WITH (security_invoker) AS
SELECT d.id, d.name AS filename, c.client, c.project, d.urn, d.version, d.type, d.title, d.container, d.added_at, d.completed_at,
       CASE WHEN d.completed_at IS NOT NULL THEN 'completed'
            WHEN o.outcome = 'failed' THEN 'failed'
            WHEN a.processing > 0 THEN 'processing'
            WHEN o.outcome IS NULL THEN CASE WHEN k.worker IS NULL THEN 'pending' ELSE 'processing' END
            WHEN a.pending > 0 THEN CASE WHEN (a.ocr).completed + (a.ocr).skipped > 0 THEN 'processing' ELSE 'pending' END
            WHEN a.failed > 0 THEN 'failed'
            WHEN a.cancelled > 0 OR o.outcome = 'cancelled' THEN 'cancelled'
            WHEN (SELECT count(*) FROM task t WHERE t.owner = 'document:' || d.id AND t.outcome = 'failed'
                                                AND t.kind IN ('documents.seal', 'documents.finish')) > 0 THEN 'failed'
            ELSE 'processing' END::task_status AS status,
       d.pages AS total_pages,
       CASE WHEN o.outcome IN ('failed', 'cancelled') THEN o.outcome WHEN o.outcome IS NULL AND k.worker IS NOT NULL THEN 'processing'
            ELSE coalesce((a.ocr).status, 'skipped') END AS ocr_status,
       coalesce((a.ocr).completed + (a.ocr).skipped, d.pages) AS ocr_completed_pages, coalesce((a.ocr).failed, 0) AS ocr_failed_pages,
       CASE WHEN (a.split).failed > 0 AND (a.vector).pending + (a.vector).processing = 0 THEN 'failed'
            WHEN (a.vector).status IN ('completed', 'skipped') AND (o.outcome = 'cancelled' OR (a.ocr).cancelled + (a.split).cancelled > 0)
            THEN 'cancelled'
            ELSE coalesce((a.vector).status, 'completed') END AS vector_index_status,
       coalesce((a.vector).total, w.chunks) AS total_chunks,
       coalesce((a.vector).completed + (a.vector).skipped, w.chunks) AS vector_completed_chunks, coalesce((a.vector).failed, 0) AS vector_failed_chunks,
       CASE WHEN (a.graph).status IN ('completed', 'skipped') AND (o.outcome = 'cancelled' OR a.cancelled > 0) THEN 'cancelled'
            ELSE coalesce((a.graph).status, 'skipped') END AS graphrag_index_status,
       coalesce((a.graph).completed + (a.graph).skipped, w.chunks) AS graphrag_completed_chunks, coalesce((a.graph).failed, 0) AS graphrag_failed_chunks,
       (SELECT min(coalesce(x.claimed_at, t.started_at)) FROM task t LEFT JOIN ticket x USING (id) WHERE t.parent = (a.ocr).task) AS ocr_started_at,
       (a.ocr).finished_at AS ocr_completed_at,
       coalesce(CASE WHEN o.outcome = 'failed' THEN o.error END,
                (SELECT t.error FROM task t WHERE t.parent = (a.ocr).task AND t.outcome = 'failed' ORDER BY t.id LIMIT 1)) AS ocr_error,
       (SELECT min(coalesce(x.claimed_at, t.started_at)) FROM task t LEFT JOIN ticket x USING (id) WHERE t.parent = (a.vector).task) AS vector_started_at,
       (a.vector).finished_at AS vector_completed_at,
       (SELECT t.error FROM task t WHERE t.parent IN ((a.split).task, (a.vector).task) AND t.outcome = 'failed' ORDER BY t.id LIMIT 1) AS vector_error,
       (SELECT min(coalesce(x.claimed_at, t.started_at)) FROM task t LEFT JOIN ticket x USING (id) WHERE t.parent = (a.graph).task) AS graphrag_started_at,
       (a.graph).finished_at AS graphrag_completed_at,
       (SELECT t.error FROM task t WHERE t.parent = (a.graph).task AND t.outcome = 'failed' ORDER BY t.id LIMIT 1) AS graphrag_error,
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
    SELECT (array_agg(p) FILTER (WHERE p.phase = 'ocr'))[1] AS ocr, (array_agg(p) FILTER (WHERE p.phase = 'split'))[1] AS split,
           (array_agg(p) FILTER (WHERE p.phase = 'vector'))[1] AS vector, (array_agg(p) FILTER (WHERE p.phase = 'graph'))[1] AS graph,
           sum(p.pending) AS pending, sum(p.processing) AS processing, sum(p.failed) AS failed, sum(p.cancelled) AS cancelled
      FROM phase_progress p WHERE p.document = d.id) a
  CROSS JOIN LATERAL (SELECT count(*)::int AS chunks FROM chunk x WHERE (a.vector).task IS NULL AND x.document = d.id) w;

-- What somebody stated of a chunk was not extracted from it. The counts are made only for those who select them.
CREATE VIEW chunk_status WITH (security_invoker) AS
SELECT c.id, c.document AS document_id, c.page AS page_number, c.ordinal AS chunk_index, c.hash AS chunk_content_hash,
       c.start, c.stop, c.tokens, c.heading,
       coalesce(v.status, CASE d.task WHEN 0 THEN 'completed' ELSE 'pending' END::task_status) AS vector_status, v.worker AS vector_worker_id, v.started_at AS vector_started_at,
       v.finished_at AS vector_completed_at, trouble(v.status, v.error, v.fingerprint IS NOT NULL) AS vector_error, greatest(v.attempts - 1, 0) AS vector_retry_count,
       v.heartbeat_at AS vector_last_heartbeat,
       coalesce(g.status, CASE WHEN d.task = 0 THEN 'skipped' WHEN v.status = 'cancelled' THEN 'cancelled' ELSE 'pending' END::task_status) AS graphrag_status, g.worker AS graphrag_worker_id, g.started_at AS graphrag_started_at,
       g.finished_at AS graphrag_completed_at, trouble(g.status, g.error, g.fingerprint IS NOT NULL) AS graphrag_error, greatest(g.attempts - 1, 0) AS graphrag_retry_count,
       g.heartbeat_at AS graphrag_last_heartbeat,
       (SELECT count(*)::int FROM mention m WHERE m.chunk = c.id AND m.count > 0) AS entities_extracted,
       (SELECT count(*)::int FROM relation r WHERE r.chunk = c.id AND r.extracted) AS relationships_extracted
  FROM chunk c
  JOIN document d ON d.id = c.document
  LEFT JOIN tasks v ON v.owner = 'document:' || c.document AND v.kind = 'vector.embed'
                   AND (v.payload ->> 'page')::int = c.page AND (v.payload ->> 'ordinal')::int = c.ordinal
  LEFT JOIN tasks g ON g.owner = 'document:' || c.document AND g.kind = 'graph.build'
                   AND (g.payload ->> 'page')::int = c.page AND (g.payload ->> 'ordinal')::int = c.ordinal;

-- A page's later phases follow from its chunks, by the rules by which a group follows from its children. Where they are
-- skipped, the reason stands in place of an error: that of its chunks, or why there are none.
CREATE VIEW page_status WITH (security_invoker) AS
SELECT d.id AS document_id, n.number AS page_number, p.method AS ocr_method,
       coalesce(t.status, CASE d.task WHEN 0 THEN 'skipped' ELSE 'pending' END::task_status) AS ocr_status, t.worker AS ocr_worker_id, t.started_at AS ocr_started_at,
       t.finished_at AS ocr_completed_at, trouble(t.status, t.error, t.fingerprint IS NOT NULL) AS ocr_error, greatest(t.attempts - 1, 0) AS ocr_retry_count,
       t.heartbeat_at AS ocr_last_heartbeat,
       u.chunk_count,
       CASE WHEN 'cancelled' IN (t.status, s.status) THEN 'cancelled'
            ELSE phase_status(group_status(coalesce(s.status IN ('completed', 'skipped', 'failed'), d.task = 0), u.vp, u.vr, u.vc,
                                           u.vf + coalesce(s.status = 'failed', false)::int, u.vs, u.vx), u.vc, u.vx)
            END AS vector_status,
       coalesce(trouble(s.status, s.error, s.fingerprint IS NOT NULL), u.vector_error, b.reason) AS vector_error, u.vector_worker_id, u.vector_started_at, u.vector_completed_at,
       u.vector_retry_count, u.vector_last_heartbeat,
       CASE WHEN 'cancelled' IN (t.status, s.status) THEN 'cancelled'
            ELSE phase_status(group_status(coalesce(s.status IN ('completed', 'skipped'), d.task = 0), u.gp, u.gr, u.gc, u.gf, u.gs, u.gx),
                              u.gc, u.gx)
            END AS graphrag_status,
       coalesce(u.graphrag_error, CASE WHEN u.gs = u.chunk_count THEN u.skipped_because END, b.reason) AS graphrag_error, u.graphrag_worker_id, u.graphrag_started_at, u.graphrag_completed_at, u.graphrag_retry_count,
       u.graphrag_last_heartbeat
  FROM document d
 CROSS JOIN LATERAL generate_series(1, d.pages) AS n (number)
  LEFT JOIN page p ON p.document = d.id AND p.number = n.number
  LEFT JOIN tasks t ON t.owner = 'document:' || d.id AND t.kind = 'ocr.read'
                   AND (t.payload ->> 'page')::int = n.number AND (t.payload ->> 'ordinal')::int IS NULL
  LEFT JOIN tasks s ON s.owner = 'document:' || d.id AND s.kind = 'vector.split'
                   AND (s.payload ->> 'page')::int = n.number AND (s.payload ->> 'ordinal')::int IS NULL
 CROSS JOIN LATERAL (
   SELECT count(*)::int AS chunk_count,
          count(*) FILTER (WHERE vector_status = 'pending')::int AS vp,
          count(*) FILTER (WHERE vector_status = 'processing')::int AS vr,
          count(*) FILTER (WHERE vector_status = 'completed')::int AS vc,
          count(*) FILTER (WHERE vector_status = 'skipped')::int AS vs,
          count(*) FILTER (WHERE vector_status = 'failed')::int AS vf,
          count(*) FILTER (WHERE vector_status = 'cancelled')::int AS vx, min(vector_error) AS vector_error,
          max(vector_worker_id) FILTER (WHERE vector_status = 'processing') AS vector_worker_id,
          min(vector_started_at) AS vector_started_at, max(vector_completed_at) AS vector_completed_at,
          coalesce(sum(vector_retry_count), 0)::int AS vector_retry_count,
          max(vector_last_heartbeat) AS vector_last_heartbeat,
          count(*) FILTER (WHERE graphrag_status = 'pending')::int AS gp,
          count(*) FILTER (WHERE graphrag_status = 'processing')::int AS gr,
          count(*) FILTER (WHERE graphrag_status = 'completed')::int AS gc,
          count(*) FILTER (WHERE graphrag_status = 'skipped')::int AS gs,
          count(*) FILTER (WHERE graphrag_status = 'failed')::int AS gf,
          count(*) FILTER (WHERE graphrag_status = 'cancelled')::int AS gx,
          min(graphrag_error) FILTER (WHERE graphrag_status = 'failed') AS graphrag_error,
          min(graphrag_error) FILTER (WHERE graphrag_status = 'skipped') AS skipped_because,
          max(graphrag_worker_id) FILTER (WHERE graphrag_status = 'processing') AS graphrag_worker_id,
          min(graphrag_started_at) AS graphrag_started_at, max(graphrag_completed_at) AS graphrag_completed_at,
          coalesce(sum(graphrag_retry_count), 0)::int AS graphrag_retry_count,
          max(graphrag_last_heartbeat) AS graphrag_last_heartbeat
     FROM chunk_status c WHERE c.document_id = d.id AND c.page_number = n.number) u
 CROSS JOIN LATERAL (SELECT CASE WHEN u.chunk_count = 0 AND s.status = 'completed' AND t.status = 'skipped' THEN t.error END AS reason) b;
