"""The drive under test: inventory, write protection, SMART counters and wear."""
