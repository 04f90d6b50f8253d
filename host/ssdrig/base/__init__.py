"""What every room may use: errors, files, units and words, arguments, progress, the terminal, the latch."""
