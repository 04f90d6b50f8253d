"""What a drive and its host are set to, and the kernel's own counts of it."""
