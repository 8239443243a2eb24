-- Around settling: plans for what handlers write, and which claims are still ours.

-- name: plan_anew
-- for this transaction alone: plan the handlers' writes, and statements prepared while a table was small, for its size of today
SELECT set_config('plan_cache_mode', 'force_custom_plan', true), count(set_config(name, 'on', true))
  FROM unnest(%(names)s::text[]) AS s(name);

-- name: still_mine
SELECT k.id FROM ticket k JOIN unnest(%(ids)s::bigint[], %(leases)s::bigint[]) AS g(id, lease) USING (id, lease)
 WHERE k.worker = %(worker)s;
