"""Run folders with known content, and what a lake holds of them, for the tests of the lake."""

import json
from pathlib import Path

import synthetic_run

from ssdrig.publish.lake import place, read, write

IOPS = [4000] * 3 + [2000] * 3
WATTS = ((-100.0, 4.0), (0.0, 2.5), (3.5, 3.25))


def run(
    folder: Path, name: str, iops=IOPS, firmware: str = "1", later_s: int = 0, first_io: bool = False, **more
) -> Path:
    """A short consistency run, begun so much later than the others; its samples are of two kinds of seconds."""
    made = synthetic_run.write(folder, iops, **{"zoom_s": 3, "watts": WATTS, "name": name, "smart_every_s": 2, **more})
    edit(made, later_s, first_io, firmware=firmware)
    return made


def edit(run: Path, later_s: int = 0, first_io: bool = False, **drive) -> None:
    """Change what run.json says of the drive, and the day of all of the run."""
    header = json.loads((run / "run.json").read_text())
    header["drive"] |= drive
    header["started"]["utc_ns"] += later_s * 10**9
    (run / "run.json").write_text(json.dumps(header))
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    for event in events:
        del event["line"], event["crc"]
        event |= {"utc_ns": event["utc_ns"] + later_s * 10**9} if "utc_ns" in event else {}
    if first_io:
        at = next(i for i, event in enumerate(events) if event.get("step") == "load")
        events.insert(at + 1, {"t_ns": events[at]["t_ns"], "kind": "load.first_io", "step": "load"})
    synthetic_run.seal(run, events)


def lake_of(folder: Path, *runs: Path, lab: str = "berlin") -> read.Lake:
    where = place.open_place(str(folder))
    for run in runs:
        write.export(run, where, lab)
    return read.look(where)


def asked(lake: read.Lake, sql: str) -> list[dict]:
    with read.connect(lake, sql=sql) as connection:
        return connection.sql(sql).to_arrow_table().to_pylist()


def counts(lake: read.Lake) -> dict[str, int]:
    """Rows of each kind."""
    selects = (f"SELECT '{kind}' AS kind, count(*) AS n FROM \"{kind}\"" for kind in ["run", *lake.files])
    return {row["kind"]: row["n"] for row in asked(lake, " UNION ALL ".join(selects))}


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file, half-made ones too."""
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
