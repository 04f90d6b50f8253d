"""What a trace can be played on."""

from ssdrig.load import trace_aio
from ssdrig.load.trace_player import SLOTS


def nbd(socket: str, longest: int):
    """The virtual drive at a unix socket; a context manager. Raises DriveError."""
    from ssdrig.load.trace_nbd import NbdPipe  # imports numba, which a play on a real drive does not need

    return NbdPipe(socket, SLOTS, trace_aio.pool(longest), trace_aio.pool_offsets)


def device(node: str, longest: int) -> trace_aio.Aio:
    """A block device or a file; a context manager. Raises DriveError, ToolMissing."""
    return trace_aio.Aio(node, SLOTS, longest)


def named(target: str, longest: int):
    """By what fio calls it: nbd+unix:///?socket=PATH, or a node. Raises as the others."""
    if target.startswith("nbd+unix:"):
        from ssdrig.blockio.nbd import address

        return nbd(str(address(target)[0]), longest)
    return device(target, longest)
