"""How late the SIMULATED drive answered against its own model: the bench health record, which is no truth about the
drive and which a run reads. A drive whose process gets no CPU answers later than its model says; a host cannot tell
that from a slow drive.

A row for each second, counts since the start: [t_ns, answers, ns by which they were late together, ns of service in the
model together], and the most ns that an answer of that second was late. Times are the host's."""

import numpy as np

MOST_ROWS = 86_400  # of a day; older ones are dropped


class Pace:
    """`counts`: int64, what nbd.count_late adds to."""

    def __init__(self):
        self.counts = np.zeros(3, np.int64)
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
        answers, late_ns, most_ns = self.counts.tolist()
        return [t_ns, answers, late_ns, service_ns, most_ns]

    def read(self, since: int, t_ns: int, service_ns: int) -> dict:
        """The rows of the seconds from number `since` on, and one of now; `next`: where to go on."""
        first = max(0, since - self._dropped)
        return {"next": self._dropped + len(self._rows), "rows": [*self._rows[first:], self._row(t_ns, service_ns)]}
