"""How the server plans the statements of a worker's own connections."""

# For statements that leave the planner no choice: one plan serves while a table grows from nothing to millions.
PLANNED_ONCE = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
}
