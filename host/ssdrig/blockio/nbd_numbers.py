"""Numbers of the NBD protocol (NetworkBlockDevice/nbd doc/proto.md) that a client needs too: apart from nbd.py, whose
Numba takes as long to import as the rest of a command's start."""

READ, WRITE, DISC, FLUSH, TRIM, CACHE, WRITE_ZEROES = range(7)
FUA, NO_HOLE = 1, 2  # request flags
