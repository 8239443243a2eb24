-- Functions that keep terms, vectors and the graph in order.

CREATE OR REPLACE FUNCTION remember_gone_chunks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO gone_chunk (chunk, scope) SELECT id, scope FROM gone;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER chunk_gone AFTER DELETE ON chunk REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION remember_gone_chunks();

-- Makes the index over the vectors of one model; the number and dimensions of the model are part of the index.
CREATE OR REPLACE FUNCTION make_vector_index(model smallint, dimensions int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE INDEX IF NOT EXISTS embedding_near_%1$s ON embedding '
                 'USING hnsw ((vector::vector(%2$s)) vector_cosine_ops) WHERE model = %1$s', model, dimensions);
END $$;

-- Drops all models but one, unless one of them has vectors left. That is checked while nobody can write a vector, because
-- every writer locks the row of its model. Only the end of the function, which drops the indexes, locks the whole table:
-- that lock waits for running searches, and new searches wait for it. If a search or a writer takes longer than a moment,
-- nothing is changed and the caller tries again.
CREATE OR REPLACE FUNCTION drop_other_vector_models(except_model smallint) RETURNS boolean LANGUAGE plpgsql
SET lock_timeout = '200ms' AS $$
DECLARE old smallint[];
BEGIN
  PERFORM FROM embedding_model WHERE id <> except_model ORDER BY id FOR UPDATE;
  IF EXISTS (SELECT FROM embedding WHERE model <> except_model) THEN
    RETURN false;
  END IF;
  WITH gone AS (DELETE FROM embedding_model WHERE id <> except_model RETURNING id)
  SELECT array_agg(id) INTO old FROM gone;
  FOR n IN 1 .. coalesce(cardinality(old), 0) LOOP
    EXECUTE format('DROP INDEX IF EXISTS embedding_near_%s', old[n]);
  END LOOP;
  RETURN true;
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END $$;

-- Waits for all writers of the graph, and lets no new one begin. Every writer of relations also writes mentions.
CREATE OR REPLACE FUNCTION block_mention_writers() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  LOCK TABLE mention IN SHARE ROW EXCLUSIVE MODE;
END $$;

-- Waits for a transaction that changes aliases, and lets no new one begin: the aliases that a writer read stay true.
CREATE OR REPLACE FUNCTION block_alias_changes() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  LOCK TABLE mention IN ROW EXCLUSIVE MODE;
END $$;

-- Whether a statement in one scope may have a chunk of another scope as evidence. A client may use all of its own chunks, a
-- project those of itself and of its client's level.
CREATE OR REPLACE FUNCTION may_rest_on(stated scope, shown scope) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT stated.client = shown.client AND (stated.project = '' OR shown.project IN ('', stated.project))
$$;

-- Statements outlive no evidence, whoever removes it: a project may remove the last chunk that a statement of its whole client
-- rests on, and may neither change that statement nor see the chunks of other projects. So the two functions below have the
-- rights of the owner. Neither needs any trust in its caller: the second removes only what has no evidence anywhere.

-- When two transactions remove the last two pieces of evidence at the same time, the second waits here, and then sees that the
-- first piece is gone.
CREATE OR REPLACE FUNCTION lock_statements(scopes int[], keys text[]) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM FROM unnest(scopes, keys) AS lost (scope, key) JOIN entity e ON e.scope = lost.scope AND e.key = lost.key
    ORDER BY e.key, e.scope FOR UPDATE OF e;
END $$;

CREATE OR REPLACE FUNCTION retract_statements(scopes int[], keys text[]) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM lock_statements(scopes, keys);
  DELETE FROM entity e USING unnest(scopes, keys) AS lost (scope, key), scope s
   WHERE e.scope = lost.scope AND e.key = lost.key AND e.linked AND s.id = e.scope
     AND NOT EXISTS (SELECT FROM mention m JOIN scope o ON o.id = m.scope WHERE m.key = e.key AND may_rest_on(s, o));
END $$;

-- Every node in some scopes: the one place that decides on its type and name. A statement goes first, and of several the one
-- in the nearest scope; then comes what was extracted from text, and in the end the key itself.
CREATE OR REPLACE FUNCTION nodes_in(scopes int[])
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

-- The names under which these keys may stand in the tables: the keys themselves, and a client's aliases of them. Chunks of
-- GLOBAL keep names that only this client has aliases for.
CREATE OR REPLACE FUNCTION names_of(client text, keys text[]) RETURNS text[] LANGUAGE sql STABLE AS $$
  SELECT names_of.keys || ARRAY(SELECT a.alias FROM alias a WHERE a.client = names_of.client AND a.key = ANY(names_of.keys))
$$;

-- The nodes under the names of a client, all of them or those with these keys. Where aliases make one node of several, the
-- one with the key itself gives type and name, or else the one with most mentions. A function's result has no collation,
-- and the index by key needs "C".
CREATE OR REPLACE FUNCTION visible_nodes(client text, scopes int[], keys text[])
RETURNS TABLE (key text, type text, name text, mentions bigint, chunks bigint, stated jsonb) LANGUAGE sql STABLE AS $$
  SELECT coalesce(a.key, n.key), (array_agg(n.type ORDER BY a.key IS NULL DESC, n.mentions DESC, n.key))[1],
         (array_agg(n.name ORDER BY a.key IS NULL DESC, n.mentions DESC, n.key))[1], sum(n.mentions)::bigint, sum(n.chunks)::bigint,
         jsonb_path_query_array(jsonb_agg(n.stated ORDER BY a.key IS NULL, n.key) FILTER (WHERE n.stated IS NOT NULL), '$[*][*]')
    FROM nodes_in(visible_nodes.scopes) n LEFT JOIN alias a ON a.client = visible_nodes.client AND a.alias = n.key
   WHERE visible_nodes.keys IS NULL OR n.key COLLATE "C" = ANY(names_of(visible_nodes.client, visible_nodes.keys))
   GROUP BY 1
$$;

-- The edges between these nodes, each once, with the properties of its evidence.
CREATE OR REPLACE FUNCTION visible_edges(client text, scopes int[])
RETURNS TABLE (source text, type text, target text, evidence bigint, properties jsonb) LANGUAGE sql STABLE AS $$
  SELECT coalesce(s.key, r.source), r.type, coalesce(t.key, r.target), count(DISTINCT r.chunk),
         jsonb_agg(DISTINCT r.properties) FILTER (WHERE r.properties <> '{}')
    FROM relation r
    LEFT JOIN alias s ON s.client = visible_edges.client AND s.alias = r.source
    LEFT JOIN alias t ON t.client = visible_edges.client AND t.alias = r.target
   WHERE r.scope = ANY(visible_edges.scopes) AND coalesce(s.key, r.source) <> coalesce(t.key, r.target)
   GROUP BY 1, 2, 3
$$;
