"""One host's controller: fabrics properties, features, admin commands, asynchronous events, keep-alive.

An answer is (result, data or None, host time from which it may leave). Source: NVM Express Base Specification 1.4; NVMe
over Fabrics 1.1 for the properties."""

import struct

from ssdrig.base import nvme_fdp
from ssdrig.virtual.device import identify, placement, smartlog, status
from ssdrig.virtual.device.io import ALL_NAMESPACES, check_common
from ssdrig.virtual.device.status import Refused
from ssdrig.virtual.device.subsystem import EVENT_HEALTH, Subsystem

# CAP: MQES 127 (0's based), CQR, TO 40 x 500 ms, NVM command set
CAP = 127 | 1 << 16 | 40 << 24 | 1 << 37
PROPERTIES = {0x00: 8, 0x08: 4, 0x14: 4, 0x1C: 4}  # CAP, VS, CC, CSTS: offset -> bytes
_CC = 0x14
GET_LOG, IDENTIFY, ABORT, SET_FEATURES, GET_FEATURES, EVENT, KEEP_ALIVE, FORMAT, SANITIZE = (
    0x02,
    0x06,
    0x08,
    0x09,
    0x0A,
    0x0C,
    0x18,
    0x80,
    0x84,
)
TEMPERATURE, CACHE, QUEUES, EVENTS, TIMER, HOST_ID = 0x04, 0x06, 0x07, 0x0B, 0x0F, 0x81
_STORED = {
    0x01: 0,
    0x05: 0,
    0x0A: 0,
}  # features kept for the host, without effect: arbitration, error recovery, atomicity
WHILE_SANITIZING = {GET_LOG, IDENTIFY, ABORT, SET_FEATURES, GET_FEATURES, EVENT, KEEP_ALIVE, SANITIZE}
_LOG_RETAIN = 1 << 15
PLACED_LOGS = (nvme_fdp.CONFIGURATIONS, nvme_fdp.USAGE, nvme_fdp.STATISTICS, nvme_fdp.EVENTS)
PLACEMENT, PLACEMENT_EVENTS = 0x1D, 0x1E  # features of a drive with data placement


