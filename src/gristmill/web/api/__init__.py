"""The API: one file for each subject, each with a constant ROUTES."""
