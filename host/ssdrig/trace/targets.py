"""What a trace can be played on."""

from ssdrig.trace import aio
from ssdrig.trace.player import SLOTS


def nbd(socket: str, longest: int):
    """The virtual drive at a unix socket; a context manager. Raises DriveError."""
    from ssdrig.virtual.nbdpipe import NbdPipe  # imports numba, which a play on a real drive does not need

    return NbdPipe(socket, SLOTS, aio.pool(longest), aio.pool_offsets)


def device(node: str, longest: int) -> aio.Aio:
    """A block device or a file; a context manager. Raises DriveError, ToolMissing."""
    return aio.Aio(node, SLOTS, longest)


def named(target: str, longest: int):
    """By what fio calls it: nbd+unix:///?socket=PATH, or a node. Raises as the others."""
    if target.startswith("nbd+unix:"):
        from ssdrig.virtual.nbdclient import address

        return nbd(str(address(target)[0]), longest)
    return device(target, longest)
