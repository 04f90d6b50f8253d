"""The drive's own report: `drive:/dev/nvme0`, or `drive:` of the NVMe drive of the run. `?rate=` questions a second
(2), `?V=` nominal voltage, `?serial=` of the drive that it must be, `?start=1` starts its power measurement.

Log 02h of NVMe 2.3 has the mean power of the drive's last interval. Log 25h, which is asked only of a drive that lists
it, counts the intervals, and reports whether the power is estimated and whether the intervals follow each other without
gaps. Where it counts, each interval is one reading, and those that were missed are known; else an interval is taken as
INTERVAL_S. What the drive states of its own error is in the words, and never an uncertainty: nothing else vouches.

The controller is held open: what takes its name later is another one. A drive reports watts alone: a rail without `?V=`
is put at 1 V. NVMe Base Specification 2.3; linux/nvme_ioctl.h."""

import ctypes
import fcntl
import os
import struct
import time
from collections.abc import Iterator
from urllib.parse import parse_qsl, urlencode

from ssdrig.base import nvme_power
from ssdrig.base.errors import DriveError, RigError, UsageError
from ssdrig.base.terminal import printable
from ssdrig.meter import meter

INTERVAL_S = 1.0
RATE_HZ, SLOWEST_HZ, FASTEST_HZ = 2.0, 1.0, 10.0
BUSY_S = 0.25  # so late an answer may come
BUSY = 6  # or this many times the slowest answer while it was opened: a reading between two takes three answers of each
MOST_W = 100.0
ADMIN_COMMAND = 0xC0484E41  # NVME_IOCTL_ADMIN_CMD: _IOWR('N', 0x41, struct nvme_admin_cmd)
COMMAND = struct.Struct("<BBHIIIQQIIIIIIIIII")
GET_LOG, IDENTIFY, SET_FEATURES = 0x02, 0x06, 0x09
ALL_NAMESPACES = 0xFFFFFFFF
HEALTH, POWER, LISTED = 0x02, 0x25, 0x00
HEALTH_BYTES, LISTED_BYTES, IDENTIFY_BYTES = 512, 1024, 4096
HAS_LIST = 1 << 5  # of LPA, byte 261 of Identify Controller
MEASUREMENT, STOP, START = 0x25, 0, 1  # the feature, and its actions
TIMEOUT_MS = 5000
EXAMPLE = "drive:/dev/nvme0?V=3.3"


