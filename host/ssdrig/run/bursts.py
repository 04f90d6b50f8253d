"""I/O against a drive in bursts and rests that follow a pattern, counted slot by slot."""

import contextlib
import itertools
import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from ssdrig.base.errors import SsdrigError

IO_BYTES = 256 << 10
THREADS = 4
SLOT_BYTES = 208 << 20  # most that a burst moves, spread over its slot
LAST = 0.2  # of a burst before a rest, in which no I/O begins: the last ones end before the rest
LEAD_S = 0.1  # from the start of the threads to the first slot
LOOK_S = 0.002  # between two looks whether a rest is over
OPEN_S, LATE_S = 30.0, 60.0  # for a link to open; for the last I/O to end


class Link(Protocol):
    """A connection to the drive, of one thread."""

    def read(self, offset: int, length: int, /) -> object: ...
    def write(self, offset: int, data: bytes, /) -> object: ...


Connect = Callable[[bool], contextlib.AbstractContextManager[Link]]  # True: for writes, too


class Played(NamedTuple):
    """`begin_ns`: host time of the first slot; `slot_ns`: length of each; `done_bytes`: moved in each. `ios_ns`: host
    times of the submission and of the end of each I/O, in order of submission."""

    begin_ns: int
    slot_ns: int
    done_bytes: tuple[int, ...]
    why: str = ""
    ios_ns: tuple[tuple[int, int], ...] = ()


def play(
    connect: Connect,
    slots: Sequence[bool],
    slot_s: float,
    range_bytes: int,
    write: bool = False,
    check: Callable[[], None] = lambda: None,
    thread_count: int | None = None,
) -> Played:
    """Random I/O in the slots that are True, none in the others.

    connect: opens a link to the drive, one for each thread.
    range_bytes: from the drive's beginning, that is read or written.
    write: overwrite existing data.
    check: asked ten times a second; its exceptions end the play.
    thread_count: threads that the I/O is spread over; None: THREADS.
    Returns the bytes moved; a link that fails ends its thread and is the `why`."""
    many = thread_count or THREADS
    places = max(1, range_bytes // IO_BYTES)
    length = min(IO_BYTES, range_bytes)
    data = random.randbytes(length) if write else b""
    slot_ns = round(slot_s * 1e9)
    done = [[0] * len(slots) for _ in range(many)]
    ios: list[list[tuple[int, int]]] = [[] for _ in range(many)]
    failures: list[str] = []
    ready, ending = threading.Barrier(many + 1), threading.Event()
    begin: list[int] = []

    def work(mine: list[int], own_ios: list[tuple[int, int]]) -> None:
        try:
            with connect(write) as link:
                ready.wait(OPEN_S)
                while not begin:
                    time.sleep(LOOK_S)
                while not ending.is_set():
                    slot, into_ns = divmod(time.monotonic_ns() - begin[0], slot_ns)
                    if slot >= len(slots):
                        return
                    # a fast drive's burst lasts the same time as a slow one's: the first part of a slot does not count
                    ends = not all(slots[slot : slot + 2]) and into_ns > (1 - LAST) * slot_ns
                    if slot < 0 or not slots[slot] or ends or mine[slot] >= SLOT_BYTES // many * into_ns // slot_ns:
                        time.sleep(LOOK_S)
                        continue
                    offset = random.randrange(places) * IO_BYTES
                    asked_ns = time.monotonic_ns()
                    if write:
                        link.write(offset, data)
                    else:
                        link.read(offset, length)
                    done_ns = time.monotonic_ns()
                    own_ios.append((asked_ns, done_ns))
                    ended = (done_ns - begin[0]) // slot_ns
                    mine[min(ended, len(slots) - 1)] += length
        except (SsdrigError, OSError, threading.BrokenBarrierError) as error:
            failures.append(str(error))
            ready.abort()

    threads = [threading.Thread(target=work, args=arguments, name="burst", daemon=True) for arguments in zip(done, ios)]
    for thread in threads:
        thread.start()
    with contextlib.suppress(threading.BrokenBarrierError):
        ready.wait(OPEN_S)
    begin.append(time.monotonic_ns() + round(LEAD_S * 1e9))
    until = time.monotonic() + len(slots) * slot_s + LATE_S
    try:
        while any(thread.is_alive() for thread in threads) and time.monotonic() < until:
            check()
            threads[0].join(0.1) if threads[0].is_alive() else time.sleep(0.02)
    finally:
        ending.set()
    for thread in threads:
        thread.join(LATE_S)
    moved, why = tuple(sum(counts) for counts in zip(*done, strict=True)), "; ".join(dict.fromkeys(failures))
    return Played(begin[0], slot_ns, moved, why, tuple(sorted(itertools.chain.from_iterable(ios))))
