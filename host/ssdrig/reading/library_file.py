"""A library file: summaries of runs that one library hands to another, some hundred kB a drive. It has each run's plan,
its rows with their figures and errors, and its loads by the second; not the power samples, the latencies by the second,
the serial number, or the name of the host.

    magic | SHA-256 of what follows | zlib: JSON of the runs, a line | the arrays, as NumPy's npz

The SHA-256 proves that the file is as it was written. It proves neither who wrote it nor that the figures are true.
Each run carries the SHA-256 of the run.json and the events.jsonl that it was made from: who has the run folder can show
that the summary belongs to it. A file holds numbers and text only, and each value is checked: a stranger's file runs no
code, and one that is not as it should be is refused as a whole."""

import hashlib
import io
import json
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ssdrig import __version__
from ssdrig.base.errors import JournalError, SsdrigError, reason
from ssdrig.base.terminal import shown
from ssdrig.load import fiotext
from ssdrig.plan.expand import Act
from ssdrig.reading import library_ranges, table, trust, window_figures
from ssdrig.reading.row import KEYS, Row, Table, Verdict
from ssdrig.reading.rundata import RunData
from ssdrig.runs import integrity, journal

SUFFIX = ".ssdlib"
FOLDER = "library"  # of the imported files, in the folder of the runs
MAGIC = b"ssdrig library 1\n"
SCHEMA = 1
MOST_FILE_BYTES, MOST_OPEN_BYTES = 16 << 20, 128 << 20
MOST_LINE_BYTES = 8 << 20  # of the JSON; opened, one of short lists takes twenty times its length
MOST_RATED_BYTES = 1e21
MOST_RUNS, MOST_ROWS, MOST_SECONDS, MOST_TEXT = 64, 20_000, 1_000_000, 1 << 16
MOST_NAME = 200  # of a model, a firmware, a run: in each legend, row and sentence of a page
MOST_DEPTH = 12  # of lists in lists
DIGITS = 5  # of a figure; of a value by the second one fewer
STATES = ("done", "failed", "running", "cut short", "not run")
DRIVE = (  # of a run's drive; what names one specimen stays at home
    *("model", "firmware", "capacity_bytes", "raw_nand_bytes", "raw_nand_assumed", "logical_block_bytes", "interface"),
    *("link", "preset", "time_dilation", "rated_write_bytes", "rated_pe_cycles", "zoned"),
)
HOST = ("fio", "kernel", "cpus")
METHOD = ("name", "op_percent", "tested_bytes")
PLAN = ("name", "variant", "scaled", "params", "text")
GRID = ("iops", "bw_Bps", "lat_mean_us", "lat_p99_us", "power_mean_W", "energy_J")  # by the second
POLLS = ("temp_t_s", "temperature_C", "wa_t_s", "wa_value", "wa_error")  # at each reading of SMART
FOUND = ("quiet", "rest", "plateaus", "played", "choose")  # kinds of events of a step that views show
# of a window; the others interest the owner of the run
FIGURES = {*KEYS, *(term.key for term in window_figures.TERMS), "t0_s", "t1_s", "burst_iops", "pause_mean_W", "floor_W"}
FIGURES -= {"errors"}


class Shared(NamedTuple):
    """tables: the runs, as table.load() gives them, without what a file leaves out; their paths do not exist
    rated_bytes: rated endurance of the drive
    price: as its owner wrote it
    utc_ns: when the file was made"""

    tables: list[Table]
    rated_bytes: float | None
    price: str | None
    utc_ns: int


def packed(tables: Sequence[Table], utc_ns: int, rated_bytes: float | None = None, price: str | None = None) -> bytes:
    """The content of a library file.

    tables: of table.load() with by_second
    utc_ns: now
    rated_bytes, price: see Shared
    """
    arrays: dict[str, np.ndarray] = {}
    document = {
        "schema": SCHEMA,
        "ssdrig": __version__,
        "utc_ns": utc_ns,
        "rated_bytes": rated_bytes,
        "price": price,
        "runs": [_run(one, arrays) for one in tables],
    }
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    body = zlib.compress(text.encode(errors="replace") + b"\n" + file.getvalue(), 9)
    return MAGIC + hashlib.sha256(body).digest() + body


def read(path: Path) -> Shared:
    """A library file. Raises JournalError for one that is not as packed() makes it."""
    return checked(content(path), path)


def content(path: Path) -> bytes:
    """The bytes of a library file, unchecked. Raises JournalError for one that cannot be read, or is far too long."""
    try:
        return integrity.content(path, MOST_FILE_BYTES)
    except OSError as error:
        raise JournalError(*_refusal(path, error.strerror or str(error))) from error


def checked(content: bytes, path: Path) -> Shared:
    """opened(), with one error. Raises JournalError."""
    try:
        return opened(content, path)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, SsdrigError) as error:
        raise JournalError(*_refusal(path, reason(error)[:200])) from error


