"""fio's results of a run under the names that fio-plot looks for: a JSON document and logs by the second of each step.

fio-plot 1.1.21 takes any .json whose job options have rw, iodepth and numjobs, and logs named
RW-iodepth-N-numjobs-N_TYPE: rows of "ms, value, direction, block, offset", 0 for read and 1 for write."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ssdrig.base.errors import JournalError, LoadError
from ssdrig.base.files import write_atomically
from ssdrig.load import fiolog
from ssdrig.load.fioclock import ends
from ssdrig.runs import parts

DIRECTIONS = ("read", "write")
KIB = 1024


class Exported(NamedTuple):
    """`files`: written, below the folder; `left_out`: steps without a document, and why."""

    files: list[str]
    left_out: dict[str, str]


def export(run: Path, folder: Path) -> Exported:
    """Write a folder for each fio step of a run. Raises JournalError."""
    files: list[str] = []
    left_out: dict[str, str] = {}
    for part in parts.own(run):
        for step in sorted(path.parent for path in (part / "fio").rglob("out.json")):
            name = step.relative_to(part / "fio").as_posix().replace("/", "-")
            try:
                made = _step(step)
            except (LoadError, OSError, ValueError, KeyError, TypeError, IndexError) as error:
                left_out[name] = str(error)
                continue
            try:
                (folder / name).mkdir(parents=True, exist_ok=True)
                for file, data in made.items():
                    write_atomically(folder / name / file, data)
                    files.append(f"{name}/{file}")
            except OSError as error:
                raise JournalError(f"to write {folder / name}", error.strerror or str(error), "name another") from error
    return Exported(files, left_out)


def _step(step: Path) -> dict[str, bytes]:
    """Content of each file of a step, by its name."""
    _, tail, _, _ = ends(step / "out.json")
    document = tail[-1]
    common = document.get("global options") or {}
    for job in document["jobs"]:
        options = {**common, **(job.get("job options") or {})}
        job["job options"] = {"iodepth": "1", "numjobs": "1", **options}
    options = document["jobs"][0]["job options"]
    name = f"{options['rw']}-iodepth-{options['iodepth']}-numjobs-{options['numjobs']}"
    out = {f"{name}.json": (json.dumps(document, indent=2) + "\n").encode()}
    rows: dict[str, list[str]] = {"iops": [], "bw": [], "lat": []}
    for number, direction in enumerate(DIRECTIONS):
        seconds = fiolog.load(step, direction)
        if not len(seconds.t_ns) or not seconds.iops.any():
            continue
        ms = (seconds.t_ns - seconds.t_ns[0]) // 10**6 + 1000
        of = {"iops": seconds.iops, "bw": seconds.bw_bytes // KIB, "lat": seconds.lat_mean_ns}
        for kind, values in of.items():
            rows[kind] += [f"{t}, {v}, {number}, 0, 0" for t, v in zip(ms.tolist(), np.asarray(values).tolist())]
    for kind, lines in rows.items():
        if lines:
            out[f"{name}_{kind}.1.log"] = ("\n".join(lines) + "\n").encode()
    return out
