-- What alarms ask about documents.

-- name: unread_scans
-- one page with text answers for its document, and the newest documents answer for all
SELECT d.scope, count(*)::int AS n, (array_agg(left(d.name, 80) ORDER BY d.id DESC))[1:3] AS names,
       (array_agg(d.id ORDER BY d.id DESC))[1:3] AS ids
  FROM (SELECT id, scope, name, completed_at FROM document WHERE completed_at IS NOT NULL ORDER BY id DESC LIMIT 500) d
 WHERE d.completed_at > clock() - interval '1 day'
   AND EXISTS (SELECT FROM page p WHERE p.document = d.id AND p.method = 'ocr' AND octet_length(p.text) < 4)
   AND NOT EXISTS (SELECT FROM page p WHERE p.document = d.id AND NOT (p.method = 'ocr' AND octet_length(p.text) < 4))
 GROUP BY d.scope ORDER BY d.scope;
