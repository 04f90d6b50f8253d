"""Whether the kernel gives this process an io_uring."""

import ctypes
import os

SETUP = 425  # io_uring_setup, on every architecture since Linux 5.1 (asm-generic/unistd.h)
FORBIDDEN = "the kernel does not allow io_uring (/proc/sys/kernel/io_uring_disabled, or a container's filter)"
PARAMS_BYTES = 120  # of struct io_uring_params (linux/io_uring.h)


def allowed() -> bool:
    """Asked by the call itself: the kernel may lack it (before 5.1), a setting forbid it
    (/proc/sys/kernel/io_uring_disabled, since 6.6), or a container's filter."""
    ring = ctypes.CDLL(None, use_errno=True).syscall(SETUP, 1, ctypes.byref(ctypes.create_string_buffer(PARAMS_BYTES)))
    if ring < 0:
        return False
    os.close(ring)
    return True
