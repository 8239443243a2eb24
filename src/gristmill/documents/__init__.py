"""Documents: from files to pages to chunks, phase by phase, each unit by itself."""
