-- The versions of a source, and the texts of those that were replaced.

-- name: list_versions
SELECT v.version, v.document, v.name, v.title, v.type, v.added_at, v.replaced_at, v.pages
  FROM document d
 CROSS JOIN LATERAL (
   SELECT o.version, o.id AS document, o.name, o.title, o.type, o.added_at, NULL::timestamptz AS replaced_at, o.pages
     FROM document o WHERE o.scope = d.scope AND o.urn = d.urn
   UNION ALL
   SELECT f.version, NULL, f.name, f.title, f.type, f.added_at, f.replaced_at, f.pages
     FROM former_version f WHERE f.scope = d.scope AND f.urn = d.urn) v
 WHERE d.id = %(id)s ORDER BY v.version DESC;

-- name: load_version_text
SELECT coalesce(
         (SELECT f.text FROM former_version f WHERE f.scope = d.scope AND f.urn = d.urn AND f.version = %(version)s),
         (SELECT coalesce((SELECT string_agg(p.text, E'\f' ORDER BY p.number) FROM page p WHERE p.document = o.id), '')
            FROM document o WHERE o.scope = d.scope AND o.urn = d.urn AND o.version = %(version)s))
  FROM document d WHERE d.id = %(id)s;

-- name: keep_texts
-- only of versions that were whole
INSERT INTO former_version (scope, urn, version, name, title, type, added_at, pages, text)
SELECT d.scope, d.urn, d.version, d.name, d.title, d.type, d.added_at, coalesce(d.pages, 0), t.text
  FROM document d
 CROSS JOIN LATERAL (
   SELECT coalesce(string_agg(p.text, E'\f' ORDER BY p.number), '') AS text FROM page p WHERE p.document = d.id
   HAVING coalesce(sum(length(p.text)), 0) <= %(longest)s) t
 WHERE d.id = ANY (%(ids)s) AND d.completed_at IS NOT NULL
   AND EXISTS (SELECT FROM document n WHERE n.scope = d.scope AND n.urn = d.urn AND n.version > d.version AND n.hash <> d.hash)
ON CONFLICT (scope, urn, version) DO NOTHING;

-- name: forget_oldest
DELETE FROM former_version f USING document d
 WHERE d.id = ANY (%(ids)s) AND f.scope = d.scope AND f.urn = d.urn AND f.version <= d.version - %(kept)s;

-- name: sources_of
SELECT DISTINCT scope, urn FROM document WHERE id = ANY (%(ids)s);

-- name: forget_texts
DELETE FROM former_version f USING unnest(%(scopes)s::int[], %(urns)s::text[]) AS gone (scope, urn)
 WHERE f.scope = gone.scope AND f.urn = gone.urn
   AND NOT EXISTS (SELECT FROM document d WHERE d.scope = gone.scope AND d.urn = gone.urn);
