-- Claiming a ticket touches no index: what is leased is found through what each claim noted, once, in `hand`.

-- What one claim took into a worker's hand. Written with the claim and deleted, in good time, when all of it is settled:
-- a ticket that is leased always stands in one of these, and what stands here may have been settled since.
CREATE TABLE hand (
  worker int NOT NULL,
  lease  bigint NOT NULL,
  queues text[] COLLATE "C" NOT NULL,              -- what was asked: of which queues there may be something
  tasks  bigint[] NOT NULL,
  PRIMARY KEY (worker, lease)
) WITH (toast_tuple_target = 8160, autovacuum_vacuum_cost_delay = 0);  -- a batch of ids stays on its page
INSERT INTO hand SELECT worker, lease, array_agg(DISTINCT queue), array_agg(id) FROM ticket WHERE worker IS NOT NULL GROUP BY 1, 2;

-- The tickets in somebody's hand.
CREATE VIEW leased AS
SELECT k.*, h.queues AS asked
  FROM hand h CROSS JOIN LATERAL unnest(h.tasks) AS t(id)
  JOIN ticket k ON k.id = t.id AND k.worker = h.worker AND k.lease = h.lease;

-- No index holds what claiming changes, and every page keeps room for the second version: a claim is a heap-only update.
DROP INDEX ticket_leased;
DROP INDEX ticket_ready;
DROP INDEX ticket_suspect;
ALTER TABLE ticket SET (fillfactor = 45);
CREATE INDEX ticket_ready ON ticket (queue, lane, seq, id) WHERE NOT suspect;
CREATE INDEX ticket_suspect ON ticket (queue, lane, seq, id) WHERE suspect;