def _refusal(path: Path, seen: str) -> tuple[str, str, str]:
    return f"a library file as `ssdrig library export` makes it: {path}", seen, "get it again from who made it"


def opened(content: bytes, path: Path) -> Shared:
    """The content of a library file. `path`: the file, in whose name those of its runs begin. Raises ValueError,
    KeyError, TypeError and others for anything that packed() does not make."""
    body = content[len(MAGIC) + 32 :]
    if not content.startswith(MAGIC):
        raise ValueError("it does not begin as one")
    if content[len(MAGIC) : len(MAGIC) + 32] != hashlib.sha256(body).digest():
        raise ValueError("its SHA-256 does not match: it was damaged or changed")
    stream = zlib.decompressobj()
    try:
        plain = stream.decompress(body, MOST_OPEN_BYTES)
    except zlib.error as error:
        raise ValueError(f"damaged: {error}") from error
    _need(not stream.unused_data, f"{len(stream.unused_data)} bytes after its end")
    if stream.unconsumed_tail or not stream.eof:
        raise ValueError(f"more than {MOST_OPEN_BYTES >> 20} MiB, or less than a whole file")
    line, _, rest = plain.partition(b"\n")
    _need(len(line) <= MOST_LINE_BYTES, f"a description of more than {MOST_LINE_BYTES >> 20} MiB")
    document = integrity.document(line, once_each=True)
    _need(isinstance(document, dict) and document["schema"] == SCHEMA, "another schema")
    arrays = integrity.arrays(rest, MOST_OPEN_BYTES)
    runs = [_readable(run) for run in _list(document["runs"], MOST_RUNS)]
    rated, price = _number(document["rated_bytes"]), document["price"]
    _need(rated is None or 0 < rated <= MOST_RATED_BYTES, "an impossible rated endurance")
    _need(price is None or isinstance(price, str) and len(price) < 100, "a price that is not a short text")
    _need(type(document["utc_ns"]) is int and 0 <= document["utc_ns"] < 1 << 62, "no usable time")
    return Shared([_table(run, arrays, path) for run in runs], rated, price, document["utc_ns"])


def _run(one: Table, arrays: dict[str, np.ndarray]) -> dict:
    header = one.data.header
    plan = header["plan"]
    last = {id(row) for row in one.rows if row.round is None} | {id(row) for row in _standing(one)}
    return {
        "run": header["run"],
        "ssdrig": str(header.get("ssdrig")),
        "simulated": bool(header.get("simulated")),
        "started": {key: header["started"][key] for key in ("t_ns", "utc_ns")},
        "drive": {key: header["drive"][key] for key in DRIVE if key in header["drive"]},
        "host": {key: (header.get("host") or {}).get(key) for key in HOST},
        "method": {key: header["method"].get(key) for key in METHOD},
        "plan": {key: plan.get(key) for key in PLAN},
        "rig": bool(header.get("rig")),
        "state": one.data.state,
        "why": one.data.why,
        "made_of": _made_of(one.path),
        "rows": [_row(row, id(row) in last, arrays) for row in one.rows],
        "verdicts": [_verdict(verdict) for verdict in one.verdicts],
    }


def _standing(one: Table) -> Iterable[Row]:
    """The rows of repeats that stand for them: of the last rounds."""
    last: dict[str, int] = {}
    for row in one.rows:
        if row.round is not None:
            last[row.act.path] = max(last.get(row.act.path, 0), row.round)
    return (row for row in one.rows if row.round is not None and row.round > last[row.act.path] - 6)


def _made_of(run: Path) -> dict[str, str]:
    """SHA-256 of the files that state what a run was and that name the sums of all others."""
    entries = {}
    for name in ("run.json", "events.jsonl"):
        try:
            entries[name] = hashlib.sha256(integrity.content(run.joinpath(name))).hexdigest()
        except OSError:
            continue
    return entries


def _row(row: Row, whole: bool, arrays: dict[str, np.ndarray]) -> dict:
    """`whole`: with errors, trust and arrays, and not only its figures."""
    out: dict[str, Any] = {"label": row.act.label, "round": row.round, "state": row.state, "why": row.why}
    out |= {"t0_s": _digits(row.t0_s), "t1_s": _digits(row.t1_s), "chosen": _plain(dict(row.act.chosen))}
    out["windows"] = {name: figures and _figures(figures, whole) for name, figures in row.windows.items()}
    if not whole:
        return out
    out["notes"] = list(map(str, row.notes))
    if row.result.get("kind") in FOUND:
        out["found"] = _plain(row.result)
    if len(row.lat):
        out["lat"] = _stored(arrays, row.lat[:, 1:].astype(np.int64))
    if row.data is not None and row.round is None:
        data = row.data
        out["data"] = {"load_s": _digits(data.load_s), "hist_of": data.hist_of, "k": data.k}
        out["arrays"] = {key: _stored(arrays, _rounded(getattr(data, key))) for key in (*GRID, *POLLS)}
    return out


