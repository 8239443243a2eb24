-- The checkpoints of runs: who may write them, how large they are, and what of them is left when a run is over.

-- name: hold_fence
-- a worker that lost the run writes no checkpoint: the next one would go on from it
SELECT id FROM agent_run WHERE id = %(run)s AND fence = %(fence)s AND state = 'running' FOR SHARE;

-- name: is_by_delegation
-- by what the two graphs begin with; none before the first node
SELECT CASE WHEN checkpoint -> 'channel_versions' ? 'most' THEN false
            WHEN checkpoint -> 'channel_versions' ? 'execution_plan' THEN true END
  FROM langgraph.checkpoints WHERE thread_id = %(thread)s AND checkpoint_ns = '' ORDER BY checkpoint_id DESC LIMIT 1;

-- name: drop_old_checkpoints
DELETE FROM langgraph.checkpoints c
 WHERE thread_id = %(thread)s
   AND (checkpoint_ns, checkpoint_id) <> ('', (SELECT max(checkpoint_id) FROM langgraph.checkpoints
                                                WHERE thread_id = %(thread)s AND checkpoint_ns = ''));

-- name: forget_parent
UPDATE langgraph.checkpoints SET parent_checkpoint_id = NULL
 WHERE thread_id = %(thread)s AND parent_checkpoint_id IS NOT NULL;

-- name: drop_writes
-- what came of tasks within a step: the last state has it all
DELETE FROM langgraph.checkpoint_writes WHERE thread_id = %(thread)s;

-- name: drop_old_values
DELETE FROM langgraph.checkpoint_blobs b
 WHERE thread_id = %(thread)s
   AND NOT EXISTS (SELECT FROM langgraph.checkpoints c
                    WHERE c.thread_id = b.thread_id AND c.checkpoint_ns = b.checkpoint_ns
                      AND c.checkpoint -> 'channel_versions' ->> b.channel = b.version);

-- name: drop_threads
-- of runs that are removed
WITH c AS (DELETE FROM langgraph.checkpoints WHERE thread_id = ANY (%(threads)s)),
     b AS (DELETE FROM langgraph.checkpoint_blobs WHERE thread_id = ANY (%(threads)s))
DELETE FROM langgraph.checkpoint_writes WHERE thread_id = ANY (%(threads)s);

-- name: list_unpruned
SELECT DISTINCT r.id FROM langgraph.checkpoints c JOIN agent_run r ON r.id = c.thread_id::bigint
 WHERE c.parent_checkpoint_id IS NOT NULL AND r.finished_at IS NOT NULL LIMIT %(most)s;

-- name: measure_checkpoints
SELECT (SELECT count(*) FROM langgraph.checkpoints WHERE thread_id = %(thread)s)::int AS checkpoints,
       ((SELECT coalesce(sum(pg_column_size(c.*)), 0) FROM langgraph.checkpoints c WHERE thread_id = %(thread)s)
        + (SELECT coalesce(sum(pg_column_size(b.*)), 0) FROM langgraph.checkpoint_blobs b WHERE thread_id = %(thread)s)
        + (SELECT coalesce(sum(pg_column_size(w.*)), 0) FROM langgraph.checkpoint_writes w WHERE thread_id = %(thread)s)
       )::bigint AS bytes;
