-- Items that are about to go, and may come back before they are gone.

-- A listing found it gone, and its removal waits in line; whoever sees it at its source again takes this back.
ALTER TABLE source_item ADD leaving boolean NOT NULL DEFAULT false;

-- What a mail weighs stays in its row while it waits for the indexer.
ALTER TABLE source_raw SET (toast_tuple_target = 8160);
