"""A drive of the guest's kernel, for a campaign on this machine: a target of which every part is carried out in the
guest (near_drive.py)."""

import json
import select
import socket
import threading
import time
from types import SimpleNamespace

import numpy as np

from guest.near_drive import ASKED, CLOSE, ENDED, HEAD
from guest.power import HOST
from ssdrig.base import errors
from ssdrig.blockio.slots import Slots
from ssdrig.powerloss.history import BLANK, WRITE
from ssdrig.powerloss.promise import Promise
from ssdrig.powerloss.target import Target

SERVE = "import sys; from guest import near_drive; near_drive.main(sys.argv[0], sys.argv[1], int(sys.argv[2]))"
PATIENCE_S = 300  # a guest that gets a tenth of a processor stands still for minutes
ASKED_AGAIN = 2
LOOK_S = 0.05


class FarSlot:
    """The slot of a drive of the guest (drive/slot.py)."""

    def __init__(self, ask):
        self._ask, self.__dict__["always"] = ask, False

    def __setattr__(self, name, value):
        self.__dict__[name] = value
        if name == "always" and value:
            self._ask("slot always")

    def __getattr__(self, name):
        return self._ask(f"slot {name}")

    @property
    def place(self):
        return SimpleNamespace(**self._ask("slot place"))

    def lost_power(self) -> bool:
        time.sleep(LOOK_S)  # each answer costs the guest some ms of its processor
        return self._ask("slot lost_power")

    def drop(self) -> None:
        self._ask("slot drop")


class FarFilesystems:
    """File systems of the guest (powerloss/filesystems.py), whose times are put on this machine's clock."""

    def __init__(self, ask, asked):
        self._ask = ask
        self._do("open", asked=asked)

    def make(self, block_bytes: int, places) -> None:
        self._do("make", block_bytes=block_bytes, places=list(places))

    def start(self, session: int, at_rest: int) -> None:
        self._do("start", session=session, at_rest=at_rest)

    def down(self) -> dict:
        report_ = self._do("down")
        ahead_ns = time.monotonic_ns() - self._ask("now")  # at most by the way there and back too much: later, so safe
        for report in report_["clients"]:
            report["acked_ns"] = [t_ns + ahead_ns for t_ns in report["acked_ns"]]
        return report_ | {"down_ns": report_["down_ns"] and report_["down_ns"] + ahead_ns}

    def look(self, asked) -> dict:
        return self._do("look", asked=list(asked))

    def close(self) -> None:
        self._do("close")

    def _do(self, action: str, **request):
        return self._ask(f"filesystems {json.dumps({'do': action, **request})}")


class FarDrive:
    """The guest holds it until end(). `nodes`: its names, one after the other."""

    def __init__(self, machine, serial: str, **environment: str):
        self._machine, self._name = machine, f"drive-{serial}"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(PATIENCE_S)
        machine.start_python(self._name, SERVE, serial, HOST, str(self._listener.getsockname()[1]), **environment)
        self._control = self._listener.accept()[0]
        self._control.settimeout(PATIENCE_S)
        self._answers, self._lock = self._control.makefile("rb"), threading.Lock()
        node, self.size_bytes, self._queues_deleted, self._cannot = self.ask("drive")
        self.nodes, self._promises = [node], []

    def ask(self, what: str):
        """Raises what the guest has raised."""
        with self._lock:
            return self._ask(what)

    def _ask(self, what: str):
        self._control.sendall(what.encode() + b"\n")
        line = self._answers.readline()
        assert line, "the guest's side has ended"
        answer = json.loads(line)
        if "error" in answer:
            raise getattr(errors, answer["error"])(*answer["words"], **answer["facts"])
        return answer["said"]

    def target(self, commands: tuple[str, str]) -> Target:
        return Target(
            self._open,
            self._promise,
            lambda: self.ask("away"),
            self._back,
            queues_deleted=self._queues_deleted,
            commands=commands,
            cannot=tuple(self._cannot),
            slot=FarSlot(self.ask),
            filesystems=lambda asked: FarFilesystems(self.ask, asked),
        )

    def _promise(self) -> Promise:
        """Asked for ASKED_AGAIN times only: each takes the guest's nvme-cli 0.4 s."""
        if len(self._promises) <= ASKED_AGAIN:
            self._promises.append(Promise(**self.ask("promise")))
        return self._promises[-1]

    def _back(self) -> None:
        node = self.ask("back")
        self.nodes += [node] if node != self.nodes[-1] else []

    def _open(self) -> "Link":
        with self._lock:
            can_trim = self._ask("open")
            return Link(self._listener.accept()[0], self.size_bytes, can_trim)

    def end(self) -> None:
        """Safe to call twice."""
        if self._listener.fileno() >= 0:
            self._listener.close()
            self._control.shutdown(socket.SHUT_RDWR)
            self._control.close()
            ended = self._machine.ended(self._name)
            assert ended.exit_code == 0, ended


