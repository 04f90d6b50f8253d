"""The load: fio's jobs, its clock and its logs; traces as files, and what the player keeps of each of their I/Os."""
