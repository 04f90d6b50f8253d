"""Which disk may be written: finding it, everything that holds it, the guard that refuses, the way into it."""