class Link:
    """A transport (slots.Transport)."""

    now_ns = staticmethod(time.monotonic_ns)

    def __init__(self, sock: socket.socket, size_bytes: int, can_trim: bool):
        self.can_trim, self.can_zero = can_trim, False
        self._sock, self.size_bytes, self.slots, self.under_way, self.gone = sock, size_bytes, Slots(), 0, ""
        self._come = bytearray()
        sock.setblocking(False)

    def submit(self, order: np.ndarray, n: int) -> None:
        slots, asked = self.slots, np.zeros(n, ASKED)
        asked["slot"] = order[:n]
        for name in ("kind", "flags", "offset", "length"):
            asked[name] = getattr(slots, name)[order[:n]]
        begins = [(int(row["slot"]) * slots.bytes_each, int(row["length"])) for row in asked[asked["kind"] == WRITE]]
        data = b"".join(slots.memory[begin : begin + length] for begin, length in begins)
        self.under_way += n
        self._send(memoryview(HEAD.pack(n, len(data), 0) + asked.tobytes() + data))

    def reap(self, ended: np.ndarray, timeout_ns: int, least: int = 1) -> int:
        until = time.monotonic() + timeout_ns / 1e9
        while (frame := self._frame()) is None:
            if not select.select([self._sock], [], [], max(0.0, until - time.monotonic()))[0]:
                return 0
            self._receive()
        n, rows, data, self.gone = frame
        at, slots = 0, self.slots
        for slot, status in rows.tolist():
            slots.status[slot] = status
            if slots.kind[slot] == BLANK and status == 0:
                begin, length = slot * slots.bytes_each, int(slots.length[slot])
                slots.memory[begin : begin + length] = data[at : at + length]
                at += length
        ended[:n] = rows["slot"]
        self.under_way -= n
        return n

    def _frame(self) -> tuple[int, np.ndarray, bytes, str] | None:
        """(count, rows, data of reads, why it is gone) of what has ended; None where it is not whole yet."""
        if len(self._come) < HEAD.size:
            return None
        n, size, text = HEAD.unpack_from(self._come)
        begin = HEAD.size + n * ENDED.itemsize
        end = begin + size + text
        if len(self._come) < end:
            return None
        whole, self._come = bytes(self._come[:end]), self._come[end:]
        rows = np.frombuffer(whole[HEAD.size : begin], ENDED)
        return n, rows, whole[begin : begin + size], whole[begin + size :].decode()

    def _receive(self) -> None:
        got = self._sock.recv(1 << 20)
        if not got:
            raise EOFError("the guest's side has ended")
        self._come += got

    def _send(self, data: memoryview) -> None:
        """The other side may be sending, too, and read nothing meanwhile."""
        while data:
            readable, writable, _ = select.select([self._sock], [self._sock], [], PATIENCE_S)
            if readable:
                self._receive()
            if writable:
                data = data[self._sock.send(data) :]

    def pause(self, ns: int) -> None:
        time.sleep(ns / 1e9)

    def close(self) -> None:
        """Waits until the guest's kernel has ended what is under way."""
        if self._sock.fileno() >= 0:
            self._send(memoryview(HEAD.pack(CLOSE, 0, 0)))
            self._sock.setblocking(True)
            while self._sock.recv(1 << 16):
                pass
            self._sock.close()