def _figures(figures: Mapping, whole: bool) -> dict:
    out: dict[str, Any] = {
        key: _digits(value) for key, value in figures.items() if key in FIGURES and _is_number(value)
    }
    if whole:
        out["errors"] = {key: _digits(value) for key, value in (figures.get("errors") or {}).items()}
        out["notes"] = list(map(str, figures.get("notes") or ()))
        out["trust"] = _plain(figures.get("trust") or [])
    return out


def _verdict(of: Verdict) -> dict:
    return {"path": of.path, "words": of.words, "verdict": _plain(of.verdict), "values": _plain(of.values)} | {
        "by": of.by,
        "first": of.first,
    }


def _plain(value: Any) -> Any:
    """A value as JSON has it, its numbers with DIGITS; not-a-number as null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return _digits(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _digits(value: Any) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    return float(f"{float(value):.{DIGITS + 1}g}") if math.isfinite(value) else None


def _rounded(values: np.ndarray) -> np.ndarray:
    """float32, of DIGITS - 1 digits, so that they pack."""
    wide = np.asarray(values, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 10.0 ** (DIGITS - 2 - np.floor(np.log10(np.abs(wide))))
        rounded = np.where(np.isfinite(scale) & (wide != 0), np.round(wide * scale) / scale, wide)
    return np.where(np.isfinite(rounded), rounded, np.nan).astype(np.float32)


def _stored(arrays: dict[str, np.ndarray], values: np.ndarray) -> str:
    name = str(len(arrays))
    arrays[name] = values
    return name


def _table(run: Mapping, arrays: Mapping[str, np.ndarray], path: Path) -> Table:
    _checked(run, 0)
    header = {
        "schema": journal.SCHEMA,
        "run": run["run"],
        "ssdrig": run["ssdrig"],
        "simulated": run["simulated"] is True,
        "started": run["started"],
        "drive": {"serial": None} | {key: run["drive"][key] for key in DRIVE if key in run["drive"]},
        "host": {key: run["host"].get(key) for key in HOST},
        "method": {key: run["method"].get(key) for key in METHOD},
        "plan": {key: run["plan"].get(key) for key in PLAN} | {"acts": []},
        "rig": {"port": None, "simulated": run["simulated"] is True} if run["rig"] else None,
        "imported": path.name,
    }
    names = (header["run"], header["ssdrig"], *header["drive"].values(), *header["host"].values())
    _need(all(len(name) <= MOST_NAME for name in names if isinstance(name, str)), "a name without an end")
    if wrong := journal.wrong_values(header):
        raise ValueError(f"no usable {', '.join(wrong)}")
    plan, acts = table.planned(header)
    k = header["drive"].get("time_dilation") or 1
    state, why = run["state"], run["why"]
    _need(state in journal.END_STATES or state in ("died", "running"), "a run in an unknown state")
    base = RunData(header, [], state, _text(why), k)
    known = {act.label: act for act in acts}
    rows = [_opened_row(row, known, base, arrays) for row in _list(run["rows"], MOST_ROWS)]
    verdicts = [_opened_verdict(verdict) for verdict in _list(run["verdicts"], MOST_ROWS)]
    return Table(path.joinpath(path_name(run["run"])), base, plan, acts, rows, verdicts)


def path_name(run: str) -> str:
    """The name of a run as a part of a path."""
    return run.replace("/", "-")[:200] or "run"


def _opened_row(row: Mapping, acts: Mapping[str, Act], base: RunData, arrays: Mapping[str, np.ndarray]) -> Row:
    act = acts[row["label"]]
    act = act.at(row["chosen"]) if row["chosen"] else act
    round_ = row["round"]
    _need(round_ is None or type(round_) is int and 0 < round_ <= MOST_ROWS, "an invalid round")
    _need(row["state"] in STATES, "a step in an unknown state")
    t0_s, t1_s = _number(row["t0_s"]), _number(row["t1_s"])
    windows = {name: None if of is None else _opened_figures(of) for name, of in row["windows"].items()}
    out = Row(act, round_, row["state"], _text(row["why"]), t0_s, t1_s, windows, k=base.k)
    out.notes = [_words(note) for note in _list(row.get("notes", []), MOST_ROWS)]
    event = row.get("found", {})
    _need(isinstance(event, dict), "an invalid result of a step")
    library_ranges.check_result("found", event)
    out.result = event if event.get("kind") in FOUND else {}
    if "lat" in row:
        cells = arrays[row["lat"]]
        good = cells.ndim == 2 and cells.shape[1] == 2 and cells.dtype == np.int64 and len(cells) <= fiotext.BINS * 64
        _need(good and bool((cells >= 0).all()) and bool((cells[:, 0] < fiotext.BINS).all()), "no histogram")
        out.lat = np.concatenate([np.zeros((len(cells), 1), np.int64), cells], axis=1)
    if "data" in row:
        out.data = _opened_data(row, act, base, arrays)
    return out


def _opened_data(row: Mapping, act: Act, base: RunData, arrays: Mapping[str, np.ndarray]) -> RunData:
    values = {}
    for key in (*GRID, *POLLS):
        of = arrays[row["arrays"][key]]
        _need(of.ndim == 1 and of.dtype == np.float32 and len(of) <= MOST_SECONDS, f"no usable {key}")
        library_ranges.check(key, of)
        values[key] = of.astype(np.float64)
    for group in (GRID, POLLS[:2], POLLS[2:]):
        sizes = {len(values[key]) for key in group} - {0}
        _need(len(sizes) <= 1, f"{group[0]} of another length than {group[-1]}")
    n = len(values["iops"])
    for key in GRID:  # without a rig all power is unknown
        values[key] = values[key] if len(values[key]) else np.full(n, np.nan)
    header = {**base.header, "method": table.method_of(act)}
    data = RunData(header, [], base.state, base.why, base.k, t0_ns=0, load_s=_number(row["data"]["load_s"]) or 0.0)
    _need(row["data"]["hist_of"] in ("lat", "clat"), "latencies of an unknown kind")
    data.hist_of = row["data"]["hist_of"]
    for key, of in values.items():
        setattr(data, key, of)
    return data


def _opened_figures(of: Mapping) -> dict:
    figures: dict[str, Any] = dict.fromkeys(FIGURES)
    for key, value in of.items():
        if key in FIGURES:
            figures[key] = _number(value)
            if value is not None:
                library_ranges.check(key, value)
    t0_s, t1_s = figures["t0_s"], figures["t1_s"]
    _need(t0_s is not None and t1_s is not None and 0 <= t0_s <= t1_s, "a window without its time")
    figures["errors"] = {key: _number(value) for key, value in of.get("errors", {}).items() if value is not None}
    _need(all((value or 0) >= 0 for value in figures["errors"].values()), "an error below 0")
    figures["notes"] = [_words(note) for note in _list(of.get("notes", []), MOST_ROWS)]
    figures["trust"] = [_item(item) for item in _list(of.get("trust", []), len(trust.NAMES))]
    return figures


def _item(item: Mapping) -> dict:
    _need(item["id"] in trust.NAMES and item["state"] in trust.WORST, "an unknown item of trust")
    of = trust.Item(item["id"], item["state"], _number(item["value"]), _number(item["limit"]), _text(item["why"]))
    return of.as_json()


def _opened_verdict(of: Mapping) -> Verdict:
    verdict = of["verdict"]
    _need(isinstance(verdict, dict) and verdict["passed"] in (True, False, None), "an invalid verdict")
    values = [_number(value) for value in _list(of["values"], MOST_ROWS)]
    _need(of["by"] in ("until", "judge") and type(of["first"]) is int, "a verdict of an unknown kind")
    return Verdict(_words(of["path"]), _words(of["words"]), verdict, values, of["by"], of["first"])


def _readable(value: Any, depth: int = 0) -> Any:
    """A value whose texts hide and turn round nothing."""
    _need(depth <= MOST_DEPTH, "lists in lists without an end")
    if isinstance(value, dict):
        return {key: _readable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_readable(item, depth + 1) for item in value]
    return shown(value) if isinstance(value, str) else value


def _checked(value: Any, depth: int) -> None:
    """Raises ValueError for an invalid number, a long text, and lists in lists without end."""
    _need(depth <= MOST_DEPTH, "lists in lists without an end")
    if isinstance(value, dict):
        for key, item in value.items():
            _checked(key, depth)
            _checked(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _checked(item, depth + 1)
    elif isinstance(value, str):
        _need(len(value) <= MOST_TEXT, "a text without an end")
    elif isinstance(value, int | float):
        _need(math.isfinite(value) and abs(value) < 1 << 63, "an invalid number")


def _list(value: Any, most: int) -> list:
    _need(isinstance(value, list) and len(value) <= most, "an invalid or endless list")
    return value


def _number(value: Any) -> float | None:
    _need(value is None or _is_number(value), "an invalid number")
    return value


def _is_number(value: Any) -> bool:
    good = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return good and math.isfinite(value)


def _text(value: Any) -> str | None:
    return None if value is None else _words(value)


def _words(value: Any) -> str:
    _need(isinstance(value, str), "an invalid text")
    return value


def _need(good: bool, seen: str) -> None:
    """Raises ValueError."""
    if not good:
        raise ValueError(seen)
