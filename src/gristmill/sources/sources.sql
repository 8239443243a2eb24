-- The statements of sources: their rows, their items, how far each is.

-- name: add_source
INSERT INTO source (scope, name, kind, options, every, listing_every, declared)
VALUES (%(scope)s, %(name)s, %(kind)s, %(options)s::jsonb, %(every)s, %(listing_every)s, %(declared)s)
ON CONFLICT (scope, name) DO NOTHING RETURNING id;

-- name: change_source
-- another place is read from its beginning, and what is known stays known
UPDATE source
   SET kind = %(kind)s, options = %(options)s::jsonb, every = %(every)s, listing_every = %(listing_every)s, declared = %(declared)s,
       checkpoint = CASE WHEN %(same_place)s THEN checkpoint END, step = step + 1,
       failures = 0, error = NULL, waits_until = NULL, waits_for = NULL, expected_from = clock(),
       listing_failures = 0, listing_error = NULL, awaits_agreement = false,
       listing_agreed_at = CASE WHEN %(same_place)s THEN listing_agreed_at END
 WHERE id = %(id)s
   AND (kind, options, every, listing_every, declared)
       <> (%(kind)s, %(options)s::jsonb, %(every)s::interval, %(listing_every)s::interval, %(declared)s)
RETURNING id;

-- name: load
SELECT s.*, p.client, p.project, clock() AS now FROM source s JOIN scope p ON p.id = s.scope WHERE s.id = %(id)s;

-- name: list_sources
SELECT s.*, p.client, p.project, clock() AS now
  FROM source s JOIN scope p ON p.id = s.scope
 WHERE (%(client)s::text IS NULL OR p.client = %(client)s) AND (%(project)s::text IS NULL OR p.project = %(project)s)
 ORDER BY p.client, p.project, s.name;

-- name: find_by_name
SELECT s.*, p.client, p.project, clock() AS now
  FROM source s JOIN scope p ON p.id = s.scope
 WHERE s.name = %(name)s AND (%(client)s::text IS NULL OR p.client = %(client)s)
   AND (%(project)s::text IS NULL OR p.project = %(project)s)
 ORDER BY s.id;

-- name: set_paused
UPDATE source
   SET paused = %(paused)s, expected_from = clock(), failures = 0, error = NULL, waits_until = NULL, waits_for = NULL,
       listing_failures = 0, listing_error = NULL, awaits_agreement = false,
       poll_wanted = NOT %(paused)s, listing_wanted = false, listing_agreed_at = NULL
 WHERE id = %(id)s AND paused <> %(paused)s RETURNING id;

-- name: note_declarer
UPDATE source SET declared_by = %(by)s WHERE id = %(id)s AND declared_by IS DISTINCT FROM %(by)s;

-- name: undeclare
-- who named it last stays, so that people are told why it is paused
UPDATE source SET declared = false WHERE id = %(id)s;

-- name: forget_declarer
-- a person has paused or resumed it, and knows
UPDATE source SET declared_by = NULL WHERE id = %(id)s AND NOT declared AND declared_by IS NOT NULL;

-- name: drop_source
DELETE FROM source WHERE id = %(id)s;

-- name: find_known
SELECT id FROM source WHERE id = ANY (%(ids)s::bigint[]);

-- name: drop_tally
DELETE FROM source_tally WHERE source = %(id)s;

-- name: counts
SELECT source, state, sum(n)::int AS n
  FROM (SELECT source, state, n FROM source_tally WHERE source = ANY (%(ids)s)
        UNION ALL
        SELECT h.source, m.state, m.n FROM item_in_hand h, (VALUES ('NEW', -1), ('INDEXING', 1)) AS m (state, n)
         WHERE h.source = ANY (%(ids)s)
        UNION ALL
        SELECT u.source, m.state, m.n FROM item_unreadable u, (VALUES ('INDEXED', -1), ('FAILED', 1)) AS m (state, n)
         WHERE u.source = ANY (%(ids)s)) c
 GROUP BY source, state HAVING sum(n) <> 0;

-- name: fold_tally
-- one row for many, when there are many
WITH many AS (
  SELECT count(*) > 100 AS yes FROM source_tally WHERE source = %(id)s
), gone AS (
  DELETE FROM source_tally WHERE source = %(id)s AND (SELECT yes FROM many) RETURNING source, scope, state, n
)
INSERT INTO source_tally SELECT source, scope, state, sum(n) FROM gone GROUP BY source, scope, state HAVING sum(n) <> 0;

