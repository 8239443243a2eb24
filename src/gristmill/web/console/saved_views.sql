-- Views of lists that people keep.

-- name: list_views
SELECT id, name, query FROM saved_view WHERE scope = %(scope)s AND page = %(page)s ORDER BY lower(name), id;

-- name: count_others
SELECT count(*)::int FROM saved_view WHERE scope = %(scope)s AND page = %(page)s AND name <> %(name)s;

-- name: save_view
INSERT INTO saved_view (scope, page, name, query) VALUES (%(scope)s, %(page)s, %(name)s, %(query)s)
ON CONFLICT (scope, page, name) DO UPDATE SET query = excluded.query
RETURNING id, name, query;

-- name: remove_view
DELETE FROM saved_view WHERE scope = %(scope)s AND id = %(id)s RETURNING id, name, query;
