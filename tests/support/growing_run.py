"""A run folder that grows as that of a run that goes on, from a finished one: piece by piece, up to a time."""

import fcntl
import json
import os
import shutil
from pathlib import Path

from ssdrig.runs import journal, rigbin, rigrecords
from ssdrig.runs.integrity import sealed

TORN_BYTES = 20


class Growing:
    """A copy of the run `whole` in `runs`, empty at first and locked as by its writer; to(t_ns) adds what had been
    written by then, torn: half of the next record, line and document is there, too. end() adds the rest and gives the
    lock back."""

    def __init__(self, whole: Path, runs: Path, name: str = "growing", shift_ns: int = 0):
        """shift_ns: all of its times are later by this, such as to be of now."""
        self._shift_ns = shift_ns
        self.folder = runs / name
        self.folder.mkdir(parents=True)
        self._lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._whole = whole
        header = json.loads((whole / "run.json").read_text())
        header["run"] = name
        header["started"]["t_ns"] += shift_ns
        self.began_ns = header["started"]["t_ns"]
        for path in ("rig.bin", "events.jsonl"):
            (self.folder / path).touch()
        self._done: dict[str, tuple[int, int]] = {}  # pieces that are written whole, bytes of the next
        self._pieces: dict[str, list[tuple[int, bytes]]] = {"rig.bin": self._records()}
        events = [event | {"t_ns": event["t_ns"] + shift_ns} for event in journal.events(whole)]
        jobs = {e["step"] for e in events if e["kind"] == "step.start" and (whole / "fio" / e["step"]).is_dir()}
        self._pieces["events.jsonl"] = [(event["t_ns"], sealed(event, n)) for n, event in enumerate(events)]
        for step in jobs:
            out = (whole / "fio" / step / "out.json").read_text().splitlines(keepends=True)
            self._pieces[f"fio/{step}/out.json"] = self._timed(out)
        for event in events:
            if event["kind"] == "smart.end":
                name_ = f"smart/{event['n']:03d}.json"
                document = json.loads((whole / name_).read_text())
                document |= {key: document[key] + shift_ns for key in ("t_start_ns", "t_end_ns")}
                self._pieces[name_] = [(event["t_ns"] - 1, json.dumps(document).encode())]
        self.end_ns = max(t for t, _ in self._pieces["events.jsonl"])
        (self.folder / "run.json").write_text(json.dumps(header))

    def _records(self) -> list[tuple[int, bytes]]:
        data = (self._whole / "rig.bin").read_bytes()
        records = rigrecords.decode(data)
        rows = [
            (int(records.kind[i]), records.payload(i), int(records.t_ns[i]) + self._shift_ns)
            for i in range(len(records))
        ]
        return [(t_ns, rigbin.encode(kind, payload, t_ns)) for kind, payload, t_ns in rows]

    def _timed(self, lines: list[str]) -> list[tuple[int, bytes]]:
        """The lines of out.json that are ours, with their times."""
        documents = [json.loads(line) for line in lines if line.startswith('{"t_ns"')]
        shifted = [document | {"t_ns": document["t_ns"] + self._shift_ns} for document in documents]
        return [(document["t_ns"], json.dumps(document).encode() + b"\n") for document in shifted]

    def to(self, t_ns: int) -> None:
        """All that had been written by then."""
        for name, pieces in sorted(self._pieces.items(), key=lambda item: item[0] == "events.jsonl"):
            at, torn = self._done.get(name, (0, 0))
            first = at
            while at < len(pieces) and pieces[at][0] <= t_ns:
                at += 1
            if at == first:
                continue
            more = b"".join(piece for _, piece in pieces[first:at])[torn:]
            torn = min(TORN_BYTES, len(pieces[at][1]) - 1) if at < len(pieces) else 0
            more += pieces[at][1][:torn] if torn else b""
            self._done[name] = at, torn
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "ab") as f:
                f.write(more)

    def end(self) -> Path:
        self.to(1 << 62)
        os.close(self._lock)
        return self.folder

    def gone(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
