"""The index of an archive: a row for each run folder in SQLite, in the user's cache folder. It is a copy: it may be
deleted at any time, and is made again from the folders.

A row is made again when the folder has changed: by the times of the folder itself (a file was made, replaced or
removed in it), and by length and time of each part's events.jsonl, which is appended to. Figures are those that a
report has left in the folder (figures.json); none that is older than the run's last event is believed.

A search such as `drive:990 op:25 state:complete tag:review since:2026-11` is a condition on the index. Each word must
hold. A word without a key is looked for in the name, title, tags, plan, model and serial of a run; a minus before a
word turns it round."""

import calendar
import contextlib
import datetime
import hashlib
import json
import os
import re
import shlex
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ssdrig.base import owner
from ssdrig.base.errors import JournalError, UsageError
from ssdrig.base.words import do_you_mean
from ssdrig.reading import one_run
from ssdrig.runs import parts

VERSION = 5  # of the table; one of another version is made again
STORE_S = 0.25  # rows are stored as often as this, so that others see them and an interrupted refresh loses little
FRESH_NS = 2_000_000_000  # a folder that has changed so lately may change again within one tick of its clock
COLUMNS = (
    *("id", "path", "key", "parts", "run", "started_utc_ns", "plan", "variant", "model", "serial", "op_percent"),
    *("simulated", "scaled", "state", "why", "title", "tags", "drive", "words", "figures"),
)
BUSY_S = 20.0
NO_LOCK = contextlib.nullcontext()
Part = tuple[str, list[str | float]]  # a condition in SQL, and its parameters


class Run(NamedTuple):
    """A run of the archive. id: of its path in the archive, the same after each rebuild; path: in the archive; state:
    one of search.STATES; figures: see one_run.headline."""

    id: str
    path: str
    run: str | None
    started_utc_ns: int | None
    plan: str | None
    variant: str | None
    model: str | None
    serial: str | None
    op_percent: float | None
    simulated: bool
    scaled: bool
    state: str
    why: str | None
    title: str | None
    tags: list[str]
    parts: int
    figures: dict


