"""The drive under test: which disk may be written and the way into it, its settings, and how it is emptied."""
