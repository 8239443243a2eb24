"""The console: one file and one template for each page."""