class Index:
    """The index of one folder of runs. Several threads need one lock, which refresh() takes by itself."""

    def __init__(self, root: str | os.PathLike, cache: Path | None = None):
        """Raises UsageError if the folder cannot be looked into. cache: folder of the index (default: the user's)."""
        self.root = Path(os.path.realpath(root))
        try:
            with os.scandir(self.root):
                pass
        except OSError as error:
            raise UsageError(
                f"a folder of runs {root}", error.strerror or str(error), "name the folder that holds them"
            ) from error
        self.file = (cache or cache_folder()) / f"archive-{id_of(str(self.root))}.sqlite"
        self._db = self._opened()

    def close(self) -> None:
        self._db.close()

    def refresh(
        self,
        progress: Callable[[int, int], None] = lambda done, due: None,
        lock: contextlib.AbstractContextManager = NO_LOCK,
    ) -> int:
        """Make the rows of folders that have changed, the latest first; returns how many. The row of a damaged folder
        states the damage. Raises JournalError if the folder of runs has gone.

        progress: called with how many of the folders due have been read: with 0 first, then whenever some are stored.
        lock: held while the table is used, and not while a folder is read."""
        for again in (self._opened, lambda: _table(":memory:")):
            try:
                return self._refreshed(progress, lock)
            except sqlite3.DatabaseError as error:
                with lock:
                    self._db.close()
                    if not isinstance(error, sqlite3.OperationalError):  # which means that it cannot be written
                        self.file.unlink(missing_ok=True)
                    self._db = again()
        return self._refreshed(progress, lock)

    def find(self, where: Part = ("1", []), limit: int = -1, offset: int = 0) -> list[Run]:
        """The runs for which a condition (condition()) holds, the latest first."""
        sql, values = where
        order = "started_utc_ns DESC, path DESC"  # by the index; NULL is the least
        return [*self._rows(f"SELECT * FROM run WHERE {sql} ORDER BY {order} LIMIT ? OFFSET ?", *values, limit, offset)]

    def count(self, where: Part = ("1", [])) -> int:
        sql, values = where
        return self._db.execute(f"SELECT count(*) FROM run WHERE {sql}", values).fetchone()[0]

    def get(self, run_id: str) -> Run | None:
        """The run with an id."""
        return next(self._rows("SELECT * FROM run WHERE id = ?", _text(run_id)), None)

    def folder(self, run: Run) -> Path:
        """The folder of a run. Raises JournalError if it has gone, or is no longer within the archive."""
        path = self.root / run.path
        if not _real(path).is_relative_to(self.root) or not (path / "run.json").is_file():
            raise JournalError(f"the run folder {run.path} in {self.root}", "none", "search again: the archive changed")
        return path

    # ---- within

    def _rows(self, sql: str, *values) -> Iterator[Run]:
        for row in self._db.execute(sql, values):
            fields: dict[str, Any] = {name: row[name] for name in Run._fields}
            fields |= {"path": os.fsdecode(row["path"]), "tags": (row["tags"] or "").split()}
            fields["figures"] = json.loads(row["figures"])
            yield Run(**fields | {"simulated": bool(row["simulated"]), "scaled": bool(row["scaled"])})

    def _opened(self) -> sqlite3.Connection:
        """The table, empty if it was not there or has another version; in memory without a cache folder."""
        owner.new(self.file)
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            return _table(str(self.file))
        except sqlite3.OperationalError:  # a folder or a disk that takes nothing
            return _table(":memory:")
        except sqlite3.DatabaseError:
            self.file.unlink(missing_ok=True)
            return _table(str(self.file))
        except OSError:
            return _table(":memory:")

    def _refreshed(self, progress: Callable[[int, int], None], lock: contextlib.AbstractContextManager) -> int:
        with lock:
            listed = self._db.execute("SELECT path, key, parts, state FROM run").fetchall()
        known = {os.fsdecode(row[0]): row[1:] for row in listed}
        now_ns, there, due = time.time_ns(), set(), []
        for path in folders(self.root):
            there.add(path)
            key, count, state = known.get(path, (None, 1, None))
            if not key or state == "running" or key != _key(self.root / path, count):
                due.append(path)
        due.sort(key=lambda path: _changed_ns(self.root / path), reverse=True)
        gone, rows, stored_s = known.keys() - there, [], time.monotonic()
        if due:
            progress(0, len(due))
        for done, path in enumerate(due, 1):
            rows.append(self._made(path, now_ns))
            if done < len(due) and time.monotonic() - stored_s > STORE_S:
                with lock:
                    self._store(rows)
                rows, stored_s = [], time.monotonic()
                progress(done, len(due))
        if rows or gone:
            with lock:
                self._store(rows, gone)
        return len(due) + len(gone)

    def _store(self, rows: list[tuple], gone: Iterable[str] = ()) -> None:
        marks = ", ".join("?" * len(COLUMNS))
        with self._db:
            self._db.executemany(f"INSERT OR REPLACE INTO run ({', '.join(COLUMNS)}) VALUES ({marks})", rows)
            self._db.executemany("DELETE FROM run WHERE id = ?", [(id_of(path),) for path in gone])

    def _made(self, path: str, now_ns: int) -> tuple:
        folder = self.root / path
        count = len(parts.of(folder))
        key = _key(folder, count)  # before it is read: what changes meanwhile is read again
        row = one_run.row(folder)
        if key and max(int(word) for word in key.split()) > now_ns - FRESH_NS:
            key = None
        row = {name: _text(value) if isinstance(value, str) else value for name, value in row.items()}
        stored = path if path == _text(path) else os.fsencode(path)  # a name that is not text stays bytes
        row |= {"id": id_of(path), "path": stored, "key": key, "parts": count}
        row["figures"] = json.dumps(row["figures"])
        return tuple(row[name] for name in COLUMNS)


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/ssdrig, or ~/.cache/ssdrig without it."""
    return owner.base("XDG_CACHE_HOME", ".cache") / "ssdrig"


def folders(root: Path) -> Iterator[str]:
    """Paths in `root` of the run folders there and in the reviews there. A link that leads out of it does not count.
    Raises JournalError."""
    try:
        with os.scandir(root) as listing:
            entries = [*listing]
    except OSError as error:
        raise JournalError(
            f"a folder of runs {root}", error.strerror or str(error), "name the folder that holds them"
        ) from error
    for entry in entries:
        if not _inside(entry, root):
            continue
        if _has(entry.path, "run.json"):
            yield entry.name
        elif _has(entry.path, parts.REVIEW):
            try:
                with os.scandir(entry.path) as listing:
                    inner = [child for child in listing if _inside(child, root) and _has(child.path, "run.json")]
            except OSError:
                continue
            yield from (f"{entry.name}/{child.name}" for child in inner)


def _inside(entry: os.DirEntry, root: Path) -> bool:
    """Whether it is a folder within the archive; half-made ones begin with a dot."""
    try:
        if entry.name.startswith(".") or not entry.is_dir():
            return False
        return not entry.is_symlink() or _real(entry.path).is_relative_to(root)
    except OSError:
        return False


def _has(folder: str, name: str) -> bool:
    """As parts.all_runs: an unreadable folder is taken for a run, whose row states that."""
    try:
        os.stat(os.path.join(folder, name))
        return True
    except PermissionError:
        return name == "run.json"
    except OSError:
        return False


def _key(folder: Path, count: int) -> str | None:
    """What changes when anything changes that a row is made of; None: it must be read."""
    try:
        stamps = []
        for number in range(1, count + 1):
            part = str(folder) if number == 1 else f"{folder}/part-{number}"
            stamps.append(os.stat(part).st_mtime_ns)
            status = os.stat(f"{part}/events.jsonl")
            stamps += [status.st_size, status.st_mtime_ns]
        return " ".join(map(str, stamps))
    except OSError:
        return None


def _changed_ns(folder: Path) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def _real(path: str | os.PathLike) -> Path:
    """Where a path leads; the path itself where links lead in a circle."""
    return Path(os.path.realpath(path))


def _text(value: str) -> str:
    """As SQLite takes it: UTF-8."""
    return value.encode(errors="replace").decode()


def id_of(text: str) -> str:
    """The id of a run or a review by its path in the archive."""
    return hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=8).hexdigest()


def _table(file: str) -> sqlite3.Connection:
    db = sqlite3.connect(file, timeout=BUSY_S, check_same_thread=False)
    try:
        db.row_factory = sqlite3.Row
        if not _is_ours(db):
            with db:
                db.execute("BEGIN IMMEDIATE")
                if not _is_ours(db):  # another process may have made and filled it meanwhile
                    db.execute("DROP TABLE IF EXISTS run")
                    db.execute(f"CREATE TABLE run ({', '.join(COLUMNS)}, PRIMARY KEY (id))")
                    db.execute("CREATE INDEX by_time ON run (started_utc_ns, path)")
                    db.execute(f"PRAGMA user_version = {VERSION}")
        return db
    except BaseException:
        db.close()
        raise


def _is_ours(db: sqlite3.Connection) -> bool:
    return db.execute("PRAGMA user_version").fetchone()[0] == VERSION


STATES = ("complete", "failed", "interrupted", "died", "running", "unreadable")
OP_STEP = 0.5  # over-provisioning that is as near as this, in percent of raw NAND, is the same
YES = {"yes": 1, "no": 0}
HELP = (
    "words, all of which must hold: drive:990 plan:pts op:25|default state:complete tag:review title:WORD run:WORD"
    " since:2026-11 until:2026-11-30 simulated:yes|no; a bare word is searched everywhere; -WORD excludes"
    " (after other words in one pair of quotes, or after --)"
)


def condition(text: str) -> Part:
    """The search as SQL over the table `run` (index.py), and its parameters. Raises UsageError."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError('a search such as drive:990 title:"two words"', text[:80], "close the quote") from error
    return joined(words)