-- name: begin_poll
UPDATE source SET polled_at = clock(), poll_wanted = false WHERE id = %(id)s;

-- name: note_success
UPDATE source SET succeeded_at = clock(), failures = 0, error = NULL, waits_until = NULL, waits_for = NULL WHERE id = %(id)s
RETURNING poll_wanted;

-- name: note_wait
UPDATE source SET waits_until = clock() + %(wait)s::interval, waits_for = %(reason)s WHERE id = %(id)s;

-- name: note_failure
UPDATE source SET failures = failures + 1, error = %(error)s, waits_until = NULL, waits_for = NULL
 WHERE id = %(id)s RETURNING failures;

-- name: want_poll
UPDATE source SET poll_wanted = true WHERE id = %(id)s;

-- name: forgive
-- a person tries again: the pauses begin anew
UPDATE source SET failures = 0, error = NULL, waits_until = NULL, waits_for = NULL WHERE id = %(id)s;

-- name: begin_listing
UPDATE source SET listing_wanted = false WHERE id = %(id)s;

-- name: note_listing
UPDATE source SET listed_at = clock(), listing = %(report)s::jsonb WHERE id = %(id)s;

-- name: note_listing_success
-- `agreed_at` is the consent that it had: one that was given since is for the next
UPDATE source
   SET listing_succeeded_at = clock(), listing_failures = 0, listing_error = NULL, awaits_agreement = false,
       listing_agreed_at = nullif(listing_agreed_at, %(agreed_at)s)
 WHERE id = %(id)s RETURNING listing_wanted;

-- name: note_listing_wait
-- the other side, or a limiter of ours, said when to come again
UPDATE source SET listing_error = %(reason)s WHERE id = %(id)s;

-- name: note_listing_failure
UPDATE source SET listing_failures = listing_failures + 1, listing_error = %(error)s WHERE id = %(id)s RETURNING listing_failures;

-- name: note_doubt
-- whoever has asked for a listing since this one began gets it
UPDATE source SET awaits_agreement = NOT listing_wanted, listing_error = %(doubt)s WHERE id = %(id)s RETURNING listing_wanted;

-- name: forgive_listing
-- a person wants a listing: its pauses begin anew, and it looks again at what seemed gone
UPDATE source
   SET listing_failures = 0, listing_error = NULL, awaits_agreement = false, listing_wanted = true,
       listing_agreed_at = CASE WHEN %(agreed)s THEN clock() ELSE listing_agreed_at END
 WHERE id = %(id)s;

-- name: lock_source
SELECT step FROM source WHERE id = %(id)s FOR UPDATE;

-- name: move_checkpoint
UPDATE source SET checkpoint = %(checkpoint)s::jsonb, step = step + 1 WHERE id = %(id)s AND step = %(step)s RETURNING step;

-- name: known_items
SELECT id, external, hash, mark, state, version, leaving FROM source_item
 WHERE source = %(source)s AND external = ANY (%(externals)s::text[]);

-- name: add_items
-- nothing -> NEW, or SET_ASIDE if its bytes could not be had
INSERT INTO source_item (source, scope, external, mark, hash, size, note, state, error)
SELECT %(source)s, %(scope)s, i.external, i.mark, i.hash, i.size, i.note::jsonb,
       CASE WHEN i.error IS NULL THEN 'NEW' ELSE 'SET_ASIDE' END, i.error
  FROM unnest(%(externals)s::text[], %(marks)s::text[], %(hashes)s::bytea[], %(sizes)s::bigint[], %(notes)s::text[],
              %(errors)s::text[]) AS i (external, mark, hash, size, note, error)
RETURNING id, external, version;

-- name: renew_items
-- any state -> NEW, or SET_ASIDE if its bytes could not be had: another version has come
UPDATE source_item s
   SET mark = i.mark, hash = i.hash, size = i.size, note = i.note::jsonb, version = s.version + 1, error = i.error,
       removed = NULL, leaving = false, changed_at = clock(), state = CASE WHEN i.error IS NULL THEN 'NEW' ELSE 'SET_ASIDE' END
  FROM unnest(%(externals)s::text[], %(marks)s::text[], %(hashes)s::bytea[], %(sizes)s::bigint[], %(notes)s::text[],
              %(errors)s::text[]) AS i (external, mark, hash, size, note, error)
 WHERE s.source = %(source)s AND s.scope = %(scope)s AND s.external = i.external
