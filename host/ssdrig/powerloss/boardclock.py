"""The board's time on the host's clock while a run goes on, with the bound of its error: by pings in its rig.bin."""

from pathlib import Path

import numpy as np

from ssdrig import journal
from ssdrig.errors import RigError
from ssdrig.meter import clock
from ssdrig.meter.frames import Decoder, Places

PINGS = 600  # the latest so many are fitted: some minutes


class BoardClock:
    """Reads on in rig.bin each time that it is asked, so nothing is read twice. `offset`: how far it has read."""

    def __init__(self, run: Path):
        self._run, self.offset, self._decoder = run, 0, Decoder(Places)

    def now(self) -> clock.ClockMap:
        """The map of the board's present boot. Raises RigError where no ping has been answered yet."""
        records = journal.records(self._run, self.offset)
        self._decoder.feed(records)
        self.offset = records.next_offset
        for rail in self._decoder.rails():
            self._decoder.keep(rail, np.zeros(len(self._decoder.frames(rail).n), bool))
        boot = self._decoder.boots[-1]
        boot.forget_pings(PINGS)
        try:
            return clock.fit(*boot.pings.T)
        except ValueError as error:
            raise RigError("a board that answers pings", str(error), "look at its cable: ./ssdrig rig info") from error
