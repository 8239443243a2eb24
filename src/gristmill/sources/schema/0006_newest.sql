-- Of two items that are the same thing, the newer one is shown.

ALTER TABLE source_item ADD updated_at timestamptz;  -- when its content was last changed, as its source says; null: it does not
