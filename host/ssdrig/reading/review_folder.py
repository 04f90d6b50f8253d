"""The folder of a review: review.json, written once before anything is touched, and its run folders. They
record the progress themselves: each run.json names its plan of the review."""

import contextlib
import json
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType

from ssdrig import __version__
from ssdrig.base import files, owner, system
from ssdrig.base.errors import JournalError, SsdrigError
from ssdrig.base.files import write_atomically
from ssdrig.plan import reviews
from ssdrig.runs import integrity, journal, parts

SCHEMA = 1


@dataclass(frozen=True)
class Planned:
    """A plan as review.json has it. `why`: why it is not run; `seed`: of its first fio job."""

    name: str
    plan: str
    variant: str | None
    sets: dict[str, str]
    seed: int
    why: str | None = None


@dataclass(frozen=True)
class Review:
    """A review folder. `document`: its review.json; `plans`: those that are run in their order, then the others."""

    folder: Path
    document: Mapping
    plans: tuple[Planned, ...]


@dataclass(frozen=True)
class Done:
    """What the review has of one plan. `run`: its folder, None: it was not begun; `state`: of the run."""

    run: Path | None
    state: str = "not run"
    why: str | None = None

    @property
    def complete(self) -> bool:
        return self.state == "complete" and self.why is None


def create(runs: str | os.PathLike, document: dict) -> Review:
    """A new review folder in `runs`. Raises JournalError."""
    started = {"t_ns": time.monotonic_ns(), "utc_ns": time.time_ns()}
    drive = (
        document["drive"].get("preset") or document["drive"].get("serial") or document["drive"].get("model") or "drive"
    )
    utc = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(started["utc_ns"] // 10**9))
    name = f"{utc}-review-{re.sub(r'[^A-Za-z0-9]+', '-', str(drive)).strip('-') or 'x'}-{secrets.token_hex(2)}"
    folder, whole = Path(runs) / name, {"schema": SCHEMA, "review": name, "ssdrig": __version__, "started": started}
    try:
        owner.new(folder)
        folder.mkdir(parents=True)
        os.close(files.lock_file(folder / "lock"))
        write_atomically(folder / parts.REVIEW, (json.dumps(whole | document, indent=1) + "\n").encode())
    except OSError as error:
        do = "choose another --runs, or make room"
        raise JournalError(f"a new review folder {folder}", error.strerror or str(error), do) from error
    return read(folder)


def read(folder: Path) -> Review:
    """A review folder. Raises JournalError for another folder, one with a damaged review.json, or one that contains a
    pipe, a device or a link that leads out of it."""
    if (folder / parts.REVIEW).is_file() and (odd := integrity.oddity(folder)):
        raise JournalError(f"only what a review writes in {folder}", odd, "remove it; no review makes one")
    try:
        document = integrity.document_of(folder / parts.REVIEW)
        if (
            document["schema"] != SCHEMA
            or document["level"] not in reviews.LEVELS
            or not isinstance(document["drive"], dict)
        ):
            raise ValueError(f"schema {document['schema']}, level {document['level']!r}")
        _check(document)
        keys = ("name", "plan", "variant", "sets", "seed", "why")
        plans = tuple(Planned(**{key: planned[key] for key in keys}) for planned in document["plans"])
    except OSError as error:
        do = "name the folder of a review, which ./ssdrig review printed when it began"
        raise JournalError(f"a review in {folder}", error.strerror or str(error), do) from error
    except (AttributeError, ValueError, KeyError, TypeError, RecursionError) as error:
        seen = f"{type(error).__name__}: {error}"
        raise JournalError(f"the {parts.REVIEW} of {folder} as it was written", seen, "take it from a copy") from error
    return Review(folder, document, plans)


TEXT, WHOLE = (str, NoneType), (int, NoneType)
OPTIONS = {"virtual": TEXT, "capacity": TEXT, "raw_nand": TEXT, "purge": TEXT, "seed": WHOLE}


def _check(document: Mapping) -> None:
    """Raises ValueError for what no review writes."""
    wrong = journal.wrong_values({key: document[key] for key in ("started", "drive") if key in document})
    wrong = [key for key in wrong if key != "run"]
    options = document.get("options", {})
    wrong += [f"options.{key}" for key, kinds in OPTIONS.items() if not _is(options.get(key), kinds)]
    wrong += [key for key in ("rated_bytes", "budget_bytes") if not _is(document.get(key), (int, float, NoneType))]
    for planned in document["plans"]:
        of = {"name": str, "plan": str, "variant": TEXT, "sets": dict, "seed": int, "why": TEXT}
        wrong += [key for key, kinds in of.items() if not _is(planned[key], kinds)]
        wrong += [f"sets.{key}" for key, value in planned["sets"].items() if not isinstance(value, str)]
    if wrong:
        raise ValueError(f"no usable {', '.join(wrong)}")


def _is(value: object, kinds: type | tuple[type, ...]) -> bool:
    good = isinstance(value, kinds) and not isinstance(value, bool)
    return good and not (isinstance(value, int | float) and not -(1 << 62) <= value <= 1 << 62)


def done(review: Review) -> dict[str, Done]:
    """The run of each plan of a review, by its name; of several runs of a plan the last."""
    runs = {planned.name: Done(None, why=planned.why or "the review ended before") for planned in review.plans}
    for run in reversed(parts.all_runs(review.folder)):
        try:
            header = journal.run_header(run)
            name = (header.get("review") or {}).get("plan")
            if name in runs:
                last = parts.of(run)[-1]
                end: dict = next((e for e in reversed(journal.events(last)) if e["kind"] == "run.end"), {})
                runs[name] = Done(run, journal.state(last), end.get("why"))
        except SsdrigError:
            continue
    return runs


def unfinished(runs: str | os.PathLike, drive: Mapping) -> Review | None:
    """The latest review of this drive in a folder of runs, where plans are left to run and no process runs it; None
    without."""
    facts = ("preset",) if drive.get("preset") else ("model", "serial")
    same = lambda known: all(known.get(key) == drive.get(key) for key in facts)
    for path in sorted(Path(runs).glob(f"*/{parts.REVIEW}"), reverse=True):
        try:
            review = read(path.parent)
        except JournalError:
            continue
        if same(review.document["drive"]):
            left = any(not planned.why and not done(review)[planned.name].complete for planned in review.plans)
            return review if left and not files.is_locked(path.parent / "lock") else None
    return None


@contextlib.contextmanager
def held(review: Review) -> Iterator[None]:
    """The review is this process's alone. Raises JournalError where another process runs it."""
    path = review.folder / "lock"
    try:
        lock = files.lock_file(path)
    except OSError as error:
        raise JournalError(f"to lock {path}", error.strerror or str(error), "take a copy that is writable") from error
    try:
        system.lock(lock, wait=False)
    except OSError as error:
        os.close(lock)
        seen, do = "a process that still runs it", "wait for its end, or end it"
        raise JournalError(f"a review that has ended: {review.folder}", seen, do) from error
    try:
        yield
    finally:
        os.close(lock)
