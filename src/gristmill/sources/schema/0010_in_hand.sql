-- Whether an item is being indexed is seen by who holds its task, and no longer written down (`item_in_hand`).

UPDATE source_item SET state = 'NEW' WHERE state = 'INDEXING';
ALTER TABLE source_item
  DROP CONSTRAINT source_item_state_check,
  ADD CONSTRAINT source_item_state_check CHECK (state IN ('NEW', 'INDEXED', 'SET_ASIDE', 'DELETED'));
