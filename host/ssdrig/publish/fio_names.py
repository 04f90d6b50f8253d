"""fio's results of a run under the names that fio-plot looks for: a JSON document and logs by the second of each step.

fio-plot 1.1.21 takes any .json whose job options have rw, iodepth and numjobs, and logs named
RW-iodepth-N-numjobs-N_TYPE: rows of "ms, value, direction, block, offset", 0 for read and 1 for write."""

import json
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ssdrig.base.errors import JournalError, LoadError, reason
from ssdrig.base.files import write_atomically
from ssdrig.load import fiolog
from ssdrig.load.fioclock import ends
from ssdrig.runs import parts

DIRECTIONS = ("read", "write")
KIB = 1024
_COUNT = re.compile(r"\d{1,9}", re.ASCII)
_PARTS_OF_NAME = {"rw": re.compile(r"[a-z]{1,20}(?::\d{1,9})?", re.ASCII), "iodepth": _COUNT, "numjobs": _COUNT}


class Exported(NamedTuple):
    """`files`: written, below the folder; `left_out`: steps without a document, and why."""

    files: list[str]
    left_out: dict[str, str]


def export(run: Path, folder: Path) -> Exported:
    """Write a folder for each fio step of a run. Raises JournalError."""
    files: list[str] = []
    left_out: dict[str, str] = {}
    names: set[str] = set()
    for number, part in enumerate(parts.own(run), 1):
        for step in sorted(path.parent for path in (part / "fio").rglob("out.json")):
            name = step.relative_to(part / "fio").as_posix().replace("/", "-")
            if name in names:  # of a resumed run each part has its own
                name = f"{name}-part-{number}"
            names.add(name)
            try:
                made = _step(step)
            except (LoadError, OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
                left_out[name] = reason(error)
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
    for key, form in _PARTS_OF_NAME.items():  # a run folder is data: nothing of it leads out of the folder
        if not form.fullmatch(str(options[key])):
            raise ValueError(f"its job option {key} is {str(options[key])[:40]!r}")
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
