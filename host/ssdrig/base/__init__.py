"""What every room may use and what imports no other: errors, files, units and words, arguments, progress, the terminal, the latch."""
