-- Listing documents costs what is listed, however many there are.

CREATE INDEX document_by_scope ON document (scope, id);
CREATE INDEX document_incomplete ON document (id) WHERE completed_at IS NULL;

-- How far each document is: from counters, so that listing many is cheap. What needs a look at single tasks (errors,
-- times, workers) is computed only for those who select it. OFFSET 0: by itself, the planner would count the phases of all
-- documents to show those of a few.
CREATE OR REPLACE VIEW document_progress AS
SELECT d.id, d.name AS filename, s.client, s.project, d.urn, d.version, d.type, d.title, d.container, d.added_at, d.completed_at,
       CASE WHEN d.completed_at IS NOT NULL THEN 'completed'
            WHEN o.outcome = 'failed' THEN 'failed'
            WHEN r.processing + v.processing + g.processing > 0 THEN 'processing'
            WHEN o.outcome IS NULL THEN CASE WHEN k.worker IS NULL THEN 'pending' ELSE 'processing' END
            WHEN r.pending + v.pending + g.pending > 0 THEN CASE WHEN r.completed + r.skipped > 0 THEN 'processing' ELSE 'pending' END
            WHEN r.failed + v.failed + g.failed > 0 THEN 'failed'
            WHEN r.cancelled + v.cancelled + g.cancelled > 0 OR o.outcome = 'cancelled' THEN 'cancelled'
            ELSE 'processing' END::task_status AS status,
       d.pages AS total_pages,
       CASE WHEN o.outcome = 'failed' THEN 'failed' WHEN o.outcome IS NULL AND k.worker IS NOT NULL THEN 'processing'
            ELSE r.status END AS ocr_status,
       r.completed + r.skipped AS ocr_completed_pages, r.failed AS ocr_failed_pages,
       v.status AS vector_index_status, v.total AS total_chunks,
       v.completed + v.skipped AS vector_completed_chunks, v.failed AS vector_failed_chunks,
       g.status AS graphrag_index_status, g.completed + g.skipped AS graphrag_completed_chunks, g.failed AS graphrag_failed_chunks,
       (SELECT min(coalesce(x.claimed_at, t.started_at)) FROM task t LEFT JOIN ticket x USING (id) WHERE t.parent = r.task) AS ocr_started_at,
       r.finished_at AS ocr_completed_at,
       coalesce(CASE WHEN o.outcome = 'failed' THEN o.error END,
                (SELECT t.error FROM task t WHERE t.parent = r.task AND t.outcome = 'failed' ORDER BY t.id LIMIT 1)) AS ocr_error,
       (SELECT min(coalesce(x.claimed_at, t.started_at)) FROM task t LEFT JOIN ticket x USING (id) WHERE t.parent = v.task) AS vector_started_at,
       v.finished_at AS vector_completed_at,
       (SELECT t.error FROM task t WHERE t.parent = v.task AND t.outcome = 'failed' ORDER BY t.id LIMIT 1) AS vector_error,
       (SELECT min(coalesce(x.claimed_at, t.started_at)) FROM task t LEFT JOIN ticket x USING (id) WHERE t.parent = g.task) AS graphrag_started_at,
       g.finished_at AS graphrag_completed_at,
       (SELECT t.error FROM task t WHERE t.parent = g.task AND t.outcome = 'failed' ORDER BY t.id LIMIT 1) AS graphrag_error,
       (SELECT w.name FROM task t JOIN ticket x USING (id) JOIN worker w ON w.id = x.worker
         WHERE t.owner = 'document:' || d.id ORDER BY x.claimed_at DESC LIMIT 1) AS current_worker_id,
       (SELECT max(w.heartbeat_at) FROM task t JOIN ticket x USING (id) JOIN worker w ON w.id = x.worker
         WHERE t.owner = 'document:' || d.id) AS last_heartbeat,
       d.scope
  FROM document d
  JOIN scope s ON s.id = d.scope
  JOIN task o ON o.id = d.opening
  LEFT JOIN ticket k ON k.id = d.opening
  CROSS JOIN LATERAL (SELECT * FROM phase_progress WHERE document = d.id AND phase = 'ocr' OFFSET 0) r
  CROSS JOIN LATERAL (SELECT * FROM phase_progress WHERE document = d.id AND phase = 'vector' OFFSET 0) v
  CROSS JOIN LATERAL (SELECT * FROM phase_progress WHERE document = d.id AND phase = 'graph' OFFSET 0) g;
