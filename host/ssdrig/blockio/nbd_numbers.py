"""Numbers and formats of the NBD protocol (NetworkBlockDevice/nbd doc/proto.md), for the client, the server and the
compiled code of both; apart from nbd_protocol.py, whose Numba takes as long to import as the rest of a command's
start."""

import struct

READ, WRITE, DISC, FLUSH, TRIM, CACHE, WRITE_ZEROES = range(7)
FUA, NO_HOLE = 1, 2  # flags of a request
CAN_MULTI_CONN = 1 << 8  # flag of an export: a FLUSH on one connection covers all
SEND_FLUSH, SEND_FUA, SEND_TRIM, SEND_WRITE_ZEROES = (
    1 << 2,
    1 << 3,
    1 << 5,
    1 << 6,
)  # flags of an export: supported commands
REQUEST = struct.Struct(">IHHQQI")  # magic, flags, number above, cookie, offset, length
REPLY = struct.Struct(">IIQ")  # magic, errno, cookie
REQUEST_MAGIC, REPLY_MAGIC = 0x25609513, 0x67446698

GREETING = b"NBDMAGICIHAVEOPT"
FIXED_NEWSTYLE, NO_ZEROES = 1, 2  # flags of the greeting, and of the answer to it
OPTION = struct.Struct(">8sII")  # magic, option, bytes that follow
OPTION_REPLY = struct.Struct(">QIII")  # magic, option, kind, bytes that follow
OPTION_MAGIC, OPTION_REPLY_MAGIC = b"IHAVEOPT", 0x3E889045565A9
EXPORT_NAME, ABORT, LIST, INFO, GO = 1, 2, 3, 6, 7  # options
ACK, SERVER, INFO_REPLY = 1, 2, 3  # kinds of replies to them
IS_ERROR, ERR_UNSUP, ERR_INVALID = 1 << 31, 0x80000001, 0x80000003
INFO_EXPORT, INFO_BLOCK_SIZE = 0, 3  # what an INFO_REPLY is about