class Controller:
    """`queues`: the open I/O queues by identifier; `admin`: the admin queue. Both have close(); admin also
    complete()."""

    def __init__(
        self, subsystem: Subsystem, cntlid: int, hostid: bytes, hostnqn: bytes, kato_ms: int, admin, now_ns: int
    ):
        self.subsystem, self.device = subsystem, subsystem.device
        self.cntlid, self.hostid, self.hostnqn, self.admin = cntlid, hostid, hostnqn, admin
        self.kato_ms, self._heard_ns = kato_ms, now_ns
        self.queues: dict = {}
        self.granted_queues = identify.MAX_QUEUES
        self.cc = 0
        self._shut_down_ns: int | None = None
        self.features = dict(_STORED) | {EVENTS: 0}
        self._held: list[int] = []  # command identifiers of asynchronous event requests
        self._events: list[tuple[int, int, int]] = []  # (type, information, log page), not yet reported
        self._masked: set[int] = set()  # log pages whose event was reported and not yet read
        self._warned = 0  # bits of the critical warning already reported to the host

    @property
    def ready(self) -> bool:
        return bool(self.cc & 1)

    # --- fabrics

    def property_get(self, sqe: bytes, now_ns: int) -> int:
        size, offset = 8 if sqe[40] & 7 else 4, struct.unpack_from("<I", sqe, 44)[0]
        if PROPERTIES.get(offset) != size:
            raise Refused(status.INVALID_FIELD, 44)
        if offset == _CC:
            return self.cc
        shut = self._shut_down_ns
        csts = self.cc & 1 | (0 if shut is None else 1 if now_ns < shut else 2) << 2
        return {0x00: CAP, 0x08: identify.VERSION, 0x1C: csts}[offset]

    def property_set(self, sqe: bytes, now_ns: int) -> None:
        offset, value = struct.unpack_from("<IQ", sqe, 44)
        if offset != _CC or sqe[40] & 7:
            raise Refused(status.INVALID_FIELD, 44)
        value &= 0xFFFFFFFF
        enabling, disabling = value & 1 and not self.cc & 1, self.cc & 1 and not value & 1
        if enabling and (
            value >> 4 & 7 or value >> 7 & 15 or value >> 11 & 7 or value >> 16 & 15 != 6 or value >> 20 & 15 != 4
        ):
            raise Refused(status.INVALID_FIELD, 48)  # NVM command set, 4 KiB pages, round robin, 64 and 16 byte entries
        if value >> 14 & 3 and not self.cc >> 14 & 3:
            others = [
                c for c in self.subsystem.controllers.values() if c is not self and c.ready and c._shut_down_ns is None
            ]
            self._shut_down_ns = self.device.flush(now_ns) if others else self.device.shut_down(now_ns)
        if enabling:
            self._shut_down_ns = None
            self.device.in_use()
        if disabling:
            self._reset()
        self.cc = value

    def _reset(self) -> None:
        """Controller reset: I/O queues end, events are forgotten, features go back."""
        for queue in list(self.queues.values()):
            queue.close()
        self._held, self._events, self._masked, self._warned = [], [], set(), 0
        self.features = dict(_STORED) | {EVENTS: 0}
        self.granted_queues = identify.MAX_QUEUES

    # --- admin commands

    def admin_bytes(self, sqe: bytes) -> int:
        """Bytes of data that an admin command needs from the host."""
        check_common(sqe)
        need = self.device.power.data_bytes(sqe[40]) if sqe[0] == SET_FEATURES else 0
        if sqe[0] == SET_FEATURES and sqe[40] == PLACEMENT_EVENTS and self.device.placement:
            need = sqe[46]  # a byte each, in bits 23:16 of command dword 11
        if struct.unpack_from("<I", sqe, 32)[0] < need:
            raise Refused(status.DATA_SGL_LENGTH_INVALID, 32)
        return need

    def command(self, sqe: bytes, content: bytes, now_ns: int) -> tuple[int, bytes | None, int] | None:
        """Execute an admin command; None if its completion comes later on its own. Raises Refused."""
        opcode = sqe[0]
        make = _COMMANDS.get(opcode)
        if make is None and opcode != SET_FEATURES:
            raise Refused(status.INVALID_OPCODE, 0)
        if not self.ready and opcode not in (KEEP_ALIVE, IDENTIFY):
            raise Refused(status.SEQUENCE_ERROR)
        if self.subsystem.busy(now_ns) == status.SANITIZE_IN_PROGRESS and opcode not in WHILE_SANITIZING:
            raise Refused(status.SANITIZE_IN_PROGRESS, retry=True)
        return self._set_feature(sqe, content, now_ns) if make is None else make(self, sqe, now_ns)

    def _identify(self, sqe: bytes, now_ns: int):
        nsid, device = struct.unpack_from("<I", sqe, 4)[0], self.device
        cns = sqe[40]
        if cns in (0x00, 0x03) and nsid != 1 and not (cns == 0 and nsid == ALL_NAMESPACES):
            raise Refused(status.INVALID_NAMESPACE, 4)
        if cns == 0x00:
            page = identify.namespace(device, self.subsystem.lba_shift)
        elif cns == 0x01:
            page = identify.controller(device, self.cntlid)
        elif cns == 0x02:
            if nsid >= 0xFFFFFFFE:
                raise Refused(status.INVALID_NAMESPACE, 4)
            page = identify.namespace_list(nsid)
        elif cns == 0x03:
            page = identify.namespace_descriptors(device)
        else:
            raise Refused(status.INVALID_FIELD, 40)
        return 0, _fit(sqe, page), now_ns

    def _log(self, sqe: bytes, now_ns: int):
        (nsid,) = struct.unpack_from("<I", sqe, 4)
        cdw10, cdw11, offset = struct.unpack_from("<IIQ", sqe, 40)
        lid, length = cdw10 & 0xFF, ((cdw11 & 0xFFFF) << 16 | cdw10 >> 16) * 4 + 4
        if nsid not in (0, 1, ALL_NAMESPACES):
            raise Refused(status.INVALID_NAMESPACE, 4)
        if offset % 4:
            raise Refused(status.INVALID_FIELD, 48)
        if struct.unpack_from("<I", sqe, 32)[0] < length:
            raise Refused(status.DATA_SGL_LENGTH_INVALID, 32)
        placed = self.device.placement if lid in PLACED_LOGS else None
        if (lid == 0x09 or placed) and cdw11 >> 16 != placement.GROUP:
            raise Refused(status.INVALID_FIELD, 46)
        if lid == 0x01:
            page = b"".join(self.subsystem.errors).ljust(64 * identify.ERROR_ENTRIES, b"\0")
        elif lid in (pages := smartlog.pages(counters := self.device.health())):
            page = pages[lid](counters)
        elif lid == 0x00 and 0x25 in pages:
            page = identify.supported_logs(pages)
        elif lid == 0x03:
            page = identify.firmware_slots()
        elif lid == 0x05:
            page = identify.effects(self.device)
        elif placed:
            page = placed.page(lid, cdw10 >> 8 & 0x7F, self.device.drive.ledger())
        elif lid == 0x81:
            page = self.subsystem.sanitize_page(now_ns)
        else:
            raise Refused(status.INVALID_LOG_PAGE, 40)
        if offset > len(page):
            raise Refused(status.INVALID_FIELD, 48)
        if length > 1 << 20:
            raise Refused(status.INVALID_FIELD, 42)
        if lid == 0x02:
            self.subsystem.health_read(now_ns)
        if not cdw10 & _LOG_RETAIN:
            self._masked.discard(lid)
            self._tell()
        return 0, page[offset : offset + length].ljust(length, b"\0"), now_ns

    def _abort(self, sqe: bytes, now_ns: int):
        sqid, cid = struct.unpack_from("<HH", sqe, 40)
        if sqid == 0 and cid in self._held:  # all others are on their way and end by themselves
            self._held.remove(cid)
            self.admin.complete(cid, status.ABORT_REQUESTED)
            return 0, None, now_ns
        return 1, None, now_ns

    def _event_request(self, sqe: bytes, now_ns: int) -> None:
        if len(self._held) >= identify.MAX_EVENTS:
            raise Refused(status.ASYNC_LIMIT)
        self._held.append(struct.unpack_from("<H", sqe, 2)[0])
        self._tell()

    def _keep_alive(self, sqe: bytes, now_ns: int):
        self._heard_ns = now_ns
        return 0, None, now_ns

    def _get_feature(self, sqe: bytes, now_ns: int):
        cdw10, cdw11 = struct.unpack_from("<II", sqe, 40)
        fid = cdw10 & 0xFF
        if cdw10 >> 8 & 7:
            raise Refused(status.INVALID_FIELD, 41)  # only the current value
        if fid == TEMPERATURE:
            celsius = self.device.under_C if cdw11 >> 20 & 3 else self.device.over_C
            return (celsius + identify.KELVIN if celsius is not None else 0), None, now_ns
        if self.device.power.has(fid):
            result, data = self.device.power.get(fid, now_ns)
            return result, data and _fit(sqe, data, len(data)), now_ns
        if self.device.placement and fid == PLACEMENT:
            if cdw11 & 0xFFFF != placement.GROUP:
                raise Refused(status.INVALID_FIELD, 44)
            return 1, None, now_ns  # on, configuration 0
        if self.device.placement and fid == PLACEMENT_EVENTS:
            events = self._of_placement(self.device.placement.asked, cdw11 & 0xFFFF)
            return len(events) // 2, _fit(sqe, events, len(events)), now_ns
        if fid == CACHE and identify.write_cache(self.device):
            return int(self.subsystem.cache_enabled), None, now_ns
        if fid == QUEUES:
            return (self.granted_queues - 1) * 0x10001, None, now_ns
        if fid == TIMER:
            return self.kato_ms, None, now_ns
        if fid == HOST_ID:
            return 0, _fit(sqe, self.hostid, 16), now_ns
        if fid not in self.features:
            raise Refused(status.INVALID_FIELD, 40)
        return self.features[fid], None, now_ns

    def _set_feature(self, sqe: bytes, content: bytes, now_ns: int):
        cdw10, value = struct.unpack_from("<II", sqe, 40)
        fid, result, due_ns = cdw10 & 0xFF, 0, now_ns
        if cdw10 >> 31:
            raise Refused(status.FEATURE_NOT_SAVEABLE, 43)
        if fid == TEMPERATURE:
            self._set_threshold(value)
        elif fid == CACHE and identify.write_cache(self.device):
            if self.subsystem.cache_enabled and not value & 1:
                due_ns = self.device.flush(now_ns)
            self.subsystem.cache_enabled = bool(value & 1)
        elif fid == QUEUES:
            submission, completion = value & 0xFFFF, value >> 16
            if 0xFFFF in (submission, completion):
                raise Refused(status.INVALID_FIELD, 44)
            if self.queues:
                raise Refused(status.SEQUENCE_ERROR)
            self.granted_queues = min(identify.MAX_QUEUES, submission + 1, completion + 1)
            result = (self.granted_queues - 1) * 0x10001
        elif fid == TIMER:
            self.kato_ms = -(-value // identify.KEEP_ALIVE_UNIT_MS) * identify.KEEP_ALIVE_UNIT_MS
            self._heard_ns = now_ns
        elif self.device.power.has(fid):
            try:
                due_ns = self.device.power.set(fid, value, content, now_ns)
            except ValueError:
                raise Refused(status.INVALID_FIELD, 44) from None
        elif fid == HOST_ID or (self.device.placement and fid == PLACEMENT):
            raise Refused(status.SEQUENCE_ERROR)  # given with Connect; not while there is a namespace
        elif self.device.placement and fid == PLACEMENT_EVENTS:
            on = bool(sqe[48] & 1)
            self._of_placement(self.device.placement.ask, value & 0xFFFF, content, on)
        elif fid in self.features:
            self.features[fid] = value
        else:
            raise Refused(status.INVALID_FIELD, 40)
        return result, None, due_ns

    def _of_placement(self, do, *arguments):
        """do(*arguments). Raises Refused where it is asked of a placement handle that there is not."""
        try:
            return do(*arguments)
        except ValueError:
            raise Refused(status.INVALID_FIELD, 44) from None

    def _set_threshold(self, value: int) -> None:
        celsius, sensor, kind = (value & 0xFFFF) - identify.KELVIN, value >> 16 & 15, value >> 20 & 3
        if sensor not in (0, 1, 15) or kind > 1:
            raise Refused(status.INVALID_FIELD, 44)
        if kind:
            self.device.under_C = celsius if value & 0xFFFF else None
        else:
            self.device.over_C = celsius

    def _format(self, sqe: bytes, now_ns: int):
        nsid, cdw10 = struct.unpack_from("<I", sqe, 4)[0], struct.unpack_from("<I", sqe, 40)[0]
        lbaf, erase = cdw10 & 15, cdw10 >> 9 & 7
        if nsid not in (1, ALL_NAMESPACES):
            raise Refused(status.INVALID_NAMESPACE, 4)
        if lbaf >= len(identify.lba_shifts(self.device)) or cdw10 >> 4 & 15:  # no metadata, no protection information
            raise Refused(status.INVALID_FORMAT, 40)
        if erase > 2:
            raise Refused(status.INVALID_FIELD, 41)
        if self.subsystem.busy(now_ns):
            raise Refused(status.FORMAT_IN_PROGRESS, retry=True)
        return 0, None, self.subsystem.format(lbaf, erase, now_ns)

    def _sanitize(self, sqe: bytes, now_ns: int):
        (cdw10,) = struct.unpack_from("<I", sqe, 40)
        action = cdw10 & 7
        if self.subsystem.busy(now_ns):
            code = self.subsystem.busy(now_ns)
            raise Refused(code, retry=True)
        if action not in (1, 2, 4) or (action != 1 and cdw10 >> 9 & 1):  # overwrite; blocks left allocated
            raise Refused(status.INVALID_FIELD, 40)
        if action != 1:  # 1: leave failure mode, in which this drive never is
            self.subsystem.sanitize(action == 2, cdw10, now_ns)
        return 0, None, now_ns

    # --- events and keep-alive

    def warn(self, warning: int) -> None:
        """Report the bits of the critical warning that the host asked for in feature 0Bh, once while they last."""
        warning &= self.features[EVENTS] & 0xFF
        new, self._warned = warning & ~self._warned, warning
        for bit in range(8):
            if new & 1 << bit:
                self.event(EVENT_HEALTH, {0: 2, 1: 1}.get(bit, 0), 0x02)  # spare, temperature, reliability

    def event(self, kind: int, information: int, log_page: int) -> None:
        self._events.append((kind, information, log_page))
        self._tell()

    def _tell(self) -> None:
        for event in list(self._events):
            kind, information, log_page = event
            if self._held and log_page not in self._masked:
                self._events.remove(event)
                self._masked.add(log_page)
                self.admin.complete(self._held.pop(0), 0, log_page << 16 | information << 8 | kind)

    def advance(self, now_ns: int) -> None:
        """A host that has been silent for its keep-alive timeout is dropped."""
        if self.kato_ms and now_ns - self._heard_ns > self.kato_ms * 1_000_000:
            self.end()

    def end(self, at_once: bool = False) -> None:
        """The host is gone, or at_once the power: all its connections end."""
        self.subsystem.controllers.pop(self.cntlid, None)
        for queue in [*self.queues.values(), self.admin]:
            queue.close(at_once)


def _fit(sqe: bytes, page: bytes, length: int = 4096) -> bytes:
    if struct.unpack_from("<I", sqe, 32)[0] < length:
        raise Refused(status.DATA_SGL_LENGTH_INVALID, 32)
    return page[:length]


_COMMANDS = {
    GET_LOG: Controller._log,
    IDENTIFY: Controller._identify,
    ABORT: Controller._abort,
    GET_FEATURES: Controller._get_feature,
    EVENT: Controller._event_request,
    KEEP_ALIVE: Controller._keep_alive,
    FORMAT: Controller._format,
    SANITIZE: Controller._sanitize,
}
