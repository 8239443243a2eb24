-- The statements of documents: versions of sources, their pages and phases, and how far they are.

-- name: lock_sources
-- whoever adds a version of a source keeps others from doing so
SELECT pg_advisory_xact_lock(hashtextextended(urn, scope)) FROM unnest(%(scopes)s::int[], %(urns)s::text[]) AS s (scope, urn);

-- name: latest
SELECT l.*
  FROM unnest(%(scopes)s::int[], %(urns)s::text[]) AS s (scope, urn)
 CROSS JOIN LATERAL (
   SELECT d.scope, d.urn, d.id, d.version, d.hash, d.completed_at, d.given,
          b.size = 0 OR EXISTS (SELECT FROM blob_piece p WHERE p.blob = b.id) AS has_bytes,
          c.version AS container_version, c.hash AS container_hash
     FROM document d JOIN blob b ON b.hash = d.hash LEFT JOIN document c ON c.id = d.container
    WHERE d.scope = s.scope AND d.urn = s.urn
    ORDER BY d.version DESC LIMIT 1) l;

-- name: reserve_documents
SELECT reserve_documents(%(n)s);

-- name: copy_documents
COPY document (id, scope, urn, version, hash, container, name, given, type, title, written_at, meta, pages, task, opening) FROM STDIN;

