"""How much of the time until a drive was ready a host without a CPU to spare may have added.

A drive that a kernel serves works while this host does not; the delay is then the host's. A server on this host is
late itself. So both are bounded: the time for which this process waited for a CPU, and that for which the server did.
The longest that a chain of threads can wait is the sum over them, and the wait of any process is at most the time in
which some process of the host waited (witness.waited_s())."""

import os
import time
from typing import NamedTuple

from ssdrig.drive import witness

TICKS = os.sysconf("SC_CLK_TCK")


class Waited(NamedTuple):
    """Waits for a CPU until `t_ns` (CLOCK_MONOTONIC), s, None: not known. `own_s`: of this process; `host_s`: in which
    any process waited; `server_s`: of the process `server`, which began `age_s` before, at `began`
    (witness.began_ticks())."""

    t_ns: int
    own_s: float | None
    host_s: float | None
    server: int | None = None
    began: int | None = None
    age_s: float | None = None
    server_s: float | None = None


def now(server: int | None = None) -> Waited:
    """The waits until now; `server`: the process that serves the drive, where it is known."""
    own_s, host_s = witness.process_waited_s(), witness.waited_s()
    t_ns, began = time.monotonic_ns(), witness.began_ticks(server) if server else None
    if server is None or began is None:
        return Waited(t_ns, own_s, host_s)
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - began / TICKS
    return Waited(t_ns, own_s, host_s, server, began, age_s, witness.process_waited_s(server))


def own_s(before: Waited | None, after: Waited) -> float | None:
    """For how long this process waited between the two; None: not known."""
    return _between(before.own_s if before else None, after.own_s)


def server_s(before: Waited | None, after: Waited) -> float | None:
    """The longest that the server of `after` may have waited for a CPU since `before`, or the process that started it;
    None: not known."""
    if before is None:
        return None
    host_s = _between(before.host_s, after.host_s)
    if after.server_s is None or after.age_s is None:
        return host_s
    if (before.server, before.began) == (after.server, after.began) and before.server_s is not None:
        return max(0.0, after.server_s - before.server_s)
    unborn_s = max(0.0, (after.t_ns - before.t_ns) / 1e9 - after.age_s)  # the process that starts it may have waited
    most_s = unborn_s + after.server_s
    return most_s if host_s is None else min(host_s, most_s)


class Looks(NamedTuple):
    """At a drive that has come back. Times from the earliest one of the return of power, s. `failed_s`: when the last
    look began that was not answered, 0.0 without one; `asked_s`: when the look began that was; `prove`: who is
    not answered knows that the drive was away, because the kernel is not involved."""

    failed_s: float
    asked_s: float
    prove: bool


def ready_least_s(ready_s: float, on_late_s: float, looks: Looks, own_s: float | None, server_s: float | None) -> float:
    """The least time in which a drive can have become ready that was seen to be after `ready_s` from the earliest time
    of the return of power, `on_late_s` before the latest. `own_s`, `server_s`: see above; 0.0 of a drive without a
    server, None: not known."""
    if server_s is None:
        return 0.0
    blind_s = looks.asked_s - looks.failed_s  # without a look
    by_waits_s = 0.0 if own_s is None else ready_s - own_s - blind_s
    least_s = max(by_waits_s, looks.failed_s if looks.prove else 0.0)
    return min(ready_s, max(0.0, least_s - on_late_s - server_s))


def _between(before_s: float | None, after_s: float | None) -> float | None:
    return None if before_s is None or after_s is None else max(0.0, after_s - before_s)
