"""Power-loss testing: the writes, the drive's guarantees, the cut, and the exact verdict on the surviving data."""
