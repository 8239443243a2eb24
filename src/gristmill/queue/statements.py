"""The queue's named statements, and how the server is to plan some of them."""

from gristmill.db import queries

SQL = queries("gristmill.queue", "queue.sql")
LEASE_LOST = "GM001"  # what fence() raises
CHANNEL = "gristmill"

# For statements that leave the planner no choice: one plan serves while a table grows from nothing to millions.
PLANNED_ONCE = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
}
