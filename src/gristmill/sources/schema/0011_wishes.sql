-- Somebody wants a poll or a listing while one runs: it may have looked already, so another one follows it.

ALTER TABLE source
  ADD poll_wanted       boolean NOT NULL DEFAULT false,  -- since the poll that runs began
  ADD listing_wanted    boolean NOT NULL DEFAULT false,  -- since the listing that runs began
  ADD listing_agreed_at timestamptz;                     -- when a person agreed that most is gone; null: a listing has used it
