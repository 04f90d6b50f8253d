"""A host of the virtual drive in model time: it writes numbered versions of pages, and knows after a power cut what
each page may hold. For tests."""

import numpy as np

from ssdrig.blockio import nbd_protocol
from ssdrig.virtual.device import store
from ssdrig.virtual.device.device import Device
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.feed import BINS

CAPACITY_BYTES = 256 << 20
PAGE = store.PAGE_BYTES
NEVER = 1 << 62
OLD = -1  # the number of what a page held when the session began


def device(preset, data: str, capacity_bytes: int = CAPACITY_BYTES, **how) -> Device:
    ring = np.full((BINS, 2), 0xFFFFFFFF, np.uint32)
    ring[:, 1] = 0
    drive = VirtualDrive(preset, capacity_bytes=capacity_bytes, ring=ring)
    return Device(preset, drive, capacity_bytes, data, 0, ring, latency=True, **how)


class Host:
    """Submits at `now_ns`, which the caller moves on. A command is (op, first page, pages, flags)."""

    def __init__(self, device: Device):
        self.device, self.now_ns, self.number = device, 0, 0
        self._begin()

    def _begin(self) -> None:
        self.base: dict[int, bytes] = {}
        self.rows: list[dict] = []

    def submit(self, *commands) -> list[int]:
        """One packet, as it would come in one read of the socket. Returns when each is completed, ns."""
        batch, data = np.zeros((len(commands), nbd_protocol.COLUMNS), np.int64), []
        for row, (op, page, pages, flags) in zip(batch, commands):
            for at in range(page, page + pages):
                self.base.setdefault(at, self.page(at))
            content = b""
            if op == nbd_protocol.WRITE:
                self.number += 1
                content = self.number.to_bytes(4, "little") * (pages * PAGE // 4)
            row[[nbd_protocol.OP, nbd_protocol.FLAGS, nbd_protocol.OFFSET, nbd_protocol.LENGTH, nbd_protocol.AT]] = (
                *(op, flags, page * PAGE, pages * PAGE),
                sum(map(len, data)),
            )
            data.append(content)
        self.device.execute(np.frombuffer(b"".join(data) or b"\0", np.uint8), batch, len(batch), self.now_ns)
        for row, (op, page, pages, flags), content in zip(batch, commands, data):
            written = {
                "op": op,
                "page": page,
                "pages": pages,
                "fua": bool(flags & nbd_protocol.FUA),
                "content": content[:PAGE],
            }
            self.rows.append(written | {"came": self.now_ns, "done": int(row[nbd_protocol.DUE])})
        return batch[:, nbd_protocol.DUE].tolist()

    def write(self, page: int, pages: int = 1, fua: bool = False) -> int:
        return self.submit((nbd_protocol.WRITE, page, pages, nbd_protocol.FUA if fua else 0))[0]

    def flush(self) -> int:
        return self.submit((nbd_protocol.FLUSH, 0, 0, 0))[0]

    def page(self, page: int) -> bytes:
        out = np.zeros(PAGE, np.uint8)
        self.device.store.read(out, np.array([[0, page * PAGE, PAGE]]), 1)
        return out.tobytes()

    def cut(self) -> dict[int, tuple[set[int], int | None]]:
        """Cut the power now and let it return. For each page that was written or trimmed: (rows that it may show, the
        row that it shows), OLD for what was there before the session, None for nothing known. The session is over."""
        device, t_ns = self.device, self.now_ns
        device.power_cut(t_ns)
        ready_ns = device.power_on(t_ns)
        device.advance(ready_ns)
        assert device.powered
        self.now_ns = ready_ns
        acknowledged = [row["done"] if row["done"] <= t_ns else NEVER for row in self.rows]
        flushed_ns = max(
            (
                row["came"]
                for row, done in zip(self.rows, acknowledged)
                if row["op"] == nbd_protocol.FLUSH and done < NEVER
            ),
            default=-1,
        )
        judged = {}
        for page, base in self.base.items():
            mine = [i for i, row in enumerate(self.rows) if row["page"] <= page < row["page"] + row["pages"]]
            durable = [
                self.rows[i]["came"]
                for i in mine
                if acknowledged[i] < NEVER
                and (self.rows[i]["fua"] or acknowledged[i] <= flushed_ns or device.preset.plp)
            ]
            legal = {i for i in mine if acknowledged[i] >= max(durable, default=-1)}
            judged[page] = (legal if durable else legal | {OLD}, self._shown(page, base, mine))
        self._begin()
        return judged

    def _shown(self, page: int, base: bytes, mine: list[int]) -> int | None:
        seen = self.page(page)
        for i in reversed(mine):
            content = self.rows[i]["content"]
            if content and self.device.store.min_block == PAGE:
                content = store.reads_as(page * PAGE, content)
            if seen == (content or bytes(PAGE)):
                return i
        return OLD if seen == base else None
