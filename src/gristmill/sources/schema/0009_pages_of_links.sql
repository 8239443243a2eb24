-- The link that a removed document was fetched from is found by it.
CREATE INDEX link_by_document ON link (document) WHERE document IS NOT NULL;
