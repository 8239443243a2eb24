-- Families of documents, and which of their members are read.

-- name: families
-- up to the document that lies in no other, or in a mailbox; then down to all that lies in it, or is kept for it from the
-- version before
WITH RECURSIVE above AS (
  SELECT d.id, d.container FROM document d WHERE d.id = ANY (%(ids)s::bigint[])
  UNION
  SELECT c.id, c.container FROM above a JOIN document c ON c.id = a.container AND c.type IS DISTINCT FROM 'mailbox'
), roots AS (
  SELECT a.id FROM above a JOIN document d ON d.id = a.id AND d.type IS DISTINCT FROM 'mailbox'
    LEFT JOIN document c ON c.id = a.container
   WHERE a.container IS NULL OR c.type = 'mailbox'
), inside AS (
  SELECT id AS root, id, 0 AS depth FROM roots
  UNION ALL
  SELECT i.root, p.id, i.depth + 1
    FROM inside i
   CROSS JOIN LATERAL (
     SELECT d.id FROM document d WHERE d.container = i.id AND d.task <> 0  -- a text that was made of it says nothing new
     UNION
     SELECT n.id FROM kept_part k
      CROSS JOIN LATERAL (SELECT x.id FROM document x WHERE x.scope = k.scope AND x.urn = k.urn ORDER BY x.version DESC LIMIT 1) n
      WHERE k.container = i.id) p
)
SELECT i.root, i.depth, d.id, d.scope, d.urn, d.version, d.name, d.type, d.title, d.meta, d.written_at, d.added_at,
       CASE WHEN d.task = 0 THEN 'read'
            WHEN o.outcome IN ('failed', 'cancelled') OR g.status IN ('failed', 'cancelled') THEN 'failed'
            WHEN g.status = 'completed' THEN 'read'
            ELSE 'unread' END AS state,
       CASE WHEN o.outcome IN ('failed', 'cancelled') THEN o.error
            WHEN g.status IN ('failed', 'cancelled') THEN
              (SELECT t.error FROM task t WHERE t.parent = p.task AND t.outcome IN ('failed', 'cancelled') ORDER BY t.id LIMIT 1) END AS error,
       (SELECT count(*)::int FROM page x WHERE x.document = d.id) AS pages,
       EXISTS (SELECT FROM document n LEFT JOIN phase np ON np.document = n.id AND np.ordinal = p.ordinal
                 LEFT JOIN task_group ng ON ng.id = np.task
                WHERE n.scope = d.scope AND n.urn = d.urn AND n.version > d.version
                  AND (n.task = 0 OR ng.status = 'completed')) AS replaced
  FROM inside i
  JOIN document d ON d.id = i.id
  LEFT JOIN task o ON o.id = d.opening
  LEFT JOIN LATERAL (SELECT task, ordinal FROM phase WHERE document = d.id ORDER BY ordinal LIMIT 1) p ON true
  LEFT JOIN task_group g ON g.id = p.task
 ORDER BY i.root, i.depth, d.version, d.id;

-- name: unreadable
SELECT owner, died_at FROM task
 WHERE died_at > %(since)s AND kind = ANY (%(kinds)s::text[]) AND owner IS NOT NULL
 ORDER BY died_at LIMIT %(limit)s;
