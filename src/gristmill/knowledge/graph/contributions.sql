-- Writes the contributions of chunks to the graph, and finds earlier extractions.

-- name: save
-- One chunk's whole contribution, under the keys that aliases stand for. Relations and mentions that the chunk no longer has
-- are removed, except those that somebody stated. Only rows of this chunk are touched.
WITH place AS (
  SELECT id, scope FROM chunk WHERE id = %(chunk)s
), named AS (
  SELECT coalesce(a.key, e.key) AS key, (array_agg(e.type ORDER BY a.key IS NULL DESC, e.key))[1] AS type,
         (array_agg(e.name ORDER BY a.key IS NULL DESC, e.key))[1] AS name, sum(e.count)::int AS count,
         (array_agg(e.properties ORDER BY a.key IS NULL DESC, e.key))[1] AS properties
    FROM jsonb_to_recordset(%(entities)s::jsonb) AS e (key text, type text, name text, count int, properties jsonb)
    LEFT JOIN alias a ON a.client = %(client)s AND a.alias = e.key
   GROUP BY 1
), said AS (
  SELECT DISTINCT ON (1, 2, 3) coalesce(s.key, r.source) AS source, r.type, coalesce(t.key, r.target) AS target, r.properties
    FROM jsonb_to_recordset(%(relations)s::jsonb) AS r (source text, type text, target text, properties jsonb)
    LEFT JOIN alias s ON s.client = %(client)s AND s.alias = r.source
    LEFT JOIN alias t ON t.client = %(client)s AND t.alias = r.target
   WHERE coalesce(s.key, r.source) <> coalesce(t.key, r.target)
   ORDER BY 1, 2, 3, r.source, r.target
), unsaid AS (
  DELETE FROM relation r
   WHERE r.chunk = %(chunk)s AND NOT r.stated
     AND NOT EXISTS (SELECT FROM said WHERE (said.source, said.type, said.target) = (r.source, r.type, r.target))
), merely_stated AS (
  UPDATE relation r SET extracted = false
   WHERE r.chunk = %(chunk)s AND r.stated AND r.extracted
     AND NOT EXISTS (SELECT FROM said WHERE (said.source, said.type, said.target) = (r.source, r.type, r.target))
), unnamed AS (
  DELETE FROM mention m
   WHERE m.chunk = %(chunk)s AND NOT m.stated AND NOT EXISTS (SELECT FROM named WHERE named.key = m.key)
), merely_linked AS (
  UPDATE mention m SET count = 0
   WHERE m.chunk = %(chunk)s AND m.stated AND m.count > 0 AND NOT EXISTS (SELECT FROM named WHERE named.key = m.key)
), put_mentions AS (
  INSERT INTO mention (chunk, key, scope, type, name, count, properties)
  SELECT place.id, named.key, place.scope, named.type, named.name, named.count, named.properties FROM place, named
      ON CONFLICT (chunk, key) DO UPDATE
     SET type = excluded.type, name = excluded.name, count = excluded.count,
         properties = CASE WHEN mention.stated THEN excluded.properties || mention.properties ELSE excluded.properties END
), put_relations AS (
  INSERT INTO relation (chunk, source, type, target, scope, extracted, properties)
  SELECT place.id, said.source, said.type, said.target, place.scope, true, said.properties FROM place, said
      ON CONFLICT (chunk, source, type, target) DO UPDATE
     SET extracted = true,
         properties = CASE WHEN relation.stated THEN relation.properties ELSE excluded.properties END
)
INSERT INTO extraction (chunk, scope, key, silent, dropped)
SELECT place.id, place.scope, %(key)s, %(silent)s, %(dropped)s FROM place
    ON CONFLICT (chunk) DO UPDATE
   SET key = excluded.key, silent = excluded.silent, dropped = excluded.dropped, at = excluded.at;

-- name: known_extractions
-- Earlier extractions under these keys, from any chunk that has one, without anything that was merely stated. Where the LLM
-- was silent it is asked again, so these do not count. Each key costs one look into the index, however many chunks have it:
-- the range of one value makes the planner use the index always. If the first 256 were silent, the LLM is asked once more.
SELECT k.key, x.silent, x.dropped,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('key', m.key, 'type', m.type, 'name', m.name, 'count', m.count,
                                                     'properties', m.properties) ORDER BY m.key), '[]')
          FROM mention m WHERE m.chunk = x.chunk AND m.count > 0) AS entities,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('source', r.source, 'type', r.type, 'target', r.target,
                                                     'properties', r.properties) ORDER BY r.source, r.type, r.target), '[]')
          FROM relation r WHERE r.chunk = x.chunk AND r.extracted) AS relations
  FROM unnest(%(keys)s::bytea[]) AS k (key)
 CROSS JOIN LATERAL (
   SELECT * FROM (SELECT chunk, silent, dropped FROM extraction
                   WHERE key >= k.key AND key <= k.key ORDER BY key LIMIT 256) AS first
    WHERE silent IS NOT TRUE LIMIT 1) x;

-- name: lost_nodes
-- The nodes that these chunks name. A node stays if another chunk of the same client names it, or if somebody stated it
-- without evidence. `NOT IN` and not `<> ALL`: that would go through all the chunks for each of many thousand names.
SELECT client, key, EXISTS (
         SELECT FROM mention m JOIN scope s ON s.id = m.scope
          WHERE m.key = lost.key AND s.client = lost.client AND m.chunk NOT IN (SELECT unnest(%(chunks)s::bigint[])))
       OR EXISTS (
         SELECT FROM entity e JOIN scope s ON s.id = e.scope
          WHERE e.key = lost.key AND s.client = lost.client AND NOT e.linked) AS stays
  FROM (SELECT DISTINCT s.client, m.key
          FROM mention m JOIN scope s ON s.id = m.scope WHERE m.chunk = ANY(%(chunks)s)) AS lost
 ORDER BY client, key;

-- name: lost_edges
SELECT client, source, type, target, EXISTS (
         SELECT FROM relation r JOIN scope s ON s.id = r.scope
          WHERE r.source = lost.source AND r.target = lost.target AND r.type = lost.type AND s.client = lost.client
            AND r.chunk NOT IN (SELECT unnest(%(chunks)s::bigint[]))) AS stays
  FROM (SELECT DISTINCT s.client, r.source, r.type, r.target
          FROM relation r JOIN scope s ON s.id = r.scope WHERE r.chunk = ANY(%(chunks)s)) AS lost
 ORDER BY client, source, type, target;
