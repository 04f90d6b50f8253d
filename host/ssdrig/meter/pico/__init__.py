"""Our board as a meter: its serial line, its frames, its rails."""
