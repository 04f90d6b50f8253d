"""Whose process is at the other end of a connection over loopback, as the kernel reports (sock_diag(7))."""

import os
import socket
import struct

SOCK_DIAG, BY_FAMILY, REQUEST = 4, 20, 1  # linux/netlink.h, linux/sock_diag.h
HEAD = struct.Struct("=IHHII")  # of a netlink message: length, kind, flags, number, port
SOCKET = struct.Struct(">HH16s16s")  # of a socket: its port and the other's, its address and the other's
BEFORE, BEHIND = struct.Struct("=BBBxI"), struct.Struct("=III")  # of the request: what kinds; device, cookie
ANSWER = struct.Struct("=4x48x12xII")  # struct inet_diag_msg: user, inode
NO_COOKIE, MOST_BYTES, PATIENCE_S = 0xFFFFFFFF, 4096, 1.0


def uid(ours: tuple, theirs: tuple) -> int | None:
    """The user id of the process whose socket `theirs` (host, port) is connected to `ours`; None if unknown."""
    family = socket.AF_INET6 if ":" in theirs[0] else socket.AF_INET
    try:
        addresses = [socket.inet_pton(family, host).ljust(16, b"\0") for host in (theirs[0], ours[0])]
        asked = SOCKET.pack(theirs[1], ours[1], *addresses) + BEHIND.pack(0, NO_COOKIE, NO_COOKIE)
        asked = BEFORE.pack(family, socket.IPPROTO_TCP, 0, 0xFFFFFFFF) + asked
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, SOCK_DIAG) as kernel:
            kernel.settimeout(PATIENCE_S)
            kernel.sendto(HEAD.pack(HEAD.size + len(asked), BY_FAMILY, REQUEST, 1, 0) + asked, (0, 0))
            answer = kernel.recv(MOST_BYTES)
        if HEAD.unpack_from(answer)[1] != BY_FAMILY:
            return None
        user, inode = ANSWER.unpack_from(answer, HEAD.size)
    except (OSError, struct.error):
        return None
    return user if inode else None  # the kernel reports root for a closed socket


def is_ours(ours: tuple | None, theirs: tuple | None) -> bool:
    """Whether it is a process of this user, or of root."""
    return ours is not None and theirs is not None and uid(ours, theirs) in (os.geteuid(), 0)