def joined(words: list[str]) -> Part:
    """condition() of words that a shell has split."""
    parts, values = [], []
    for word in (word.encode(errors="replace").decode() for word in words):  # without bytes that are not text
        not_, bare = ("NOT ", word[1:]) if word.startswith("-") and len(word) > 1 else ("", word)
        sql, more = _one(bare)
        parts.append(f"{not_}({sql})")
        values += more
    return " AND ".join(parts) or "1", values


def _one(word: str) -> Part:
    key, colon, value = word.partition(":")
    if not colon:
        return _like("words", word)
    if key not in KEYS:
        raise UsageError(f"a key of a search: {', '.join(KEYS)}", f"{key[:40]!r}", do_you_mean(key, KEYS))
    if not value:
        raise UsageError(f"a value after {key}:", "none", f"write it as in {EXAMPLES[key]}")
    return KEYS[key](value)


def _like(column: str, value: str) -> Part:
    """Whether the column, which is in lower case, contains the value."""
    escaped = re.sub(r"([\\%_])", r"\\\1", value.lower())
    return f"coalesce({column}, '') LIKE ? ESCAPE '\\'", [f"%{escaped}%"]


def _state(value: str) -> Part:
    if value not in STATES:
        raise UsageError(f"a state: {', '.join(STATES)}", f"{value[:40]!r}", "choose one of them")
    return "state = ?", [value]


