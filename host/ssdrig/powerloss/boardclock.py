"""The board's time on the host's clock while a run goes on, with the bound of its error: by pings in its rig.bin."""

from pathlib import Path

from ssdrig.base.errors import RigError
from ssdrig.meter import clock, samples
from ssdrig.meter.frames import Decoder, Places

PINGS = 600  # number of latest pings fitted: some minutes


class BoardClock:
    """Reads on in rig.bin each time that it is asked, so nothing is read twice. `offset`: how far it has read."""

    def __init__(self, run: Path):
        self._run, self.offset, self._decoder = run, 0, Decoder(Places)

    def now(self) -> clock.ClockMap:
        """The map of the board's present boot. Raises RigError where no ping has been answered yet."""
        before = None
        while self.offset != before:
            records, before = samples.piece(self._run, self.offset), self.offset
            self._decoder.feed(records)
            self._decoder.forget(PINGS)
            self.offset = records.next_offset
        try:
            return clock.fit(*self._decoder.boots[-1].pings.T)
        except ValueError as error:
            raise RigError("a board that answers pings", str(error), "look at its cable: ./ssdrig rig info") from error