RETURNING s.id, s.external, s.version;

-- name: mark_items
-- seen at its source, with the same bytes as here
UPDATE source_item s SET mark = i.mark, leaving = false
  FROM unnest(%(externals)s::text[], %(marks)s::text[]) AS i (external, mark)
 WHERE s.source = %(source)s AND s.external = i.external;

-- name: move_item
-- to the id that it has now; where an item with that id is known already, the old one is left for the listing
UPDATE source_item SET external = %(new)s, leaving = false
 WHERE source = %(source)s AND external = %(old)s
   AND NOT EXISTS (SELECT FROM source_item WHERE source = %(source)s AND external = %(new)s);

-- name: drop_raw
DELETE FROM source_raw WHERE item = ANY (%(items)s);

-- name: copy_raw
COPY source_raw (item, n, scope, bytes) FROM STDIN (FORMAT binary);

-- name: insert_raw
INSERT INTO source_raw (item, n, scope, bytes)
SELECT item, n, scope, bytes FROM json_populate_recordset(NULL::source_raw, %(rows)s::json);

-- name: find_externals
SELECT urn, external FROM source_item
 WHERE source = %(source)s AND scope = %(scope)s AND urn = ANY (%(urns)s::text[]) AND state <> 'DELETED' ORDER BY id;

-- name: waiting_items
SELECT i.id, i.external, substr(r.bytes, 1, %(head)s) AS head
  FROM source_item i JOIN source_raw r ON r.item = i.id AND r.n = 0
 WHERE i.source = %(source)s AND i.state IN ('NEW', 'SET_ASIDE') AND i.urn IS NULL AND i.id > %(after)s
 ORDER BY i.id LIMIT %(limit)s;

-- name: living_items
-- all that are taken for living, portion by portion, as they were when the comparison began
SELECT id, external, state FROM source_item
 WHERE source = %(source)s AND id > %(after)s AND id <= %(last)s AND state <> 'DELETED' ORDER BY id LIMIT %(limit)s;

-- name: last_item
SELECT coalesce(max(id), 0) FROM source_item WHERE source = %(source)s;

-- name: let_leave
-- those of these ids that are known and not deleted yet
UPDATE source_item SET leaving = true
 WHERE source = %(source)s AND external = ANY (%(externals)s::text[]) AND state <> 'DELETED' RETURNING id, version;

-- name: items_to_index
-- those that are still wanted in this version. Nothing is written: whose task a worker holds is INDEXING (`item_in_hand`).
SELECT i.id, i.source, s.name AS source_name, s.kind, i.scope, p.client, p.project, i.external, i.note, i.version, i.state,
       i.size, i.urn
  FROM unnest(%(ids)s::bigint[], %(versions)s::int[]) AS wanted (id, version)
  JOIN source_item i ON i.id = wanted.id AND i.version = wanted.version
  JOIN source s ON s.id = i.source
  JOIN scope p ON p.id = s.scope
 WHERE (i.state = 'NEW') IS TRUE;  -- IS TRUE, here and below: else the planner may look through all that wait, for each portion

-- name: load_raw
SELECT item, bytes FROM source_raw WHERE item = ANY (%(items)s) ORDER BY item, n;

-- name: hold_items
-- nobody else changes them until the transaction ends; without those of which a newer version has come
SELECT i.id, i.version FROM source_item i JOIN unnest(%(ids)s::bigint[], %(versions)s::int[]) AS w (id, version) ON w.id = i.id
 WHERE i.version = w.version AND (i.state = 'NEW') IS TRUE ORDER BY i.id FOR UPDATE OF i;

