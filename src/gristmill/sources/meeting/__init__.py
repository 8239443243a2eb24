"""Meetings as a source: a folder into which recorders put their transcripts."""
