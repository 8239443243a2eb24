"""Gristmill grinds documents into knowledge, and knowledge into work, on one PostgreSQL of your own."""
