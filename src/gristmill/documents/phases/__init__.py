"""The phases of documents: their definition, and a handler for each."""
