"""The run folder: the journal and its records, their digests, parts, names, notes and labels."""