def _tag(value: str) -> Part:
    return "coalesce(tags, '') LIKE ? ESCAPE '\\'", [_like("", f" {value} ")[1][0]]


def _op(value: str) -> Part:
    if value == "default":
        return "op_percent IS NULL", []
    try:
        percent = float(value.rstrip("%"))
    except ValueError as error:
        raise UsageError("over-provisioning such as op:25 or op:default", f"{value[:40]!r}", "give percent") from error
    return "coalesce(abs(op_percent - ?), 1e9) <= ?", [percent, OP_STEP]


def _simulated(value: str) -> Part:
    if value not in YES:
        raise UsageError("simulated:yes or simulated:no", f"{value[:40]!r}", "choose one of them")
    return "coalesce(simulated, -1) = ?", [YES[value]]


def _since(value: str) -> Part:
    return "coalesce(started_utc_ns, 0) >= ?", [_span_ns(value)[0]]


def _until(value: str) -> Part:
    return "coalesce(started_utc_ns, 0) < ?", [_span_ns(value)[1]]


def _span_ns(value: str) -> tuple[int, int]:
    """When a year, a month or a day (UTC) begins and ends, ns since 1970."""
    match = re.fullmatch(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?", value)
    try:
        if not match:
            raise ValueError
        year, month, day = (int(part) if part else None for part in match.groups())
        begin = datetime.datetime(year or 0, month or 1, day or 1, tzinfo=datetime.UTC)
    except ValueError as error:
        raise UsageError("a date such as 2026, 2026-11 or 2026-11-30", f"{value[:40]!r}", "give it in UTC") from error
    days = 1 if day else calendar.monthrange(begin.year, begin.month)[1] if month else 365 + calendar.isleap(begin.year)
    begin_s = int(begin.timestamp())
    return _held(begin_s * 10**9), _held((begin_s + days * 86400) * 10**9)


def _held(utc_ns: int) -> int:
    """As near as SQLite can hold it: no run has begun before 1678, none after 2261."""
    return max(-(2**63), min(utc_ns, 2**63 - 1))


KEYS: dict[str, Callable[[str], Part]] = {
    "drive": lambda value: _like("drive", value),
    "plan": lambda value: _like("plan", value),
    "op": _op,
    "state": _state,
    "tag": _tag,
    "title": lambda value: _like("lower(title)", value),
    "run": lambda value: _like("lower(path)", value),
    "since": _since,
    "until": _until,
    "simulated": _simulated,
}
EXAMPLES = {
    "drive": "drive:990",
    "plan": "plan:pts",
    "op": "op:25",
    "state": "state:complete",
    "tag": "tag:review",
    "title": "title:firmware",
    "run": "run:76fa",
    "since": "since:2026-11",
    "until": "until:2026-11-30",
    "simulated": "simulated:no",
}
