"""Which disk may be written: finding it, everything that holds it, the guard that refuses, and the descriptor by which it is opened."""
