"""What is done with documents, phase by phase: a handler each."""
