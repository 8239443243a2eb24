-- What somebody states goes with its own evidence, and all who read the graph see the same nodes in it.

-- Of a node that chunks were named for when it was stated, the statement goes with the last of them; of any other it stays.
ALTER TABLE entity ADD linked boolean NOT NULL DEFAULT false;

-- Whether what is stated in one scope may rest on a chunk of another: for a client all of its own; for a project itself and
-- its client's level.
CREATE FUNCTION may_rest_on(stated scope, shown scope) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT stated.client = shown.client AND (stated.project = '' OR shown.project IN ('', stated.project))
$$;

UPDATE entity e SET linked = true
  FROM scope s
 WHERE s.id = e.scope
   AND EXISTS (SELECT FROM mention m JOIN scope o ON o.id = m.scope WHERE m.key = e.key AND m.stated AND may_rest_on(s, o));

-- What was stated of a chunk is looked up when it goes, and there is little of it.
CREATE INDEX mention_stated ON mention (chunk) WHERE stated;

-- Waits for whoever adds an alias, and lets nobody add one until all is written: what was asked of aliases stays true.
CREATE FUNCTION write_mentions() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  LOCK TABLE mention IN ROW EXCLUSIVE MODE;
END $$;

-- A name as it is looked for: whatever its case, also of keys that keep it. By the rules of the database for letters, in the
-- order of bytes: beginnings are ranges.
CREATE FUNCTION plain_name(key text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT lower(substr(key, strpos(key, '::') + 2) COLLATE "default") COLLATE "C"
$$;
DROP INDEX mention_by_name;
DROP INDEX entity_by_name;
CREATE INDEX mention_by_name ON mention (plain_name(key), scope);
CREATE INDEX entity_by_name ON entity (plain_name(key), scope);

-- Every node in some scopes: the one place that says of which type it is and how it is called. What was stated comes first,
-- and of that what was stated nearest to the reader; then what was drawn from text; in the end its key says it.
CREATE FUNCTION nodes_in(scopes int[])
RETURNS TABLE (key text, type text, name text, mentions bigint, chunks bigint, stated jsonb) LANGUAGE sql STABLE AS $$
  SELECT one.key,
         coalesce((array_agg(one.type ORDER BY one.near DESC, one.scope DESC) FILTER (WHERE one.chunk IS NULL))[1],
                  max(one.type) FILTER (WHERE one.count > 0), max(one.type)),
         coalesce(mode() WITHIN GROUP (ORDER BY one.name) FILTER (WHERE one.count > 0),
                  (array_agg(one.name ORDER BY one.near DESC, one.scope DESC) FILTER (WHERE one.chunk IS NULL AND one.name <> ''))[1],
                  substr(one.key, strpos(one.key, '::') + 2)),
         sum(one.count)::bigint, count(one.chunk),
         jsonb_agg(one.stated ORDER BY one.near, one.scope) FILTER (WHERE one.chunk IS NULL)
    FROM (SELECT m.key, m.scope, m.type, m.name, m.count, m.chunk, NULL::int AS near, NULL::jsonb AS stated
            FROM mention m WHERE m.scope = ANY(nodes_in.scopes)
          UNION ALL
          SELECT e.key, e.scope, e.type, e.properties ->> 'name', 0, NULL, (s.client <> '')::int + (s.project <> '')::int, e.properties
            FROM entity e JOIN scope s ON s.id = e.scope WHERE e.scope = ANY(nodes_in.scopes)) AS one
   GROUP BY one.key
$$;

-- GLOBAL is kept under everybody's names, and a client may have aliases for those: under which names what it means by these
-- keys may stand.
CREATE FUNCTION names_of(client text, keys text[]) RETURNS text[] LANGUAGE sql STABLE AS $$
  SELECT names_of.keys || ARRAY(SELECT a.alias FROM alias a WHERE a.client = names_of.client AND a.key = ANY(names_of.keys))
$$;

-- The nodes as a client calls them, all or those with these keys. Of several that its aliases make one, the one with the key
-- itself says what it is, or else the one that is named most. What a function returns forgets its collation, and the index by key has "C".
CREATE FUNCTION nodes_seen(client text, scopes int[], keys text[])
RETURNS TABLE (key text, type text, name text, mentions bigint, chunks bigint, stated jsonb) LANGUAGE sql STABLE AS $$
  SELECT coalesce(a.key, n.key), (array_agg(n.type ORDER BY a.key IS NULL DESC, n.mentions DESC, n.key))[1],
         (array_agg(n.name ORDER BY a.key IS NULL DESC, n.mentions DESC, n.key))[1], sum(n.mentions)::bigint, sum(n.chunks)::bigint,
         jsonb_path_query_array(jsonb_agg(n.stated ORDER BY a.key IS NULL, n.key) FILTER (WHERE n.stated IS NOT NULL), '$[*][*]')
    FROM nodes_in(nodes_seen.scopes) n LEFT JOIN alias a ON a.client = nodes_seen.client AND a.alias = n.key
   WHERE nodes_seen.keys IS NULL OR n.key COLLATE "C" = ANY(names_of(nodes_seen.client, nodes_seen.keys))
   GROUP BY 1
$$;

-- The edges between them, each with what is known of it, once.
CREATE FUNCTION edges_seen(client text, scopes int[])
RETURNS TABLE (source text, type text, target text, evidence bigint, properties jsonb) LANGUAGE sql STABLE AS $$
  SELECT coalesce(s.key, r.source), r.type, coalesce(t.key, r.target), count(DISTINCT r.chunk),
         jsonb_agg(DISTINCT r.properties) FILTER (WHERE r.properties <> '{}')
    FROM relation r
    LEFT JOIN alias s ON s.client = edges_seen.client AND s.alias = r.source
    LEFT JOIN alias t ON t.client = edges_seen.client AND t.alias = r.target
   WHERE r.scope = ANY(edges_seen.scopes) AND coalesce(s.key, r.source) <> coalesce(t.key, r.target)
   GROUP BY 1, 2, 3
$$;

DROP VIEW node;
CREATE VIEW node AS
SELECT c.client, n.key COLLATE "C" AS key, n.type, n.name, n.mentions, n.chunks
  FROM (SELECT client, array_agg(id) AS scopes FROM scope GROUP BY client) c CROSS JOIN LATERAL nodes_in(c.scopes) n;

ALTER TABLE extraction DROP empty;  -- nobody asks: what a chunk contributes says it

-- What is written down note by note (`store_chunk`) has a page for each; before, one page held them all.
UPDATE page p SET method = 'note' FROM document d WHERE d.id = p.document AND d.task = 0 AND NOT d.meta ? 'location';

-- Search asks the index of vectors itself: a statement whose plan is kept takes less time than one made anew by a function.
DROP FUNCTION nearest(smallint, int, vector, int[], text, timestamptz, int);
