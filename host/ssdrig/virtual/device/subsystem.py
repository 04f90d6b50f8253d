"""What all controllers of the drive share: its name, the error log, format and sanitize, the features that belong to
the drive. It lives while the drive, through power cuts; controllers do not."""

import struct
from collections import deque

from ssdrig.virtual.device import identify, smartlog, status, thermal
from ssdrig.virtual.device.device import Device
from ssdrig.virtual.device.status import Refused

MAX_CONTROLLERS = 16
DYNAMIC = 0xFFFF
CONNECT_DATA_BYTES = 1024
EVENT_HEALTH, EVENT_IO_SET = 1, 6
_NEVER, _DONE, _RUNNING = 0, 1, 2


class Subsystem:
    """`health_read(now_ns)` is called each time that a host has read log page 02h. Times are CLOCK_MONOTONIC ns."""

    def __init__(self, device: Device, health_read):
        self.device, self.health_read = device, health_read
        self.nqn = identify.nqn(device)
        self.controllers: dict = {}  # cntlid -> Controller
        self._next_cntlid = 1
        self.lba_shift = identify.lba_shifts(device)[0]
        self.errors: deque[bytes] = deque(maxlen=identify.ERROR_ENTRIES)
        self.format_until_ns = 0
        self.sanitize_from_ns = self.sanitize_until_ns = 0
        self.sanitize_cdw10 = 0
        self._sanitize_state, self._writes_at_sanitize = _NEVER, 0
        self._cut_ns = 0
        self._start_features()

    def _start_features(self) -> None:
        """Features at their defaults, as after power-on: nothing is saved."""
        self.cache_enabled = identify.write_cache(self.device)
        self.device.over_C, self.device.under_C = thermal.WARNING_C, None

    @property
    def write_through(self) -> bool:
        """The host switched the write cache off: a write is durable before it completes."""
        return identify.write_cache(self.device) and not self.cache_enabled

    # --- who talks to it

    def connect_admin(self, sqe: bytes, content: bytes, make):
        """A Connect of an admin queue: the new controller, made by make(cntlid, hostid, hostnqn). Raises Refused."""
        hostid, cntlid, hostnqn = self._connect_data(sqe, content)
        if cntlid != DYNAMIC:
            raise _invalid_data(16)
        if len(self.controllers) >= MAX_CONTROLLERS:
            raise Refused(status.CONNECT_CONTROLLER_BUSY, retry=True)
        while self._next_cntlid in self.controllers or not 0 < self._next_cntlid < 0xFFF0:
            self._next_cntlid = self._next_cntlid % 0xFFEF + 1
        made = make(self._next_cntlid, hostid, hostnqn)
        self.controllers[self._next_cntlid] = made
        self._next_cntlid = self._next_cntlid % 0xFFEF + 1
        return made

    def connect_io(self, sqe: bytes, content: bytes, qid: int):
        """A Connect of I/O queue qid: the controller that it belongs to. Raises Refused."""
        hostid, cntlid, hostnqn = self._connect_data(sqe, content)
        controller = self.controllers.get(cntlid)
        if controller is None:
            raise _invalid_data(16)
        if controller.hostid != hostid:
            raise _invalid_data(0)
        if controller.hostnqn != hostnqn:
            raise _invalid_data(512)
        if not controller.ready:
            raise Refused(status.SEQUENCE_ERROR)
        if qid > controller.granted_queues or qid in controller.queues:
            raise Refused(status.CONNECT_INVALID_PARAMETERS, 42, dw0=42)
        return controller

    def _connect_data(self, sqe: bytes, content: bytes) -> tuple[bytes, int, bytes]:
        if struct.unpack_from("<H", sqe, 40)[0] != 0:
            raise Refused(status.CONNECT_INCOMPATIBLE_FORMAT, 40)
        hostid, cntlid = content[:16], struct.unpack_from("<H", content, 16)[0]
        subnqn, hostnqn = (content[at : at + 256].split(b"\0", 1)[0] for at in (256, 512))
        if subnqn != self.nqn.encode():
            raise _invalid_data(256)
        if not hostnqn.startswith(b"nqn.") or len(hostnqn) > 223:
            raise _invalid_data(512)
        if hostid == bytes(16):
            raise _invalid_data(0)
        return hostid, cntlid, hostnqn

    # --- format and sanitize

    def busy(self, now_ns: int) -> int:
        """The status that refuses I/O now, or 0."""
        if now_ns < self.sanitize_until_ns:
            return status.SANITIZE_IN_PROGRESS
        return status.FORMAT_IN_PROGRESS if now_ns < self.format_until_ns else 0

    def format(self, lbaf: int, erase: int, now_ns: int) -> int:
        """Format NVM; erase 0 none, 1 user data, 2 cryptographic. Without erasing blocks, all are only unmapped, which
        is also what the change of a key comes to. Returns the host time when it is done."""
        self.lba_shift = identify.lba_shifts(self.device)[lbaf]
        self.format_until_ns = self._erase(erase == 1, now_ns)
        return self.format_until_ns

    def sanitize(self, blocks: bool, cdw10: int, now_ns: int) -> None:
        """Starts block erase or crypto erase, which goes on on its own."""
        self.sanitize_from_ns, self.sanitize_until_ns = now_ns, self._erase(blocks, now_ns)
        self.sanitize_cdw10, self._sanitize_state = cdw10, _RUNNING
        self._writes_at_sanitize = self._writes()

    def _erase(self, blocks: bool, now_ns: int) -> int:
        if self.device.placement:
            self.device.placement.emptied()
        return self.device.format(now_ns) if blocks else self.device.deallocate(now_ns)

    def _writes(self) -> int:
        return int(self.device.drive.ledger()["host_write_commands"])

    def sanitize_page(self, now_ns: int) -> bytes:
        progress = 0xFFFF
        if self._sanitize_state == _RUNNING:
            lasts = max(1, self.sanitize_until_ns - self.sanitize_from_ns)
            progress = min(0xFFFE, (now_ns - self.sanitize_from_ns) * 65536 // lasts)
        erased = self._sanitize_state != _RUNNING and self._writes() == self._writes_at_sanitize
        return identify.sanitize_status(progress, self._sanitize_state, erased, self.sanitize_cdw10)

    # --- time, power, errors

    def advance(self, now_ns: int) -> None:
        """What happens on its own; call every few milliseconds."""
        if not self.device.powered:
            return
        if self._sanitize_state == _RUNNING and now_ns >= self.sanitize_until_ns:
            self._sanitize_state = _DONE
            for controller in self.controllers.values():
                controller.event(EVENT_IO_SET, 0x01, 0x81)
        for controller in list(self.controllers.values()):
            controller.advance(now_ns)

    def look_at_health(self) -> None:
        """Report new critical warnings to the hosts; call about once a second."""
        if self.controllers:
            warning = smartlog.critical_warning(self.device.health())
            for controller in self.controllers.values():
                controller.warn(warning)

    def power_lost(self, now_ns: int) -> None:
        self.controllers.clear()
        self._cut_ns = now_ns

    def power_returned(self, now_ns: int) -> None:
        """A sanitize that the cut interrupted goes on."""
        if self._sanitize_state == _RUNNING:
            off_ns = now_ns - self._cut_ns
            self.sanitize_from_ns, self.sanitize_until_ns = (
                self.sanitize_from_ns + off_ns,
                self.sanitize_until_ns + off_ns,
            )
        self.format_until_ns = 0
        self._start_features()

    def log_error(self, sqid: int, cid: int, code: int, at: int | None = None, lba: int = 0, nsid: int = 0) -> None:
        self.device.error_log_entries += 1
        self.errors.appendleft(identify.error_entry(self.device.error_log_entries, sqid, cid, code, at, lba, nsid))


def _invalid_data(at: int) -> Refused:
    """Connect Invalid Parameters, the byte `at` of its data being wrong."""
    return Refused(status.CONNECT_INVALID_PARAMETERS, dw0=1 << 16 | at)
