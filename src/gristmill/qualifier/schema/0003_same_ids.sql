-- Mails that say the Message-ID of another mail are told apart from it by what a person sees of them.
-- needs: queue, documents, sources
ALTER TABLE item_source
  ADD COLUMN said_id text COLLATE "C",
  ADD COLUMN digest text COLLATE "C",
  ADD COLUMN is_double boolean NOT NULL DEFAULT false;
CREATE INDEX item_source_by_said_id ON item_source (scope, said_id) WHERE said_id IS NOT NULL;
ALTER TABLE sent_mail ADD COLUMN digest text COLLATE "C";
