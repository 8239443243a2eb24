-- Around settling: plans for what handlers write, and which claims are still ours.

-- name: plan_anew
-- in this transaction: what handlers write, and what was prepared when a table was small, is planned for the tables of today
SELECT set_config('plan_cache_mode', 'force_custom_plan', true), count(set_config(name, 'on', true))
  FROM unnest(%(names)s::text[]) AS s(name);

-- name: still_mine
SELECT k.id FROM ticket k JOIN unnest(%(ids)s::bigint[], %(leases)s::bigint[]) AS g(id, lease) USING (id, lease)
 WHERE k.worker = %(worker)s;
