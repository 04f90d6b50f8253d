"""The run folders of a place as one archive: an index of them, a search, and what people say of a run (title, tags)."""
