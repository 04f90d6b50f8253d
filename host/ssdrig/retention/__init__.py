"""Whether a drive keeps its data without power: written and sealed, stored, and read once, months later."""
