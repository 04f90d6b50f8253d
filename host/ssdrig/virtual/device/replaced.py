"""What recent versions of pages replaced, so that a power cut can put it back: a cell (what a store keeps of one page)
for each. Those of writes lie in a ring by the version's number, as in the drive's own ring (flash/versions.py); those
of trims by the command's."""

import numpy as np

TRIM_PAGES = 4096  # of all trims together, the latest; what a trim beyond that took is gone for good


class Replaced:
    """`slots`: a power of 2, or 0: nothing is kept."""

    def __init__(self, slots: int, cell_bytes: int):
        self.slots, self.cell_bytes = slots, cell_bytes
        self.cells = np.zeros(slots * cell_bytes, np.uint8)
        self.trimmed: dict[int, np.ndarray] = {}  # command -> its pages whose content is kept
        self._of_trims: dict[int, np.ndarray] = {}  # command -> their cells

    def runs(self, number: int, pages: int):
        """(first page's offset, cells uint8[n, cell_bytes]) of the ring for versions number, number + 1, ...; of more
        than it holds only the last."""
        done = max(0, pages - self.slots)
        ring = self.cells.reshape(self.slots, self.cell_bytes)
        while self.slots and done < pages:
            slot = (number + done) & (self.slots - 1)
            n = min(pages - done, self.slots - slot)
            yield done, ring[slot : slot + n]
            done += n

    def trim(self, command: int, pages: np.ndarray, cells: np.ndarray) -> None:
        """Keep what this command takes away."""
        self.trimmed[command], self._of_trims[command] = pages, cells
        while len(self.trimmed) > 1 and sum(map(len, self.trimmed.values())) > TRIM_PAGES:
            oldest = next(iter(self.trimmed))
            del self.trimmed[oldest], self._of_trims[oldest]

    def forget_trims(self) -> None:
        self.trimmed.clear()
        self._of_trims.clear()

    def cell(self, version) -> bytes:
        """What a version (versions.VERSION) replaced."""
        if version["trim"]:
            return self._of_trims[int(version["command"])][int(version["cell"])].tobytes()
        at = (int(version["cell"]) & (self.slots - 1)) * self.cell_bytes
        return self.cells[at : at + self.cell_bytes].tobytes()
