"""The kinds of commands in a history, their flags and what their status and time may be."""

import errno

# BLANK: a read that returned the guaranteed content of trimmed blocks, while no trim of them was in flight (it would
# prove more on such a trim than the verdict uses: a lost write might be passed, never an innocent drive accused)
WRITE, FLUSH, TRIM, BLANK = 1, 2, 3, 4
KINDS = {WRITE: "write", FLUSH: "flush", TRIM: "TRIM", BLANK: "read of trimmed blocks"}
FUA, ZEROS = 1, 2  # flags; ZEROS: a write of zeros, which has no data (Write Zeroes)
NOT_BLANK = -errno.ENODATA  # status of a read that was to find trimmed blocks, and did not
NEVER = (1 << 63) - 1  # done_ns of a command that has not returned
UNKNOWN = -8  # of a block (record.py): its content is not known
