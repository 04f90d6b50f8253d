"""The known contents of the window from session to session of a campaign, and the reads after each. No I/O.

Of each block: the content that was read last, after which session, and whether a trim may still take effect (verdict.
Known). Blocks that were under way at the latest cuts are read again after the next ones: a later cut may show them. So
is, after a session without a command, all that the session before it touched. After each session some of the rest is
read, wherever it is: data at rest may be lost, too, and a large window is read as a whole too seldom to tell."""

from collections.abc import Sequence

import numpy as np

from ssdrig.powerloss import readback, verdict
from ssdrig.powerloss.history import ROW
from ssdrig.powerloss.layout import Layout, index, lba
from ssdrig.powerloss.promise import Promise
from ssdrig.powerloss.verdict import Blocks, Known, Verdict

WHOLE_EVERY = 50  # sessions after which all of the window is read
WHOLE_BYTES = 512 << 20  # a window that is read as a whole after each session
COLD_BYTES = 16 << 20  # of pieces all over the window that are read after each session
REOPENED = 2  # cuts after which that is read which was under way at an earlier one


class Contents:
    """`known`: arrays over the base (layout.base_blocks)."""

    def __init__(self, layout: Layout, known: Known):
        self.layout, self.known = layout, known
        self._again: list[np.ndarray] = []
        self._touched = readback.merged(np.zeros((0, 2), np.int64))

    @property
    def window_bytes(self) -> int:
        return self.layout.window_blocks * self.layout.block_bytes

    def is_whole(self, n: int, of: int) -> bool:
        """Whether all of the window is read after the n-th session, from 0, of this many."""
        return n % WHOLE_EVERY == WHOLE_EVERY - 1 or n == of - 1 or self.window_bytes <= WHOLE_BYTES

    def wanted(self, rows: np.ndarray, seed: int, whole: bool) -> np.ndarray:
        """The runs of blocks to read after a session with these commands, as readback.wanted() has them."""
        chance, near = np.random.default_rng(seed), readback.NEAR_BYTES // self.layout.block_bytes
        pieces = self.layout.window_blocks // near
        at = chance.integers(0, pieces, min(pieces, COLD_BYTES // readback.NEAR_BYTES)) * near
        first = lba(self.layout, at)
        cold = np.stack([first, first + near], 1)
        also = np.concatenate([*self._again, cold, self._touched[: 0 if len(rows) else None]])
        return readback.wanted(rows, self.layout, chance, whole, also=also)

    def asked(self, blocks: Blocks) -> Blocks:
        """Blocks that were read, with their known contents."""
        return verdict.asked(self.known, index(self.layout, blocks.lba), blocks)

    def take(
        self, rows: np.ndarray, blocks: Blocks, found: Verdict, promise: Promise, number: int, whole: bool
    ) -> None:
        """After the verdict on session `number`: the `blocks` that it read are what the next one begins with."""
        if found.why_not:  # commands were outstanding, and may still change their blocks
            self.take_unjudged([rows], blocks, promise, number, whole, settled=False)
        else:
            self._take(blocks, found, number, whole, np.ones(len(blocks.lba), bool))
        self._again = [*self._again, readback.open_runs(rows)][-REOPENED:]
        self._touched = readback.touched_runs(rows)

    def take_unjudged(
        self,
        unjudged: Sequence[np.ndarray],
        blocks: Blocks,
        promise: Promise,
        number: int,
        whole: bool,
        settled: bool = True,
    ) -> None:
        """After commands that are not judged: the blocks they touched count as they are now, and trims among them may
        still take effect. For a block that they did not touch and whose content is not allowed, the known content
        stays; it is read and judged in the next session. `number`: of the session before them."""
        rows = np.concatenate([np.zeros(0, ROW), *unjudged])
        blocks, found = verdict.unjudged(rows, blocks, promise, settled)
        good = found.finding == 0
        self._take(blocks, found, number, whole, good)
        bad = blocks.lba[~good]
        self._again = [readback.merged(np.stack([bad, bad + 1], 1))]

    def _take(self, blocks: Blocks, found: Verdict, number: int, whole: bool, good: np.ndarray) -> None:
        """Only of the `good` blocks; one that is not in a reading of the whole window is unchanged."""
        at = index(self.layout, blocks.lba)
        if whole:
            verified = self.known.verified[at]
            self.known.verified[:] = number
            self.known.verified[at] = verified
        verdict.take(self.known, at, blocks, found, number, good)


def damage_spreads(failing_blocks: int, broken: int) -> bool:
    """Whether the whole window is read right after a session that found this many damaged blocks, with `broken` such
    sessions before it: what its cut did must not be found after a later one. At the first, the second, the fourth, the
    eighth, …, since reading takes minutes."""
    return failing_blocks > 0 and (broken + 1) & broken == 0