-- name: insert_documents
INSERT INTO document (id, scope, urn, version, hash, container, name, given, type, title, written_at, meta, pages, task, opening)
OVERRIDING SYSTEM VALUE
SELECT id, scope, urn, version, hash, container, name, (given #>> '{}')::jsonb, type, title, written_at, (meta #>> '{}')::jsonb,
       pages, task, opening
  FROM json_populate_recordset(NULL::document, %(rows)s::json);

-- name: add_phases
INSERT INTO phase (document, ordinal, name, unit, shown, scope, task)
SELECT p.document, k.ordinal, k.name, k.unit, k.shown, p.scope, p.task
  FROM unnest(%(documents)s::bigint[], %(scopes)s::int[], %(ordinals)s::smallint[], %(tasks)s::bigint[])
         AS p (document, scope, ordinal, task)
  JOIN phase_kind k USING (ordinal);

-- name: copy_pages
COPY page (document, number, scope, method, text, key, words) FROM STDIN;

-- name: insert_pages
INSERT INTO page (document, number, scope, method, text, key, words)
SELECT document, number, scope, method, text, key, words FROM json_populate_recordset(NULL::page, %(rows)s::json);

-- name: describe
-- the same bytes, of which the source says something else; the metadata that it gave before goes first
UPDATE document
   SET given = %(given)s::jsonb,
       meta = (meta - ARRAY(SELECT jsonb_object_keys(coalesce(given -> 'metadata', '{}'))))
              || coalesce(%(given)s::jsonb -> 'metadata', '{}'),
       written_at = coalesce((%(given)s::jsonb ->> 'written_at')::timestamptz, written_at)
 WHERE id = %(id)s;

-- name: find_containers
SELECT d.id, d.scope, s.client, s.project, d.version, d.hash
  FROM document d JOIN scope s ON s.id = d.scope WHERE d.id = ANY (%(ids)s);

-- name: versions
SELECT id FROM document WHERE scope = %(scope)s AND urn = %(urn)s ORDER BY id;

-- name: documents
SELECT d.id, d.scope, s.client, s.project, d.urn, d.version, d.hash, b.size, d.container, d.name, d.type, d.title, d.meta,
       d.given, d.pages, d.task,
       coalesce(o.foreground, false) AS foreground, coalesce(o.priority, 0) AS priority,
       (WITH RECURSIVE above AS (
          SELECT d.container AS id UNION ALL
          SELECT c.container FROM above a JOIN document c ON c.id = a.id)
        SELECT count(id)::int FROM above) AS depth,
       (SELECT coalesce(jsonb_agg(jsonb_build_array(p.name, p.task, k.kind) ORDER BY p.ordinal), '[]')
          FROM phase p JOIN phase_kind k USING (name) WHERE p.document = d.id) AS phases
  FROM document d
  JOIN scope s ON s.id = d.scope
  JOIN blob b ON b.hash = d.hash
  -- one that was read before it came has no opening: its group says how urgent it is
  LEFT JOIN task o ON o.id = CASE d.opening WHEN 0 THEN d.task ELSE d.opening END
 WHERE d.id = ANY (%(ids)s);

-- name: save_inspection
UPDATE document
   SET type = %(type)s, title = coalesce(given ->> 'title', %(title)s),
       meta = %(meta)s::jsonb || coalesce(given -> 'metadata', '{}'),
       written_at = coalesce((given ->> 'written_at')::timestamptz, %(written_at)s), pages = %(pages)s
 WHERE id = %(id)s;

-- name: set_opening
UPDATE document SET opening = %(opening)s WHERE id = %(id)s;

-- name: dead_ends
-- what should have sealed a phase or finished it, and belongs to no group
SELECT id FROM task WHERE owner = %(owner)s AND kind = ANY (%(kinds)s) AND outcome = 'failed';

-- name: unit_tasks
-- the tasks about one page, or one chunk of it, that ended badly
SELECT id FROM task
 WHERE owner = %(owner)s AND kind = ANY (%(kinds)s) AND (payload ->> 'page')::int = %(page)s
   AND (%(ordinal)s::int IS NULL OR (payload ->> 'ordinal')::int = %(ordinal)s::int) AND outcome IN ('failed', 'cancelled')
 ORDER BY id;

-- name: find_pages
-- one look into the index for each, however many pages are alike; a range of one value, so that it is always the index
SELECT k.key, p.text, p.method, coalesce(p.words, '') AS words
  FROM unnest(%(keys)s::bytea[]) AS k (key)
 CROSS JOIN LATERAL (SELECT text, method, words FROM page WHERE key >= k.key AND key <= k.key ORDER BY key LIMIT 1) p;

-- name: load_texts
SELECT p.document, p.number, p.text
  FROM unnest(%(documents)s::bigint[], %(numbers)s::int[]) AS u (document, number) JOIN page p USING (document, number);

-- name: save_page
-- many at a time, each of them once: the last word on a page counts
INSERT INTO page (document, number, scope, method, text, key, words)
SELECT DISTINCT ON (document, number) document, number, scope, method, text, key, nullif(words, '')
  FROM unnest(%(document)b::bigint[], %(number)b::int[], %(scope)b::int[], %(method)b::text[], %(text)b::text[],
              %(key)b::bytea[], %(words)b::bytea[])
       WITH ORDINALITY AS p (document, number, scope, method, text, key, words, n)
 ORDER BY document, number, n DESC
ON CONFLICT (document, number) DO UPDATE
   SET method = excluded.method, text = excluded.text, key = excluded.key, words = excluded.words;

-- name: set_divided
UPDATE page SET divided = %(key)s WHERE document = %(document)s AND number = %(number)s;

-- name: find_divided
-- in one statement: a page that goes meanwhile goes with all of its chunks. The index is asked as above.
SELECT k.key, c.start, c.stop, c.kind, c.language, c.heading, c.text, c.tokens, c.hash
  FROM unnest(%(keys)s::bytea[]) AS k (key)
 CROSS JOIN LATERAL (
   SELECT document, number FROM page WHERE divided >= k.key AND divided <= k.key ORDER BY divided LIMIT 1) p
  LEFT JOIN chunk c ON c.document = p.document AND c.page = p.number
 ORDER BY c.document, c.page, c.ordinal;

-- name: was_cancelled
-- a group is completed also if some of its children were cancelled
SELECT EXISTS (SELECT FROM task_group WHERE id = ANY (%(groups)s) AND cancelled > 0);

-- name: complete
UPDATE document SET completed_at = clock() WHERE id = %(id)s AND completed_at IS NULL RETURNING id;

-- name: older_versions
SELECT o.id FROM document d JOIN document o ON o.scope = d.scope AND o.urn = d.urn AND o.version < d.version
 WHERE d.id = %(id)s ORDER BY o.id;

-- name: hold_document
SELECT FROM document WHERE id = %(id)s FOR KEY SHARE;

-- name: keep_part
INSERT INTO kept_part (container, urn, scope) VALUES (%(container)s, %(urn)s, %(scope)s);

-- name: hand_over
-- A part that is the same in the newer version of its container stays, and one that is not until its own newer version is
-- whole, too.
UPDATE document o SET container = %(id)s
 WHERE o.container = ANY (%(older)s)
   AND (EXISTS (SELECT FROM kept_part k WHERE k.container = %(id)s AND k.urn = o.urn)
        OR EXISTS (SELECT FROM document n WHERE n.scope = o.scope AND n.urn = o.urn AND n.version > o.version
                                            AND n.container = %(id)s AND n.completed_at IS NULL));

-- name: settle_parts
-- whether all that it was to keep is there, of which nothing needs to be known any more
WITH kept AS (DELETE FROM kept_part WHERE container = %(id)s RETURNING container, urn)
SELECT NOT EXISTS (SELECT FROM kept k WHERE NOT EXISTS (
  SELECT FROM document d WHERE d.scope = %(scope)s AND d.urn = k.urn AND d.container = k.container));

-- name: with_parts
-- documents and everything that lies in them, the innermost first
WITH RECURSIVE inner_ AS (
  SELECT id, 0 AS depth FROM document WHERE id = ANY (%(ids)s)
  UNION ALL
  SELECT d.id, i.depth + 1 FROM inner_ i JOIN document d ON d.container = i.id
)
SELECT id FROM inner_ GROUP BY id ORDER BY max(depth) DESC, id;

-- name: parts_within
-- what people brought in these documents; without the texts that were made of them
WITH RECURSIVE inner_ AS (
  SELECT d.id FROM document d WHERE d.container = ANY (%(ids)s) AND d.task <> 0
  UNION
  SELECT d.id FROM inner_ i JOIN document d ON d.container = i.id AND d.task <> 0
)
SELECT id FROM inner_ WHERE id <> ALL (%(ids)s) ORDER BY id;

-- name: contents
SELECT (SELECT count(*)::int FROM page WHERE document = ANY (%(ids)s)) AS pages,
       (SELECT coalesce(array_agg(id), '{}') FROM chunk WHERE document = ANY (%(ids)s)) AS chunks;

-- name: count_tasks
SELECT count(*)::int FROM task WHERE owner = ANY (%(owners)s);

-- name: delete_documents
-- Of those that another removed meanwhile, nothing is told. Notes about others are not counted, since no list names them, unless
-- one of them is itself what is removed.
WITH gone AS (DELETE FROM document WHERE id = ANY (%(ids)s) RETURNING id, scope, container, task)
SELECT (count(*) FILTER (WHERE container IS NULL OR task <> 0 OR id = ANY (%(named)s)))::int AS documents, coalesce(array_agg(DISTINCT scope), '{}') AS scopes FROM gone;

-- name: hashes_of
SELECT DISTINCT hash FROM document WHERE id = ANY (%(ids)s);

-- name: progress
SELECT id, filename AS name, client, project, urn, version, type, title, container,
       (SELECT d.name FROM document d WHERE d.id = document_progress.container) AS part_of,
       added_at, completed_at, status, total_pages AS pages, total_chunks AS chunks, phases, phase_status::text[], phase_done,
       phase_failed
  FROM document_progress
 WHERE id = ANY (%(ids)s) ORDER BY id;

-- name: listing
-- all, or those that are completed
SELECT id, filename AS name, client, project, urn, version, type, title, container,
       (SELECT d.name FROM document d WHERE d.id = document_progress.container) AS part_of,
       added_at, completed_at, status, total_pages AS pages, total_chunks AS chunks, phases, phase_status::text[], phase_done,
       phase_failed
  FROM document_progress
 WHERE id < %(before)s AND (%(status)s::text IS NULL OR completed_at IS NOT NULL)
   AND (%(scopes)s::int[] IS NULL OR scope = ANY (%(scopes)s::int[]))
   AND (container IS NULL OR (SELECT d.task FROM document d WHERE d.id = document_progress.id) <> 0)  -- no notes about others
 ORDER BY id DESC LIMIT %(limit)s;

-- name: listing_incomplete
-- of those that are not: what most look for, and few of many
SELECT id, filename AS name, client, project, urn, version, type, title, container,
       (SELECT d.name FROM document d WHERE d.id = document_progress.container) AS part_of,
       added_at, completed_at, status, total_pages AS pages, total_chunks AS chunks, phases, phase_status::text[], phase_done,
       phase_failed
  FROM document_progress
 WHERE id < %(before)s AND completed_at IS NULL AND status = %(status)s::task_status
   AND (%(scopes)s::int[] IS NULL OR scope = ANY (%(scopes)s::int[]))
   AND (container IS NULL OR (SELECT d.task FROM document d WHERE d.id = document_progress.id) <> 0)  -- no notes about others
 ORDER BY id DESC LIMIT %(limit)s;

-- name: scopes_of
SELECT array_agg(id) FROM scope
 WHERE (%(client)s::text IS NULL OR client = %(client)s) AND (%(project)s::text IS NULL OR project = %(project)s);

-- name: holds_anything
SELECT EXISTS (
  SELECT FROM scope s
   WHERE s.client = %(client)s AND (%(project)s::text = '' OR s.project = %(project)s::text)
     AND (EXISTS (SELECT FROM document d WHERE d.scope = s.id) OR EXISTS (SELECT FROM entity e WHERE e.scope = s.id)));

-- name: pages_of
SELECT page, method, chunks, phase, label, status, error, worker, started_at, finished_at, retries, heartbeat_at
  FROM page_phase WHERE document = %(id)s AND page >= %(first)s::int AND (%(last)s::int IS NULL OR page <= %(last)s::int)
 ORDER BY page, ordinal;

-- name: skipped_of
-- a phase without a unit has none because no page has text, and why that is says the first phase
WITH told AS (
  SELECT p.name AS phase, t.error AS reason, count(*)::int AS units
    FROM phase p JOIN task t ON t.parent = p.task
   WHERE p.document = %(id)s AND t.outcome = 'skipped' GROUP BY p.name, t.error
)
SELECT phase, reason, units FROM told
UNION ALL
SELECT p.phase, coalesce(t.reason, 'it has no pages'), 0
  FROM phase_progress p LEFT JOIN told t ON t.phase = (SELECT name FROM phase_kind ORDER BY ordinal LIMIT 1)
 WHERE p.document = %(id)s AND p.status = 'skipped' AND p.total = 0 AND p.shown
 ORDER BY 1, 3 DESC, 2;

-- name: setbacks_of
-- what went wrong and will be tried again by itself; without a fingerprint, the error is the reason why it waits
SELECT t.id AS task, t.kind, (t.payload ->> 'page')::int AS page, (t.payload ->> 'ordinal')::int AS ordinal, t.error, t.attempts
  FROM tasks t WHERE t.owner = %(owner)s AND t.status IN ('pending', 'processing') AND t.fingerprint IS NOT NULL AND t.queue IS NOT NULL
 ORDER BY t.id LIMIT %(limit)s;

-- name: names_of
SELECT id, name FROM document WHERE id = ANY (%(ids)s);

-- name: types
-- from one to the next in the index: there are few of them among many documents
WITH RECURSIVE known AS (
  SELECT s.scope, (SELECT min(type) FROM document WHERE scope = s.scope) AS type FROM unnest(%(scopes)s::int[]) AS s (scope)
  UNION ALL
  SELECT k.scope, (SELECT min(type) FROM document WHERE scope = k.scope AND type > k.type) FROM known k WHERE k.type IS NOT NULL
)
SELECT DISTINCT type FROM known WHERE type IS NOT NULL ORDER BY type;

-- name: failures_of
SELECT t.id AS task, t.kind, (t.payload ->> 'page')::int AS page, (t.payload ->> 'ordinal')::int AS ordinal, t.error, t.attempts
  FROM task t WHERE t.owner = %(owner)s AND t.outcome = 'failed' AND t.queue IS NOT NULL ORDER BY t.id LIMIT %(limit)s;
