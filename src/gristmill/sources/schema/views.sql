-- Items as people see them.

-- The items whose task a worker holds at this moment: they are INDEXING. It is not written down in their rows, since it would be
-- another version of each row in every index, for the second that it is true.
CREATE VIEW item_in_hand WITH (security_invoker) AS
SELECT i.id AS item, i.source
  FROM leased k
  JOIN task t ON t.id = k.id AND t.kind = 'index.item'
  JOIN source_item i ON i.id = (t.payload ->> 'item')::bigint AND i.version = (t.payload ->> 'version')::int
 WHERE k.queue = 'index' AND i.state = 'NEW';

-- The items whose document could not be opened, or not as a whole: they are FAILED. That stands with the tasks of the document,
-- and ends when somebody tries these again with success.
CREATE VIEW item_unreadable WITH (security_invoker) AS
SELECT i.id AS item, i.source, u.error
  FROM document_unreadable u
  JOIN source_item i ON i.scope = u.scope AND i.urn = u.urn AND i.document = u.document
 WHERE i.state = 'INDEXED';