-- name: find_twins
-- other items that are, or were, handed on under the same URN: of mails the first, which keeps its URN; else the newest, which
-- is shown
SELECT w.item, t.digest, t.updated_at, t.document
  FROM unnest(%(ids)s::bigint[], %(scopes)s::int[], %(urns)s::text[]) AS w (item, scope, urn)
 CROSS JOIN LATERAL (
   SELECT digest, updated_at, document FROM source_item i
    WHERE i.scope = w.scope AND i.urn = w.urn AND i.state = 'INDEXED' AND i.document IS NOT NULL AND i.id <> w.item
    ORDER BY CASE WHEN i.type <> 'email' THEN i.updated_at END DESC NULLS LAST, i.id LIMIT 1) t;

-- name: finish_indexing
-- NEW -> INDEXED; their bytes go: their documents have them
WITH finished AS (
  UPDATE source_item i
     SET state = 'INDEXED', type = f.type, urn = f.urn, digest = f.digest, thread = f.thread, sent = f.sent,
         document = f.document, title = f.title, changed_at = (SELECT clock()),
         updated_at = CASE WHEN f.updated_at < (SELECT clock() + interval '1 day') THEN f.updated_at END  -- its clock is wrong
    FROM unnest(%(ids)s::bigint[], %(types)s::text[], %(urns)s::text[], %(digests)s::bytea[], %(threads)s::text[],
                %(sent)s::boolean[], %(documents)s::bigint[], %(updates)s::timestamptz[], %(titles)s::text[])
           AS f (id, type, urn, digest, thread, sent, document, updated_at, title)
   WHERE i.id = f.id AND (i.state = 'NEW') IS TRUE
)
DELETE FROM source_raw WHERE item = ANY (%(ids)s::bigint[]);

-- name: follow_document
UPDATE source_item i SET document = f.document
  FROM unnest(%(scopes)s::int[], %(urns)b::text[], %(documents)s::bigint[]) AS f (scope, urn, document)
 WHERE i.scope = f.scope AND i.urn = f.urn AND i.state <> 'DELETED' AND i.document <> f.document;

-- name: set_aside
-- NEW -> SET_ASIDE: its bytes are kept for whoever looks into it
UPDATE source_item SET state = 'SET_ASIDE', error = %(error)s, changed_at = clock()
 WHERE id = %(id)s AND version = %(version)s AND state = 'NEW';

-- name: retry_set_aside
-- SET_ASIDE -> NEW
UPDATE source_item SET state = 'NEW', error = NULL, version = version + 1
 WHERE source = %(source)s AND state = 'SET_ASIDE' AND hash IS NOT NULL RETURNING id, version;

-- name: ask_again
-- those whose bytes could not be had: with a mark that nothing has, the next poll or listing takes them for changed
UPDATE source_item SET mark = 'ask again' WHERE source = %(source)s AND state = 'SET_ASIDE' AND hash IS NULL RETURNING id;

-- name: hold_gone
-- nothing if it was seen again meanwhile
SELECT i.id, i.urn, i.document, p.client, p.project
  FROM source_item i JOIN scope p ON p.id = i.scope
 WHERE i.id = %(id)s AND i.version = %(version)s AND i.leaving AND i.state <> 'DELETED' FOR UPDATE OF i;

-- name: urn_of
SELECT scope, urn FROM source_item WHERE id = %(id)s AND urn IS NOT NULL;

-- name: has_twin
SELECT EXISTS (SELECT FROM source_item WHERE scope = (SELECT scope FROM source_item WHERE id = %(id)s) AND urn = %(urn)s
                                         AND state <> 'DELETED' AND id <> %(id)s);

-- name: finish_removal
-- any state -> DELETED: the row stays as the proof, without the words that people wrote
UPDATE source_item
   SET state = 'DELETED', error = NULL, document = NULL, leaving = false, removed = %(report)s::jsonb, changed_at = clock(),
       title = NULL, note = '{}', thread = NULL
 WHERE id = %(id)s AND state <> 'DELETED';

-- name: lock_threads
SELECT pg_advisory_xact_lock(hashtextextended('mail_thread', %(scope)s));

-- name: find_threads
SELECT message, thread FROM mail_thread WHERE scope = %(scope)s AND message = ANY (%(messages)s::text[]);

-- name: add_messages
INSERT INTO mail_thread (scope, message, thread)
SELECT %(scope)s, m.message, m.thread FROM unnest(%(messages)s::text[], %(threads)s::text[]) AS m (message, thread);

