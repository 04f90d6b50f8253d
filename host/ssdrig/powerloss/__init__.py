"""Power-loss testing, its pure core: what is written, what the drive promised, and the exact verdict after a cut."""
