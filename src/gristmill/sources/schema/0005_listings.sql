-- A full listing has counters of its own: polls that succeed beside it neither hide nor excuse its failures.

ALTER TABLE source
  ADD listing_failures     int NOT NULL DEFAULT 0,       -- in a row
  ADD listing_error        text,                         -- why the last listing did not reach its end
  ADD listing_succeeded_at timestamptz,                  -- when one last did
  ADD awaits_agreement     boolean NOT NULL DEFAULT false,  -- most items seemed gone: no listing until a person says so
  ADD CHECK (listing_error IS NOT NULL OR (listing_failures = 0 AND NOT awaits_agreement));

UPDATE source SET listing_succeeded_at = listed_at;
