"""What a campaign keeps in mind of the sessions that it has judged; all else of them is on the disk (sessions.py), so
its memory does not grow with them."""

from collections.abc import Iterable, Mapping

from ssdrig.powerloss import health, judging

NAMED = 10  # failing sessions that are named in the end
REASONS = 3  # why sessions were not judged


class Tally:
    """`last`: the record of the latest session; `ready_s`: of the first ones, see health.usual_s(); `named`: the first
    failing sessions; `reasons`: why cuts were not judged, some of them."""

    def __init__(self, records: Iterable[Mapping] = ()):
        self.cuts = self.failed = self.suspicious = self.most_bytes = self.tried = 0
        self.named: list[int] = []
        self.ready_s: list[float] = []
        self.reasons: list[str] = []
        self.last: Mapping = {}
        for each in records:
            self.add(each)

    def add(self, record: Mapping) -> None:
        """One more session, records in the order of their numbers."""
        cuts, failed, suspicious = judging.counted([record])
        self.cuts, self.failed, self.suspicious = self.cuts + cuts, self.failed + failed, self.suspicious + suspicious
        self.most_bytes = max(self.most_bytes, record["written_bytes"])
        if record["failed"]:
            self.named = sorted([*self.named, record["cut"]])[:NAMED]
        if record["ready_s"] is not None and len(self.ready_s) < health.USUAL_OF:
            self.ready_s.append(record["ready_s"])
        if not record["control"]:
            self.tried += 1
            if not record["judged"]:
                self.reasons = sorted({*self.reasons, record["why_not"]})[:REASONS]
        self.last = record

    def before(self, number: int) -> Mapping | None:
        """The record of the session before this one, None where the latest is another."""
        return self.last if self.last.get("cut") == number - 1 else None
