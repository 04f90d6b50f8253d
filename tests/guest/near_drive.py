"""In the guest: a drive of its kernel at the end of connections to the tests' machine (far_drive.py), where the
campaign runs, for the guest takes a minute to load compiled code. Here are the guard's hold on the drive, its promise,
and the writer's way into the kernel (powerloss/transports.py), of which two functions are plain Python here.

A line of the first connection asks for something; the answer is a line of JSON. Each link to the drive has a connection
of its own, and a thread."""

import contextlib
import json
import os
import select
import socket
import struct
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np

HEAD = struct.Struct("<III")  # rows, bytes of data behind them, bytes of text behind those
ASKED = np.dtype([("slot", "<i8"), ("kind", "<i8"), ("flags", "<i8"), ("offset", "<i8"), ("length", "<i8")])
ENDED = np.dtype([("slot", "<i8"), ("status", "<i8")])
CLOSE = 0xFFFFFFFF  # rows
LOOK_NS = 2_000_000, 30_000_000  # for ends, before it is looked for requests again: at first, and when none come


def main(serial: str, host: str, port: int) -> None:
    """Hold the drive until the other side goes."""
    plain = lambda *of, **_: of[0] if of else plain
    sys.modules["numba"] = SimpleNamespace(njit=lambda *_, **__: plain)
    sys.modules["ssdrig.base.kernels"] = SimpleNamespace(jit=plain)
    from ssdrig.base.errors import SsdrigError
    from ssdrig.drive import guard, inventory
    from ssdrig.powerloss.filesystems import Filesystems
    from ssdrig.powerloss.target import of_held

    def linked() -> bool:
        link = target.open()
        threading.Thread(target=serve, args=(link, socket.create_connection((host, port))), daemon=True).start()
        return link.can_trim

    opened: list[int] = []
    drivers: list[Filesystems] = []

    def always() -> bool:
        target.slot.always = True
        return target.slot.removes

    def filesystems(request: dict):
        if request["do"] == "open":
            return drivers.append(target.filesystems(request["asked"]))
        if request["do"] == "close":
            return drivers.pop().close()
        return getattr(drivers[-1], request.pop("do"))(**request)

    with (
        contextlib.closing(socket.create_connection((host, port))) as control,
        guard.hold(inventory.find(serial), serial) as held,
    ):
        target = of_held(held, ("", ""), False)
        actions = {
            "open": linked,
            "promise": lambda: target.promise()._asdict(),
            "away": target.away,
            "back": lambda: target.back() or held.drive.node,
            "keep open": lambda: opened.append(os.open(held.drive.node, os.O_RDONLY)),
            "slot place": lambda: {
                "kind": target.slot.place.kind,
                "hotplug": target.slot.place.hotplug,
                "words": target.slot.place.words,
                "drops": target.slot.place.drops,
            },
            "slot removes": lambda: target.slot.removes,
            "slot appearances": lambda: target.slot.appearances,
            "slot dropped": lambda: target.slot.dropped,
            "slot lost_power": target.slot.lost_power,
            "slot drop": target.slot.drop,
            "slot always": always,
            "now": time.monotonic_ns,
            "drive": lambda: [held.drive.node, held.drive.capacity_bytes, target.queues_deleted, target.cannot],
        }
        for line in control.makefile("r"):
            word, _, request = line.strip().partition(" {")
            try:
                answer = {"said": filesystems(json.loads("{" + request)) if request else actions[word]()}
            except SsdrigError as error:
                words, facts = [error.expected, error.seen, error.do], getattr(error, "facts", {})
                answer = {"error": type(error).__name__, "words": words, "facts": facts}
            control.sendall(json.dumps(answer).encode() + b"\n")


def serve(link, sock: socket.socket) -> None:
    """Carry requests to the link, and what has ended back."""
    ended, (look_ns, most_ns) = np.zeros(link.slots.n, np.int64), LOOK_NS
    with contextlib.closing(sock):
        while True:
            if select.select([sock], [], [], 0 if link.under_way else None)[0]:
                n, size, _ = HEAD.unpack(taken(sock, HEAD.size))
                if n == CLOSE:
                    break
                asked = np.frombuffer(taken(sock, n * ASKED.itemsize), ASKED)
                submit(link, asked, memoryview(taken(sock, size)))
                look_ns = LOOK_NS[0]
            if link.under_way:
                got = link.reap(ended, look_ns)
                look_ns = LOOK_NS[0] if got else min(2 * look_ns, most_ns)
                if got:
                    sock.sendall(answered(link, ended[:got]))
        link.close()


def submit(link, asked: np.ndarray, data: memoryview) -> None:
    from ssdrig.powerloss.history import WRITE

    slots, order, at = link.slots, asked["slot"].copy(), 0
    for name in ("kind", "flags", "offset", "length"):
        getattr(slots, name)[order] = asked[name]
    for row in asked[asked["kind"] == WRITE].tolist():
        begin, length = row[0] * slots.bytes_each, row[4]
        slots.memory[begin : begin + length] = data[at : at + length]
        at += length
    link.submit(order, len(order))


def answered(link, ended: np.ndarray) -> bytes:
    from ssdrig.powerloss.history import BLANK

    slots, rows = link.slots, np.zeros(len(ended), ENDED)
    rows["slot"], rows["status"] = ended, slots.status[ended]
    read = [slot for slot in ended.tolist() if slots.kind[slot] == BLANK and slots.status[slot] == 0]
    data = b"".join(slots.memory[s * slots.bytes_each : s * slots.bytes_each + int(slots.length[s])] for s in read)
    gone = link.gone.encode()
    return HEAD.pack(len(rows), len(data), len(gone)) + rows.tobytes() + data + gone


def taken(sock: socket.socket, n: int) -> bytearray:
    """So many bytes. Raises EOFError where they do not come."""
    out, at = bytearray(n), 0
    while at < n:
        got = sock.recv_into(memoryview(out)[at:])
        if not got:
            raise EOFError
        at += got
    return out
