-- Every queue has a breaker unless somebody takes it away, and time-outs are counted by themselves.
ALTER TABLE queue ALTER breaker_threshold SET DEFAULT 0.3, ALTER breaker_minimum SET DEFAULT 20;
UPDATE queue SET breaker_threshold = 0.3, breaker_minimum = greatest(breaker_minimum, 20) WHERE breaker_threshold IS NULL;
ALTER TABLE queue_health ADD COLUMN timed_out int NOT NULL DEFAULT 0;
