"""Two unix sockets next to the drive's NBD socket, one JSON line in, one JSON line out.

PATH.admin  what a host may ask of a drive: identify, log, smartctl, format, flush, shut down, the switch of its supply
PATH.truth  what no drive reports: the ledger. For comparison only; nothing of the measuring side may read it

    {"op": "identify"}                          model, serial, capacity ...
    {"op": "log", "lid": 2 | 192 | 9}           {"hex": the page, 512 bytes}
    {"op": "smartctl"}                          the document of `smartctl --json=cv -x`
    {"op": "flush"}, {"op": "format"}           {} when it is done
    {"op": "shut_down"}                         {} when power may go (NVMe: CC.SHN; ATA: STANDBY IMMEDIATE)
    {"op": "pace", "since": n}                  {"next", "rows"}: how late it answered, from second n on (pace.py)
    {"op": "get_feature", "fid": 2 | 12 | 16}   {"value", "hex"}: NVMe features of power and temperature (power.py)
    {"op": "set_feature", "fid": ..., "value": n, "hex": "..."}     {} when it is done; hex: the data, of 12 alone
    {"op": "power_cut", "t_ns": n}              {"pages_lost": n}; t_ns: when the rail crossed the lock-out, or now
    {"op": "power_on", "wait": true or false}   {} when the drive answers again, or immediately

    {"op": "ledger"}                            every count and energy since the drive was made
    {"op": "energy", "t0_ns": a, "t1_ns": b}    {"energy_J"} between two CLOCK_MONOTONIC times, in model time
    {"op": "pe"}                                {"pe_cycles": [of each block]}
    {"op": "retention"}                         what no longer can be read, or only by retries (ageing.truth)
    {"op": "keep", "folder": path or null}      {}: write the drive there at the end (persistence.py)

A request that cannot be done is answered {"error": words}; the connection stays."""

import json
import socket
import time

from ssdrig.virtual.device import smartlog
from ssdrig.virtual.device.device import Device
from ssdrig.virtual.device.waiting import send
from ssdrig.virtual.flash import ageing

MAX_LINE_BYTES = 65536


def answer_admin(device: Device, request: dict, now_ns: int) -> tuple[dict, int]:
    """Reply and the host time from which it may be given."""
    op = request["op"]
    if op == "power_on":
        if device.supplied:
            return {"error": "the drive has power already"}, now_ns
        ready_ns = device.power_on(now_ns)
        return {}, ready_ns if request.get("wait", True) else now_ns
    if op == "identify":
        return device.identity(), now_ns
    if op == "power_cut" and device.supplied:
        return device.power_cut(now_ns, request.get("t_ns")), now_ns
    if op == "pace":
        return device.pace.read(int(request["since"]), now_ns, device.latency_ns * device.dilation), now_ns
    if not device.powered:
        return {"error": "the drive has no power"}, now_ns
    if op == "log":
        counters = device.health()
        make = (has := smartlog.pages(counters)).get(request.get("lid", 0))
        if make is None:
            return {"error": f"no log page {request.get('lid')}; there are {sorted(has)}"}, now_ns
        return {"hex": make(counters).hex()}, now_ns
    if op == "smartctl":
        return smartlog.smartctl_document(device.identity(), device.health(), int(time.time())), now_ns
    if op in ("get_feature", "set_feature"):
        return _feature(device, request, now_ns)
    if op == "flush":
        return {}, device.flush(now_ns)
    if op == "shut_down":
        return {}, device.shut_down(now_ns)
    if op == "format":
        return {}, device.format(now_ns)
    return {"error": f"unknown op {op!r}"}, now_ns


def _feature(device: Device, request: dict, now_ns: int) -> tuple[dict, int]:
    fid = request["fid"]
    if not device.power.has(fid):
        return {"error": f"no feature {fid}"}, now_ns
    if request["op"] == "get_feature":
        value, data = device.power.get(fid, now_ns)
        return {"value": value, "hex": (data or b"").hex()}, now_ns
    return {}, device.power.set(fid, int(request["value"]), bytes.fromhex(request.get("hex", "")), now_ns)


def answer_truth(device: Device, request: dict, now_ns: int) -> tuple[dict, int]:
    op = request["op"]
    if op == "ledger":
        return device.truth(now_ns), now_ns
    if op == "energy":
        t0_ns, t1_ns = int(request["t0_ns"]), int(request["t1_ns"])
        if not device.t0_ns <= t0_ns <= t1_ns <= now_ns:
            return {"error": f"only times between {device.t0_ns} and now ({now_ns}) are known"}, now_ns
        return {"energy_J": device.energy_J(t0_ns, t1_ns)}, now_ns
    if op == "pe":
        return {"pe_cycles": [int(n) for n in device.drive.pe_counts()]}, now_ns
    if op == "retention":
        return ageing.truth(device.drive, ageing.levels(device.drive)), now_ns
    if op == "keep":
        device.keep(request["folder"])
        return {}, now_ns
    return {"error": f"unknown op {op!r}"}, now_ns


class LineConnection:
    """Someone at one of the two sockets. Requests are answered one after another; closed once the socket is gone."""

    def __init__(self, sock: socket.socket, device: Device, answer):
        sock.setblocking(False)
        self.sock, self.device, self.answer = sock, device, answer
        self.closed = False
        self._in = self._out = b""
        self._held: list[tuple[int, bytes]] = []  # at most one: (due, reply)

    def fileno(self) -> int:
        return self.sock.fileno()

    wants_read = property(lambda self: not self._held and not self._out)
    wants_write = property(lambda self: bool(self._out))
    next_due_ns = property(lambda self: self._held[0][0] if self._held else -1)

    def close(self) -> None:
        self.closed = True
        self.sock.close()

    def receive(self) -> None:
        try:
            more = self.sock.recv(MAX_LINE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            more = b""
        self._in += more
        if not more or (b"\n" not in self._in and len(self._in) > MAX_LINE_BYTES):
            self.close()
            return
        self._next()

    def _next(self) -> None:
        if self._held or self._out or b"\n" not in self._in:
            return
        line, self._in = self._in.split(b"\n", 1)
        now = time.monotonic_ns()
        try:
            reply, due = self.answer(self.device, json.loads(line), now)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as e:
            reply, due = {"error": f"expected one line of JSON with its op; seen {type(e).__name__}: {e}"}, now
        self._held.append((due, json.dumps(reply).encode() + b"\n"))

    def reply(self, now_ns: int) -> None:
        if self._held and self._held[0][0] <= now_ns:
            self._out += self._held.pop()[1]
        if self._out:
            sent = send(self.sock, self._out)
            if sent is None:
                self.close()
                return
            self._out = self._out[sent:]
            if not self._out:
                self._next()
