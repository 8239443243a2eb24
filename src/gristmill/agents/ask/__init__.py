"""Ask: from a question to passages, from passages to checked sentences."""
