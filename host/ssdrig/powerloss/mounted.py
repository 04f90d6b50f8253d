"""The file systems of a campaign, session by session: made once, written to by their clients, looked at after each cut,
and made again if damaged."""

from collections.abc import Mapping, Sequence
from typing import Any

from ssdrig.powerloss import above, filesystems
from ssdrig.powerloss.filesystems import Filesystems

REPORT = ("filesystem", "client", "session", "begun")


class Mounted:
    """asked: as cut_filesystems.parse() has them; capacity_bytes: of the drive, whose end they take."""

    def __init__(self, driver: Filesystems, asked: Sequence[Sequence[str]], block_bytes: int, capacity_bytes: int):
        self._driver, self._block_bytes = driver, block_bytes
        self._places = filesystems.places(asked, capacity_bytes)
        self._to_make = {place["kind"] for place in self._places}
        self._rest: list[dict[str, Any]] = []  # reports of the session before, of the undamaged ones

    def start(self, session: int, writes: bool = True) -> dict[str, Any] | None:
        """Make what there is to make, and start a client of each kind on each, or none where nothing `writes`: then
        the result of Filesystems.down(), otherwise None. Raises DriveError."""
        if places := [place for place in self._places if place["kind"] in self._to_make]:
            self._driver.make(self._block_bytes, places)
            self._to_make = set()
        if not writes:
            return {"clients": [], "down_ns": 0}
        self._driver.start(session, self._rest[0]["session"] if self._rest else 0)
        return None

    def forget(self) -> None:
        """Their state is unknown: make all again before the next session."""
        self._to_make, self._rest = {place["kind"] for place in self._places}, []

    def judge(self, cut: int, down: Mapping[str, Any], **times: Any) -> tuple[dict[str, Any], int]:
        """(the verdict above the block, bytes that all file systems wrote). The drive has its power. down: what
        Filesystems.down() gave; times: until_ns, fired_ns, why_not and block_failed of above.judge(). Raises
        DriveError."""
        reports = [*down["clients"], *self._rest]
        seen = self._driver.look([{key: each[key] for key in REPORT} for each in reports])
        found = above.judge(cut, reports, seen, down_ns=down["down_ns"], **times)
        damaged = {each["filesystem"] for each in found["clients"] if above.broken(each)}
        damaged |= {each["filesystem"] for each in found["filesystems"] if not above.sound(each)}
        self._to_make = damaged
        if not down["clients"]:
            self._rest = [each for each in self._rest if each["filesystem"] not in damaged]
            return found, seen["written_bytes"]
        self._rest = [
            {**{key: each[key] for key in REPORT}, "acked_ns": [0] * left["whole"][0][1], "at_rest": True}
            for each in down["clients"]
            for left in seen["clients"]
            if all(left[key] == each[key] for key in REPORT[:3])
            and each["filesystem"] not in damaged
            and len(left["whole"]) == 1
            and left["whole"][0][0] == 1
        ]
        return found, seen["written_bytes"]
