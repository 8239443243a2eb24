-- Links, the places where they were found, and the rules of people.

-- name: find_rules
-- the rules that a scope sees for these domains: its own, those of its client, those of everybody
SELECT r.id, r.effect, r.domain, r.path,
       CASE WHEN s.client = '' THEN 0 WHEN s.project = '' THEN 1 ELSE 2 END AS nearness
  FROM link_rule r JOIN scope s ON s.id = r.scope
 WHERE r.domain = ANY (%(domains)s)
   AND (s.client = '' OR s.client = %(client)s AND s.project IN ('', %(project)s))
 ORDER BY r.id;

-- name: add_links
-- a second writer waits for the first, and finds the row; in one order for all: two documents with the same links would
-- otherwise wait for each other
INSERT INTO link (scope, hash, url, host, verdict, reason, rule, state, label, lead_in, context)
SELECT scope, hash, url, host, verdict, reason, rule, CASE WHEN state = 'queued' THEN 'waiting' ELSE state END, label, lead_in, context
  FROM unnest(%(scopes)s::int[], %(hashes)s::bytea[], %(urls)s::text[], %(hosts)s::text[], %(verdicts)s::text[],
              %(reasons)s::text[], %(rules)s::bigint[], %(states)s::text[], %(labels)s::text[], %(lead_ins)s::text[],
              %(contexts)s::text[])
         AS l (scope, hash, url, host, verdict, reason, rule, state, label, lead_in, context)
 ORDER BY scope, hash
ON CONFLICT (scope, hash) DO NOTHING RETURNING id, scope, hash, state;

-- name: find_links
SELECT l.id, l.scope, l.hash, l.state
  FROM unnest(%(scopes)s::int[], %(hashes)s::bytea[]) AS w (scope, hash) JOIN link l USING (scope, hash);

-- name: add_places
INSERT INTO link_place (link, scope, urn, document, label, context)
SELECT link, scope, urn, document, label, context
  FROM unnest(%(links)s::bigint[], %(scopes)s::int[], %(urns)s::text[], %(documents)s::bigint[], %(labels)s::text[],
              %(contexts)s::text[]) AS p (link, scope, urn, document, label, context)
 ORDER BY link, urn
ON CONFLICT (link, urn) DO UPDATE SET document = excluded.document, label = excluded.label, context = excluded.context;

-- name: drop_places
-- what newer versions of documents do not say any more
DELETE FROM link_place p
 USING unnest(%(scopes)s::int[], %(urns)s::text[]) AS d (scope, urn)
 WHERE p.scope = d.scope AND p.urn = d.urn
   AND NOT EXISTS (SELECT FROM unnest(%(kept)s::bigint[], %(kept_urns)s::text[]) AS k (link, urn)
                    WHERE k.link = p.link AND k.urn = p.urn);

-- name: queue_links
-- waiting, refused or failed -> queued
UPDATE link l SET state = 'queued', task = q.task, error = NULL
  FROM unnest(%(ids)s::bigint[], %(tasks)s::bigint[]) AS q (id, task)
 WHERE l.id = q.id AND l.state IN ('waiting', 'refused', 'failed');

-- name: refresh_links
-- indexed -> queued: what it became stays while it is fetched again
UPDATE link l SET state = 'queued', task = q.task, error = NULL
  FROM unnest(%(ids)s::bigint[], %(tasks)s::bigint[]) AS q (id, task)
 WHERE l.id = q.id AND l.state = 'indexed';

-- name: decide
-- waiting, queued, refused or failed -> waiting or refused; one that is to be fetched is queued after this
UPDATE link
   SET verdict = %(verdict)s, reason = %(reason)s, rule = %(rule)s, decided_by = %(by)s, decided_at = clock(),
       state = CASE WHEN %(state)s = 'queued' AND state <> 'queued' THEN 'waiting' ELSE %(state)s END
 WHERE id = %(id)s AND state <> 'indexed' RETURNING id;

-- name: load_fetchable
SELECT l.id, l.scope, s.client, s.project, l.url, l.hash, l.etag, l.last_modified
  FROM link l JOIN scope s ON s.id = l.scope WHERE l.id = %(id)s AND l.state = 'queued';

-- name: finish
-- queued -> indexed
UPDATE link SET state = 'indexed', document = coalesce(%(document)s, document), etag = %(etag)s,
                last_modified = %(last_modified)s, fetched_at = clock(), error = NULL
 WHERE id = %(id)s AND state = 'queued' RETURNING id;

-- name: fail
-- queued -> failed or refused
UPDATE link SET state = %(state)s, error = %(error)s WHERE id = %(id)s AND state = 'queued';

