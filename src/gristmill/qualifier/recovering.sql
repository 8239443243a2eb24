-- Items that wait for something that will not come.

-- name: hold_mark
INSERT INTO item_sweep (mark) VALUES (clock() - %(first)s::interval) ON CONFLICT (one) DO UPDATE SET mark = item_sweep.mark
RETURNING mark;

-- name: set_mark
UPDATE item_sweep SET mark = %(mark)s;

-- name: overdue
SELECT id FROM item WHERE state = 'new' AND changed_at < clock() - %(patience)s::interval ORDER BY changed_at LIMIT %(limit)s;

-- name: lost
-- a task that failed or was cancelled says so at once; one that is gone, or ended otherwise, may just be settling
SELECT i.id, t.outcome::text AS outcome, t.error
  FROM item i LEFT JOIN task t ON t.id = i.task
 WHERE i.state IN ('ready_for_qualification', 'qualifying', 'ready_for_execution', 'dispatched', 'running')
   AND (t.outcome IN ('failed', 'cancelled')
        OR (t.id IS NULL OR t.outcome IS NOT NULL) AND i.changed_at < clock() - %(stale)s::interval)
 ORDER BY i.changed_at LIMIT %(limit)s;
