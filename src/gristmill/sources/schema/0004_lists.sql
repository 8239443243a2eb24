-- Lists of items and links read as much as they show, whatever else is stored.

CREATE INDEX source_item_by_source ON source_item (source, id);

CREATE INDEX link_by_scope ON link (scope, state, id);
DROP INDEX link_by_state;