-- name: list_links
-- one look into the index for each visible scope and each state: other scopes may have millions of links
SELECT l.id, s.client, s.project, l.url, l.host, l.verdict, l.reason, l.state, l.decided_by, l.decided_at, l.label, l.context,
       (SELECT count(*)::int FROM (SELECT FROM link_place p WHERE p.link = l.id LIMIT 1000) x) AS places,
       l.document, l.task, l.fetched_at, l.error, l.first_at
  FROM scope s CROSS JOIN unnest(%(states)s::text[]) AS w (state)
 CROSS JOIN LATERAL (
   SELECT * FROM link WHERE scope = s.id AND state = w.state AND id < coalesce(%(before)s, 9223372036854775807)
    ORDER BY id DESC LIMIT %(limit)s) l
 ORDER BY l.id DESC LIMIT %(limit)s;

-- name: list_links_of_host
SELECT l.id, s.client, s.project, l.url, l.host, l.verdict, l.reason, l.state, l.decided_by, l.decided_at, l.label, l.context,
       (SELECT count(*)::int FROM (SELECT FROM link_place p WHERE p.link = l.id LIMIT 1000) x) AS places,
       l.document, l.task, l.fetched_at, l.error, l.first_at
  FROM link l JOIN scope s ON s.id = l.scope
 WHERE l.scope = ANY (ARRAY(SELECT id FROM scope))
   AND (l.backward = %(backward)s OR l.backward >= %(backward)s || '.' AND l.backward < %(backward)s || '/')
   AND l.state = ANY (%(states)s) AND (%(before)s::bigint IS NULL OR l.id < %(before)s)
 ORDER BY l.id DESC LIMIT %(limit)s;

-- name: load_link
SELECT l.id, s.client, s.project, l.url, l.host, l.verdict, l.reason, l.state, l.decided_by, l.decided_at, l.label, l.context,
       (SELECT count(*)::int FROM (SELECT FROM link_place p WHERE p.link = l.id LIMIT 1000) x) AS places,
       l.document, l.task, l.fetched_at, l.error, l.first_at
  FROM link l JOIN scope s ON s.id = l.scope WHERE l.id = %(id)s;

-- name: find_by_url
SELECT l.id FROM link l JOIN scope s ON s.id = l.scope
 WHERE l.hash = %(hash)s AND s.client = %(client)s AND s.project = %(project)s;

-- name: list_places
SELECT p.urn, p.document, d.name, p.label, p.context, p.at
  FROM link_place p LEFT JOIN document d ON d.id = p.document
 WHERE p.link = %(link)s ORDER BY p.at DESC, p.urn LIMIT %(limit)s;

-- name: count_waiting
SELECT count(*)::int
  FROM (SELECT FROM scope s JOIN LATERAL (SELECT FROM link WHERE scope = s.id AND state = 'waiting' LIMIT 1000) l ON true LIMIT 1000) x;

-- name: add_rule
INSERT INTO link_rule (scope, effect, domain, path, by) VALUES (%(scope)s, %(effect)s, %(domain)s, %(path)s, %(by)s)
ON CONFLICT (scope, domain, path) DO UPDATE SET effect = excluded.effect, by = excluded.by, at = clock()
RETURNING id;

-- name: remove_rule
DELETE FROM link_rule WHERE id = %(id)s RETURNING scope, domain, path;

-- name: list_rules
SELECT r.id, s.client, s.project, r.effect, r.domain, r.path, r.by, r.at
  FROM link_rule r JOIN scope s ON s.id = r.scope
 WHERE %(before)s::bigint IS NULL OR r.id < %(before)s
 ORDER BY r.id DESC LIMIT %(limit)s;

-- name: find_undecided
-- links of a domain that a rule may decide anew: those that wait, that a rule refused, and that still stand in line
SELECT l.id, l.scope, s.client, s.project, l.url, l.state, l.label, l.lead_in, l.context
  FROM link l JOIN scope s ON s.id = l.scope
 WHERE l.scope = ANY (%(scopes)s::int[]) AND l.id > %(after)s
   AND (l.backward = %(backward)s OR l.backward >= %(backward)s || '.' AND l.backward < %(backward)s || '/')
   AND (l.state IN ('waiting', 'queued') OR l.state = 'refused' AND l.verdict = 'unsafe') AND l.decided_by IS NULL
 ORDER BY l.id LIMIT %(limit)s FOR NO KEY UPDATE OF l;

-- name: scopes_within
-- the scopes that a rule of this scope is for
SELECT s.id FROM scope s, scope own
 WHERE own.id = %(scope)s AND (own.client = '' OR s.client = own.client AND (own.project = '' OR s.project = own.project));
