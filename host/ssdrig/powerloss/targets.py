"""The targets of a power-loss test."""

from ssdrig.base.errors import DriveError
from ssdrig.blockio import aio as linux_aio
from ssdrig.blockio.slots import Transport


def connected(target: str, queues: int = 1) -> Transport:
    """nbd+unix:///EXPORT?socket=PATH, nbd://HOST[:PORT]/EXPORT, or a node or file. `queues`: connections to a server,
    CPUs that submit to a device (Aio.spread). Raises DriveError, UsageError."""
    from ssdrig.powerloss.transports import Aio, Connections, Nbd, Threads  # slow to import: compiled code

    if target.startswith("nbd"):
        return Connections(target, queues) if queues > 1 else Nbd(target)
    if linux_aio.known():
        try:
            linux_aio.Context(1).close()
        except DriveError:  # a container that forbids it, or no contexts left
            pass
        else:
            return Aio(target, queues)
    return Threads(target)
