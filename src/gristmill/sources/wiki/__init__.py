"""Wikis as a source: folders of Markdown pages."""
