"""Power-loss testing: what is written, what the drive promised, the cut, and the exact verdict on what is left."""