class Controller:
    """An NVMe controller that is held open. Its methods raise OSError."""

    def __init__(self, path: str):
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def log(self, lid: int, size: int) -> bytes:
        return self._asked(GET_LOG, ALL_NAMESPACES, (size // 4 - 1) << 16 | lid, size)

    def identity(self) -> bytes:
        return self._asked(IDENTIFY, 0, 1, IDENTIFY_BYTES)

    def measure(self, action: int) -> None:
        """Start or stop the drive's power measurement."""
        self._asked(SET_FEATURES, 0, MEASUREMENT, 0, action)

    def _asked(self, opcode: int, nsid: int, cdw10: int, size: int, cdw11: int = 0) -> bytes:
        answer = ctypes.create_string_buffer(max(size, 4))
        at = ctypes.addressof(answer) if size else 0
        request = COMMAND.pack(opcode, 0, 0, nsid, 0, 0, 0, at, 0, size, cdw10, cdw11, 0, 0, 0, 0, TIMEOUT_MS, 0)
        status = fcntl.ioctl(self._fd, ADMIN_COMMAND, bytearray(request))
        if status:
            raise OSError(f"the drive refused command {opcode:02X}h (status {status & 0x7FF:#x})")
        return answer.raw[:size]

    def close(self) -> None:
        os.close(self._fd)


class Report:
    """See meter.Meter."""

    def __init__(self, controller: Controller, rate_Hz: float, nominal_V: float | None, serial: str, start: bool):
        self._controller, self._rate_Hz, self._nominal_V, self._started = controller, rate_Hz, nominal_V, False
        self._slowest_s = 0.0  # answer
        identity = controller.identity()
        self.serial = _text(identity[4:24])
        if serial and self.serial != serial:
            raise OSError(f"it is another drive: {self.serial}")
        listed = controller.log(LISTED, LISTED_BYTES) if identity[261] & HAS_LIST else bytes(LISTED_BYTES)
        self._counts = bool(listed[4 * POWER] & 1)
        if start and self._counts:
            controller.measure(START)
            self._started = True
        model = _text(identity[24:64])
        facts = self._facts()
        self._counts = bool(facts and facts["measuring"])
        self._contiguous = bool(self._counts and facts and facts["contiguous"])
        self.name = f"the own report of {model}"
        claims = [] if facts is None or facts["error_percent"] is None else [f"+-{facts['error_percent']} %"]
        if facts and facts["estimated"]:
            self.name += ", ESTIMATED"
            claims.append("an estimate")
        if facts and not facts["contiguous"]:
            self.name += ", not contiguous"
            claims.append("with gaps")
        of = f" ({', '.join(claims)} by its own word)" if claims else ""
        self._unknown = f"the drive's own report{of}, for which nothing else vouches"
        if self._watts() is None:
            raise OSError("it reports no power of its own (log 02h, bytes 240 to 243)")

    def _facts(self) -> dict | None:
        return nvme_power.measurement(self._log(POWER, nvme_power.LOG_BYTES)) if self._counts else None

    def _watts(self) -> float | None:
        return nvme_power.interval_W(self._log(HEALTH, HEALTH_BYTES))

    def _log(self, lid: int, size: int) -> bytes:
        asked_s = time.monotonic()
        page = self._controller.log(lid, size)
        self._slowest_s = max(self._slowest_s, time.monotonic() - asked_s)
        return page

    def rails(self) -> list[meter.Rail]:
        volts = self._nominal_V or 1.0
        accuracy, seen = meter.Accuracy(unknown=self._unknown), float(self._contiguous)
        return [meter.Rail("drive", INTERVAL_S, accuracy, seen, self._nominal_V, 2 * volts, MOST_W / volts)]

    def clock(self) -> meter.Clock:
        half_s = 0.5 / self._rate_Hz if self._counts else INTERVAL_S / 2
        return meter.Clock(round((half_s + max(BUSY_S, BUSY * self._slowest_s)) * 1e9))

    def blocks(self) -> Iterator[meter.Block]:
        return self._counted() if self._counts else self._uncounted()

    def _reading(self, t_ns: int, watts: float, missed: int, bound_ns: int) -> meter.Block:
        volts = self._nominal_V or 1.0
        return meter.Block(0, (t_ns,), (volts,), (watts / volts,), missed, bound_ns)

    def _counted(self) -> Iterator[meter.Block]:
        """A reading an interval, which ended between the last question that did not have it and its answer."""
        known: dict = {}
        since_ns = 0
        while True:
            asked_ns = time.monotonic_ns()
            facts, watts, again = self._facts(), self._watts(), self._facts()
            answered_ns = time.monotonic_ns()
            if facts is None or again is None or not again["measuring"]:
                raise OSError("the drive has ended its power measurement")
            same = facts["generation"] == again["generation"] == known.get("generation")
            if watts is not None and same and facts["count"] > known["count"]:
                half_ns = (answered_ns - since_ns + 1) // 2
                yield self._reading(answered_ns - half_ns, watts, again["count"] - known["count"] - 1, half_ns)
                known, since_ns = again, asked_ns
            elif watts is not None and (not same or again["count"] == known["count"]):
                known, since_ns = again, asked_ns
            # else an interval ended between the logs, the power may be the one before's: the next time decides
            time.sleep(max(0.0, asked_ns / 1e9 + 1 / self._rate_Hz - time.monotonic()))

    def _uncounted(self) -> Iterator[meter.Block]:
        """A reading an INTERVAL_S, which ended up to an interval before it was asked for."""
        volts, half_ns = self._nominal_V or 1.0, round(INTERVAL_S / 2 * 1e9)

        def read() -> tuple[float, float]:
            return volts, (self._watts() or 0.0) / volts

        for block in meter.polled(0, INTERVAL_S, read):
            yield block._replace(t_ns=(block.t_ns[0] - half_ns,), bound_ns=block.bound_ns + half_ns)

    def close(self) -> None:
        try:
            if self._started:
                self._controller.measure(STOP)
        finally:
            self._controller.close()


def _text(field: bytes) -> str:
    return printable(field.decode("ascii", "replace").strip(" \0"))


def of_drive(rest: str, controller: str | None, serial: str) -> str:
    """The rest of a URL, with the controller of the drive of a run where it names none, and its serial. Raises
    UsageError."""
    path, colon, query = rest.partition("?")
    if not path and not controller:
        raise UsageError("an NVMe drive that reports its power", "one of another kind", "leave --meter drive: out")
    return f"{path or controller}?{urlencode({'serial': serial})}{'&' if colon else ''}{query}"


def check(rest: str) -> None:
    """Raises UsageError for another kind of URL."""
    _parts(rest)


def opened(rest: str) -> Report:
    path, rate_Hz, nominal_V, serial, start = _parts(rest)
    try:
        controller = Controller(path)
        try:
            return Report(controller, rate_Hz, nominal_V, serial, start)
        except BaseException:
            controller.close()
            raise
    except (OSError, DriveError) as error:
        do = "run as root; NVMe 2.3 has it; `nvme smart-log` shows what the drive reports"
        raise RigError(f"a drive at {path} that reports its power", str(error), do) from error


def _parts(rest: str) -> tuple[str, float, float | None, str, bool]:
    path, _, query = rest.partition("?")
    asked = dict(parse_qsl(query))
    serial, start = asked.pop("serial", ""), asked.pop("start", "0")
    try:
        rate_Hz, nominal_V = float(asked.pop("rate", RATE_HZ)), float(of) if (of := asked.pop("V", "")) else None
    except ValueError as error:
        raise UsageError("numbers for rate and V", str(error), EXAMPLE) from error
    if asked or start not in ("0", "1") or not SLOWEST_HZ <= rate_Hz <= FASTEST_HZ:
        raise UsageError(f"?rate= from {SLOWEST_HZ:g} to {FASTEST_HZ:g}, ?V=, ?serial=, ?start=1", query, EXAMPLE)
    if nominal_V is not None and not 0 < nominal_V <= 80:
        raise UsageError("?V= up to 80", query, EXAMPLE)
    return path, rate_Hz, nominal_V, serial, start == "1"
