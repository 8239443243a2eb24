-- Limiters that only handlers made go away when nobody takes from them any more; those that people set stay.
ALTER TABLE limiter ADD COLUMN configured boolean NOT NULL DEFAULT true, ADD COLUMN used_at timestamptz NOT NULL DEFAULT clock();
ALTER TABLE limiter ALTER configured SET DEFAULT false;  -- of those that are there already nobody knows who made them