-- name: join_threads
UPDATE mail_thread m SET thread = j.new
  FROM unnest(%(olds)s::text[], %(news)s::text[]) AS j (old, new) WHERE m.scope = %(scope)s AND m.thread = j.old;

-- name: join_items
UPDATE source_item i SET thread = j.new
  FROM unnest(%(olds)s::text[], %(news)s::text[]) AS j (old, new) WHERE i.scope = %(scope)s AND i.thread = j.old;

-- name: list_items
SELECT i.id, i.external, i.type,
       CASE WHEN i.state = 'NEW' AND i.id = ANY (ARRAY(SELECT h.item FROM item_in_hand h)) THEN 'INDEXING'
            WHEN u.item IS NOT NULL THEN 'FAILED' ELSE i.state END AS state,
       i.urn, i.title, i.thread, i.document, i.size, coalesce(i.error, u.error) AS error, i.version, i.first_at, i.changed_at,
       i.removed
  FROM source_item i LEFT JOIN item_unreadable u ON u.item = i.id
 WHERE i.source = %(source)s AND i.id < %(before)s
 ORDER BY i.id DESC LIMIT %(limit)s;

-- name: list_indexed
-- nearly all of them are
SELECT id, external, type, state, urn, title, thread, document, size, error, version, first_at, changed_at, removed
  FROM source_item
 WHERE source = %(source)s AND id < %(before)s AND state = 'INDEXED'
   AND id <> ALL (ARRAY(SELECT u.item FROM item_unreadable u WHERE u.source = %(source)s))
 ORDER BY id DESC LIMIT %(limit)s;

-- name: list_unreadable
SELECT i.id, i.external, i.type, 'FAILED' AS state, i.urn, i.title, i.thread, i.document, i.size, u.error, i.version,
       i.first_at, i.changed_at, i.removed
  FROM item_unreadable u JOIN source_item i ON i.id = u.item
 WHERE u.source = %(source)s AND i.id < %(before)s
 ORDER BY i.id DESC LIMIT %(limit)s;

-- name: list_in_hand
-- few, however many wait
SELECT id, external, type, 'INDEXING' AS state, urn, title, thread, document, size, error, version, first_at, changed_at, removed
  FROM source_item
 WHERE source = %(source)s AND id < %(before)s AND id = ANY (ARRAY(SELECT h.item FROM item_in_hand h))
 ORDER BY id DESC LIMIT %(limit)s;

-- name: list_items_in_state
-- by an index that has only what is not INDEXED
SELECT id, external, type, state, urn, title, thread, document, size, error, version, first_at, changed_at, removed
  FROM source_item
 WHERE source = %(source)s AND id < %(before)s AND state = %(state)s AND state <> 'INDEXED'
   AND id <> ALL (ARRAY(SELECT h.item FROM item_in_hand h))
 ORDER BY id DESC LIMIT %(limit)s;

-- name: load_item
SELECT i.id, i.external, i.type,
       CASE WHEN i.state = 'NEW' AND i.id = ANY (ARRAY(SELECT h.item FROM item_in_hand h)) THEN 'INDEXING'
            WHEN u.item IS NOT NULL THEN 'FAILED' ELSE i.state END AS state,
       i.urn, i.title, i.thread, i.document, i.size, coalesce(i.error, u.error) AS error, i.version, i.first_at, i.changed_at,
       i.removed
  FROM source_item i LEFT JOIN item_unreadable u ON u.item = i.id
 WHERE i.id = %(id)s AND i.source = %(source)s;

-- name: poll_tasks
-- the tasks that poll and list these sources now: running, in line, or put off; an open task holds its key, and only the keys
-- that are held have an index
SELECT unique_key AS key, status::text, wait::text, run_at FROM tasks
 WHERE id IN (SELECT id FROM task WHERE unique_key = ANY (%(keys)s::text[]) AND unique_held)
   AND status IN ('pending', 'processing');

-- name: next_polls
SELECT name, next_at FROM schedule WHERE name = ANY (%(names)s::text[]);

-- name: find_sent
SELECT DISTINCT i.scope, i.urn
  FROM unnest(%(scopes)s::int[], %(urns)s::text[]) AS w (scope, urn)
  JOIN source_item i ON i.scope = w.scope AND i.urn = w.urn AND i.state <> 'DELETED'
 WHERE i.sent;
