"""Every letter that one room sends another: none yet, as each room still sends its letters to itself alone.

A letter that only its own room sends stands in that room's `letters.py`.
"""
