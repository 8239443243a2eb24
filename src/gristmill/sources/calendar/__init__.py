"""Calendars as a source: files of events, and servers that speak CalDAV."""
