"""Wikis as a source: Confluence, and folders of Markdown pages."""
