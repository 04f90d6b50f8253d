"""A second meter of the supply that a run measures: recorded in a subfolder of the run's and compared with the first,
step by step. No figure uses it."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ssdrig.base.deferred import Deferred
from ssdrig.base.errors import SsdrigError, words_of
from ssdrig.base.progress import Progress
from ssdrig.meter import bridge
from ssdrig.meter.pico.stream import Rig
from ssdrig.runs import journal, rigbin

if TYPE_CHECKING:
    from ssdrig.meter import crosscheck, samples
else:
    crosscheck, samples = Deferred("ssdrig.meter.crosscheck"), Deferred("ssdrig.meter.samples")

FOLDER = "second"
EVENT = "meters"  # of a step: ratio, error, agree, why


class Book:
    """Where the second meter keeps what it measures: see line.Book. Its events are the run's, with a name of theirs."""

    def __init__(self, run: journal.Journal):
        self._run, self.path = run, run.path / FOLDER
        self.path.mkdir(exist_ok=True)
        self._file = open(self.path / "rig.bin", "ab", buffering=0)

    def record(self, kind: int, payload: bytes, t_ns: int) -> None:
        self._file.write(rigbin.encode(kind, payload, t_ns))

    def record_all(self, rows: list[tuple[int, bytes, int]]) -> None:
        self._file.write(b"".join(rigbin.encode(*row) for row in rows))

    def event(self, kind: str, t_ns: int | None = None, **fields) -> object:
        return self._run.event(f"second.{kind}", t_ns, **fields)

    def close(self) -> None:
        """Bring all to the disk."""
        os.fsync(self._file.fileno())
        self._file.close()


class Second:
    """The second meter of a run, measuring from the start on. Raises RigError, UsageError, ToolMissing."""

    def __init__(self, url: str, run: journal.Journal):
        self._run, self._book = run, Book(run)
        self._rig: Rig = bridge.opened(url, self._book)
        try:
            self._rig.start()
        except BaseException:
            self._book.close()
            raise

    def end(self, show: Progress) -> None:
        """Stop it, and record how the two compare in each step. A failure is an event and does not end the run."""
        self._rig.stop()
        self._book.close()
        try:
            first, second = samples.load_rails(self._run.path), samples.load_rails(self._book.path)
        except SsdrigError as error:
            self._run.event(EVENT, why=words_of(error))
            return
        for step, begin_ns, end_ns in steps(self._run.path):
            comparison = crosscheck.compare(first, second, begin_ns, end_ns)
            self._run.event(EVENT, step=step, **comparison._asdict(), agree=comparison.agree)
            if comparison.agree is False:
                show.warn(f"{step}: the meters differ: {comparison.ratio:.4f} +- {comparison.error:.4f}")


def steps(run: Path) -> list[tuple[str, int, int]]:
    """Name, begin and end of the steps of a run that have ended."""
    begun: dict[str, int] = {}
    out = []
    for event in journal.events(run):
        name = event.get("step")
        if event["kind"] == "step.start" and isinstance(name, str):
            begun[name] = event["t_ns"]
        elif event["kind"] == "step.end" and name in begun:
            out.append((name, begun.pop(name), event["t_ns"]))
    return out
