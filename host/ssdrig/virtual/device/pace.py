"""How late the SIMULATED drive answered against its own model: the bench health record, which is not a truth about the
drive and which a run reads. A drive whose process gets no CPU answers later than its model says; a host cannot see
that from a slow drive.

A row for each second, counts since the start: [t_ns, answers, ns by which they were late together, ns of service in the
model together], and the most ns that an answer of that second was late. Times are the host's. `stat` represents the
kernel's counts, which has none of a drive that is served in user space: requests answered without an error since the
start, in the order of /sys/block/NAME/stat, without the times, which are not measured here."""

import numpy as np

SECTOR_BYTES = 512
MOST_ROWS = 86_400  # of a day; older ones are dropped


class Pace:
    """`counts`: int64, what nbd_protocol.count_late adds to."""

    def __init__(self):
        self.counts = np.zeros(10, np.int64)
        self._rows: list[list[int]] = []
        self._dropped = 0

    def second(self, t_ns: int, service_ns: int) -> None:
        """Once a second."""
        self._rows.append(self._row(t_ns, service_ns))
        self.counts[2] = 0
        if len(self._rows) > MOST_ROWS:
            del self._rows[0]
            self._dropped += 1

    def _row(self, t_ns: int, service_ns: int) -> list[int]:
        answers, late_ns, most_ns = self.counts[:3].tolist()
        return [t_ns, answers, late_ns, service_ns, most_ns]

    def read(self, since: int, t_ns: int, service_ns: int) -> dict:
        """The rows of the seconds from number `since` on, and one of now; `next`: where to go on; `stat`."""
        first = max(0, since - self._dropped)
        rows = [*self._rows[first:], self._row(t_ns, service_ns)]
        return {"next": self._dropped + len(self._rows), "rows": rows, "stat": self._stat()}

    def _stat(self) -> list[int]:
        reads, read_bytes, writes, written_bytes, trims, trimmed_bytes, flushes = self.counts[3:].tolist()
        sectors = [moved // SECTOR_BYTES for moved in (read_bytes, written_bytes, trimmed_bytes)]
        read = [reads, 0, sectors[0], 0, writes, 0, sectors[1], 0, 0, 0, 0]
        return [*read, trims, 0, sectors[2], 0, flushes, 0]
