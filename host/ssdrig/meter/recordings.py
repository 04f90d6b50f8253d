"""Power that another instrument has recorded, read from its file: volts and watts at its own times.

CSV of any instrument, by its headings or a column map, with UTC or relative times; .ppk2 of the Power Profiler; .ppk2a
of ppk2lab, by ppk2lab; packets of a Powenetics v2; .jls of a Joulescope, by pyjls. A recording of more than MOST_RATE
samples a second is averaged to less; its energy stays.

Sources: quarchpy (headings "Time us", "5V voltage mV", "5V current uA"); nRF Connect Power Profiler (headings
"Timestamp(ms)", "Current(uA)"; .ppk2: a ZIP of session.raw, float32 uA and uint16 each, and metadata.json); the packets
of a Powenetics v2 in pull request 920 of the Phoronix Test Suite."""

import importlib
import json
import struct
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ssdrig.base import columns, table_file
from ssdrig.base.columns import AMPERES, NS, VOLTS, WATTS, Column
from ssdrig.base.errors import ToolMissing, UsageError, reason
from ssdrig.base.table_file import Layout
from ssdrig.base.words import digits

ROLES = ("t", *(f"{quantity}{n}" for n in ("", *range(1, 10)) for quantity in "VAW"))
MOST_RATE = 10_000  # samples/s
MOST_METADATA_BYTES = 1 << 20
MOST_V, MOST_W = 1000.0, 100_000.0  # of a drive's rail: more is another unit
_FACTORS = {"V": VOLTS, "A": AMPERES, "W": WATTS}
_WORDS: dict[str, tuple[str, ...]] = {
    "V": ("voltage", "volts", "volt", "v", "vbus"),
    "A": ("current", "amps", "i", "ampere", "amperes"),
    "W": ("power", "watts", "p", "watt"),
}
DO = "name the columns: --column t=NAME:UNIT,V=NAME:UNIT,A=NAME:UNIT"
DO_JLS = "save it again in the Joulescope UI"
POWENETICS_RAILS = (
    "ATX 3.3V|ATX 5V standby|ATX 12V|ATX 5V|EPS 12V 1|EPS 12V 2|EPS 12V 3|12VO standby|PCIe 12V 1|PCIe 12V 2"
    "|PCIe 12V 3|slot 3.3V|slot 12V"
).split("|")
_PACKET, _MAGIC = 69, b"\xca\xac"
_PACKET_NS = 1_000_000


class Rail(NamedTuple):
    """One rail of a recording: times (int64 ns, rising), volts and watts of each sample."""

    name: str
    t_ns: np.ndarray
    V: np.ndarray
    W: np.ndarray


class Recording(NamedTuple):
    """`source`: its kind, in words; `utc`: its times are UTC, otherwise they begin anywhere. `notes`: what was assumed
    or left out."""

    source: str
    utc: bool
    rails: list[Rail]
    notes: tuple[str, ...] = ()


def read(path: Path, chosen: dict[str, Column], voltage: float | None = None) -> Recording:
    """The recording in a file.

    chosen: role -> column of a CSV, ROLES; {}: by its headings.
    voltage: of the rail, where the file has none.
    Raises UsageError, ToolMissing."""
    try:
        with open(path, "rb") as file:
            head = file.read(4096)
        if head[:4] == b"PK\x03\x04":
            return checked((_ppk2a if _is_ppk2a(path) else _ppk2)(path, voltage), path)
        if head[:3] == b"jls" or path.suffix.lower() == ".jls":
            return checked(_jls(path, voltage), path)
        if head[:2] == _MAGIC and head[_PACKET : _PACKET + 2] == _MAGIC:
            return checked(_powenetics(path), path)
        return checked(_csv(path, chosen, voltage), path)
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(
            f"a recording at {path}", getattr(error, "strerror", None) or str(error), "name another file"
        ) from error


def checked(recording: Recording, path: Path) -> Recording:
    """The recording. Raises UsageError if it lacks power, its times do not rise, or its values are impossible."""
    for rail in recording.rails:
        if len(rail.t_ns) < 2:
            raise UsageError(f"samples of {rail.name} in {path}", f"{len(rail.t_ns)}", "record for longer")
        back = np.flatnonzero(np.diff(rail.t_ns) <= 0)
        if len(back):
            seen = f"sample {int(back[0]) + 2} at or before the one before it"
            raise UsageError(f"times that rise in {path}", seen, "take a part of the recording in which they do")
        for values, most, unit in ((rail.V, MOST_V, "V"), (rail.W, MOST_W, "W")):
            if float(np.abs(values).max()) > most:
                seen = f"{digits(float(values[np.abs(values).argmax()]), 3)} {unit} on {rail.name}"
                raise UsageError(f"at most {most:g} {unit} in {path}", seen, DO)
    if not recording.rails:
        raise UsageError(f"volts and amperes, or watts, in {path}", "none", DO)
    return recording


def thinned(t_ns: np.ndarray, V: np.ndarray, W: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means of as many samples as make it MOST_RATE or less, at the time of the last of each: its energy stays."""
    if len(t_ns) < 3:
        return t_ns, V, W
    period_ns = float(np.median(np.diff(t_ns[: 1 << 16])))
    many = max(1, int(np.ceil(10**9 / MOST_RATE / max(period_ns, 1.0) - 1e-6)))
    whole = len(t_ns) // many * many
    if many == 1 or whole < 2 * many:
        return t_ns, V, W
    return t_ns[many - 1 : whole : many], *(a[:whole].reshape(-1, many).mean(axis=1) for a in (V, W))


# ---- CSV


def columns_of(path: Path, chosen: dict[str, Column]) -> tuple[np.ndarray, dict[str, np.ndarray], Layout]:
    """The columns of a CSV: times (int64 ns), the values of each role in V, A or W, NaN without a number, and
    how they lie. `chosen`: see read(). Raises UsageError, OSError, EOFError, zlib.error."""
    return table_file.read(path, lambda head: _layout(head, chosen, path))


def _csv(path: Path, chosen: dict[str, Column], voltage: float | None) -> Recording:
    t_ns, values, layout = columns_of(path, chosen)
    notes = [*layout.notes]
    notes += ["its times state no zone and are taken as UTC"] if layout.utc and not layout.zoned else []
    rails = []
    for key, name in layout.rails.items():
        of = {quantity: values.get(f"{quantity}{key}") for quantity in "VAW"}
        if of["A"] is None and of["W"] is None:
            continue
        V = of["V"]
        if V is None:
            if voltage is None:
                missing = f"the voltage of {name}: a column (--column V{key}=...), or --voltage 5"
                raise UsageError(missing, "none", "name it; power needs both")
            V = np.full(len(t_ns), voltage)
            notes.append(f"voltage of {name}: {voltage:g} V as given by --voltage, not measured")
        W = of["W"] if of["W"] is not None else V * of["A"]
        there = np.isfinite(V) & np.isfinite(W)
        if not there.all():
            notes.append(f"{name}: {int((~there).sum())} lines without a number are left out")
        rails.append(Rail(name, *thinned(t_ns[there], V[there], W[there])))
    source = "Quarch CSV" if layout.quarch else f"CSV ({path.name})"
    return Recording(source, layout.utc or bool(len(t_ns) and t_ns[0] >= table_file.UTC_FROM_NS), rails, tuple(notes))


def _layout(head: Sequence[str], chosen: dict[str, Column], path: Path) -> tuple[int, Layout]:
    """(line that the numbers begin with, how they lie). Raises UsageError."""
    why = UsageError(f"headings with units in {path}", repr(head[0][:120]) if head else "an empty file", DO)
    for number, (line, next_line) in enumerate(zip(head, [*head[1:], ""])):
        mark = columns.delimiter(line)
        headings = columns.split(line.lstrip("#") if chosen or "," in line else line, mark)
        first = columns.split(next_line, mark)
        try:
            places = _chosen(chosen, headings, first) if chosen else _by_headings(headings, first)
        except UsageError as error:
            why = error if number == 0 or chosen else why
            continue
        if places is None:
            continue
        decimal = "," if mark in (";", "\t") and any("," in field for field in first) else "."
        named, roles = places
        bare = chosen and all(column.name.isdigit() for column in chosen.values()) and _is_row(headings, roles, decimal)
        row = headings if bare else first
        if not _is_row(row, roles, decimal):
            continue
        utc = roles["t"][1] == "utc"
        quarch = headings[:1] == ["Time us"] and any("voltage mV" in heading for heading in headings)
        zoned = utc and columns.has_zone(row[roles["t"][0]])
        return number + (0 if bare else 1), Layout(mark, roles, named, utc, zoned, decimal, quarch)
    raise why


def _is_row(fields: Sequence[str], roles: dict[str, tuple[int, Any]], decimal: str) -> bool:
    def good(number: int, factor: Any) -> bool:
        if number >= len(fields):
            return False
        text = fields[number]
        return (columns.utc_ns(text) if factor == "utc" else columns.exact(text, decimal)) is not None

    return all(good(*place) for place in roles.values())


def _chosen(
    chosen: dict[str, Column], headings: Sequence[str], first: Sequence[str]
) -> tuple[dict[str, str], dict[str, tuple[int, Any]]]:
    if "t" not in chosen:
        raise UsageError("the column of the times, t=", ", ".join(chosen), DO)
    roles: dict[str, tuple[int, Any]] = {}
    for role, column in chosen.items():
        number = columns.place(column, headings)
        if number is None or number >= max(len(headings), len(first)):
            raise UsageError(f"a column {column.name!r}", ", ".join(headings)[:200], DO)
        unit = column.unit or columns.named(headings[number])[1]
        roles[role] = number, _factor(role, unit, headings[number], first[number] if number < len(first) else "")
    keys = dict.fromkeys(role[1:] for role in roles if role != "t")
    return {key: f"rail {key}" if key else "power" for key in keys}, roles


def _factor(role: str, unit: str, heading: str, value: str) -> Any:
    if role == "t" and (unit == "utc" or not unit) and columns.utc_ns(value) is not None:
        return "utc"
    known: dict[str, Any] = NS if role == "t" else _FACTORS[role[0]]
    unit = unit if unit in known else columns.unit_named(unit)
    if unit not in known:
        raise UsageError(f"a unit of {role}=: {', '.join(known)}", repr(heading[:60]), DO)
    return known[unit]


def _by_headings(
    headings: Sequence[str], first: Sequence[str]
) -> tuple[dict[str, str], dict[str, tuple[int, Any]]] | None:
    """The rails' names and the roles; None without a time or a power."""
    roles: dict[str, tuple[int, Any]] = {}
    rails: dict[str, str] = {}  # name -> number
    for number, heading in enumerate(headings):
        name, unit = columns.named(heading)
        words = name.casefold().split()
        value = first[number] if number < len(first) else ""
        if "t" not in roles and (name.casefold() in table_file.TIME_NAMES or words[:1] in (["time"], ["timestamp"])):
            roles["t"] = number, _factor("t", unit, heading, value)
            continue
        quantity = next((q for q, units in _FACTORS.items() if unit in units), None)
        if quantity is None:
            continue
        rest = " ".join(word for word in words if word not in _WORDS[quantity])
        shown = " ".join(word for word in name.split() if word.casefold() not in _WORDS[quantity]) or "power"
        key = rails.setdefault(rest, str(len(rails) + 1) if rails else "")
        if key and int(key) > 9 or f"{quantity}{key}" in roles:
            continue
        roles[f"{quantity}{key}"] = number, _FACTORS[quantity][unit]
        rails.setdefault(f"shown {key}", shown)
    if "t" not in roles or not any(role[0] in "AW" for role in roles):
        return None
    return {role[1:]: rails[f"shown {role[1:]}"] for role in roles if role != "t"}, roles


# ---- binaries


def _given(voltage: float | None, path: Path) -> float:
    if voltage is None:
        raise UsageError(f"the voltage of the rail, which {path} has not", "none", "name it: --voltage 5")
    return voltage


# of damaged or encrypted archives, besides OSError
_OF_ZIP = (zipfile.BadZipFile, EOFError, zlib.error, NotImplementedError, RuntimeError)


def _ppk2(path: Path, voltage: float | None) -> Recording:
    volts = _given(voltage, path)
    do = "save it again in the Power Profiler, or export a CSV"
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo("metadata.json").file_size > MOST_METADATA_BYTES:
                raise ValueError("a metadata.json without an end")
            metadata = json.loads(archive.read("metadata.json"))["metadata"]
            rate, start_ms = float(metadata["samplesPerSecond"]), float(metadata.get("startSystemTime") or 0)
            if not 0 < rate <= 1e6:
                raise ValueError(f"{rate} samples/s")
            many = max(1, int(np.ceil(rate / MOST_RATE)))
            parts = []
            with archive.open("session.raw") as raw:
                while data := raw.read(6 * many * 65536):
                    amperes = np.frombuffer(data[: len(data) // 6 * 6], [("uA", "<f4"), ("bits", "<u2")])["uA"] * 1e-6
                    amperes = amperes[: len(amperes) // many * many].astype(float)
                    parts.append(amperes.reshape(-1, many).mean(axis=1))
    except (*_OF_ZIP, KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise UsageError(f"a .ppk2 at {path}", f"{type(error).__name__}: {error}", do) from error
    amperes = np.concatenate(parts) if parts else np.zeros(0)
    t_ns = round(start_ms * 1e6) + np.rint((np.arange(len(amperes)) + 1) * (many * 1e9 / rate)).astype(np.int64)
    there = np.isfinite(amperes)
    rail = Rail("power", t_ns[there], np.full(int(there.sum()), volts), volts * amperes[there])
    notes = [f"voltage of power: {volts:g} V as given by --voltage, not measured"]
    notes += [f"power: {int((~there).sum())} samples without a number are left out"] if not there.all() else []
    return Recording("Power Profiler Kit II (.ppk2)", start_ms > 0, [rail], tuple(notes))


def _is_ppk2a(path: Path) -> bool:
    """Whether a ZIP file is an archive of ppk2lab."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "manifest.json" in archive.namelist()
    except _OF_ZIP:
        return False


def _ppk2a(path: Path, voltage: float | None) -> Recording:
    """Raw words with their calibration, which ppk2lab converts; samples that are missing stay missing."""
    try:
        ppk2lab = importlib.import_module("ppk2lab")
    except ImportError as error:
        do = "pip install 'ssdrig[ppk2]'; in a clone: .venv/bin/pip install ppk2lab"
        raise ToolMissing("ppk2lab, which reads .ppk2a", "it is not installed", do) from error
    try:
        capture = ppk2lab.Capture.load(str(path), max_samples=None)
    except (ppk2lab.Ppk2labError, *_OF_ZIP, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise UsageError(f"a .ppk2a at {path}", reason(error), "record it again with ppk2lab") from error
    if capture.calibration is None:
        raise UsageError(f"the calibration in {path}", "none", "record it again with ppk2lab")
    if capture.timeline_degraded:
        do = "take the part of the recording before it: ppk2lab export"
        raise UsageError(f"times of all samples in {path}", "a gap of unknown length", do)
    of_source = capture.meta.configuration.get("mode") == "source" and capture.source_voltage_mv
    volts = capture.source_voltage_mv / 1000 if voltage is None and of_source else _given(voltage, path)
    rate = capture.sample_rate_hz
    many = max(1, int(np.ceil(rate / MOST_RATE)))
    indices, amperes, rest = [np.zeros(0, np.int64)], [np.zeros(0)], np.zeros(0)
    for event in capture.iter_events():
        if hasattr(event, "missing"):  # a gap: a begun mean is lost with it
            rest = np.zeros(0)
            continue
        values = np.concatenate([rest, np.array(capture.calibration.convert_block(event, capture.source_voltage_mv))])
        whole = len(values) // many
        indices.append(event.end_index - len(values) + many * np.arange(1, whole + 1))
        amperes.append(values[: whole * many].reshape(-1, many).mean(axis=1) * 1e-6)
        rest = values[whole * many :]
    at, A = np.concatenate(indices) - capture.start_index, np.concatenate(amperes)
    began_ns = columns.utc_ns(str(capture.timing.get("first_sample_utc") or ""))
    t_ns = (began_ns or 0) + np.rint(at * (1e9 / rate)).astype(np.int64)
    there = np.isfinite(A)
    basis = "as the PPK2 was set to supply" if voltage is None else "as given by --voltage"
    notes = [f"voltage of power: {volts:g} V {basis}, not measured"]
    if error_s := capture.timing.get("anchor_uncertainty_s"):
        notes.append(f"its UTC is off by up to {digits(float(error_s), 3)} s, as ppk2lab states: --clock-error")
    missing = sum(gap.missing or 0 for gap in capture.gaps)
    notes += [f"power: {missing} samples are missing in {len(capture.gaps)} gaps"] if capture.gaps else []
    notes += [f"power: {int((~there).sum())} samples without a number are left out"] if not there.all() else []
    rail = Rail("power", t_ns[there], np.full(int(there.sum()), volts), volts * A[there])
    return Recording("Power Profiler Kit II (.ppk2a)", began_ns is not None, [rail], tuple(notes))


def _powenetics(path: Path) -> Recording:
    """Packets have a number and no time; the next one comes a millisecond later."""
    data = path.read_bytes()
    count = len(data) // _PACKET
    packets = np.frombuffer(data[: count * _PACKET], np.uint8).reshape(count, _PACKET)
    whole = (packets[:, 0] == _MAGIC[0]) & (packets[:, 1] == _MAGIC[1])
    if not whole.all():
        seen = f"packet {int(np.flatnonzero(~whole)[0]) + 1} that begins otherwise"
        raise UsageError(f"packets of {_PACKET} bytes that begin with CA AC in {path}", seen, "record it again")
    number = packets[:, 2].astype(np.int64) << 8 | packets[:, 3]
    steps = np.diff(number, prepend=number[0] - 1) & 0xFFFF
    t_ns = np.cumsum(steps) * _PACKET_NS
    t_ns, packets = t_ns[steps > 0], packets[steps > 0]
    rails = []
    for rail, name in enumerate(POWENETICS_RAILS):
        at = packets[:, 4 + 5 * rail : 9 + 5 * rail].astype(np.int64)
        V = (at[:, 0] << 8 | at[:, 1]) * 1e-3
        A = (at[:, 2] << 16 | at[:, 3] << 8 | at[:, 4]) * 1e-3
        if V.max(initial=0.0) >= 1.0 and A.max(initial=0.0) > 0:
            rails.append(Rail(name, t_ns, V, V * A))
    notes = (f"times are 1 ms a packet, by their numbers; {int((steps - 1).clip(0).sum())} packets are missing",)
    return Recording("Powenetics v2", False, rails, notes)


def _jls(path: Path, voltage: float | None) -> Recording:
    try:
        pyjls = importlib.import_module("pyjls")
    except ImportError as error:
        do = "pip install pyjls, or export a CSV in the Joulescope UI"
        raise ToolMissing("pyjls, which reads .jls", "it is not installed", do) from error
    try:
        reader = pyjls.Reader(str(path))
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(f"a .jls at {path}", str(error), DO_JLS) from error
    with reader:
        try:
            return _of_jls(pyjls, reader, path, voltage)
        except (RuntimeError, ValueError, IndexError) as error:
            raise UsageError(f"whole signals in {path}", str(error), DO_JLS) from error


def _of_jls(pyjls: Any, reader: Any, path: Path, voltage: float | None) -> Recording:
    """The first signals of current, voltage or power in an open .jls."""
    by_unit = {}
    for signal in reader.signals.values():
        if signal.signal_type == pyjls.SignalType.FSR and signal.units in ("V", "A", "W") and signal.sample_rate:
            by_unit.setdefault(signal.units, signal)
    main = by_unit.get("A") or by_unit.get("W")
    if main is None:
        raise UsageError(f"a signal of current or power in {path}", ", ".join(by_unit) or "none", "record one")
    of = [signal for signal in by_unit.values() if signal.sample_rate == main.sample_rate]
    total = min(signal.length for signal in of)
    many = max(1, int(np.ceil(main.sample_rate / MOST_RATE)))
    parts = []
    for begin in range(0, total // many * many, many * 65536):
        length = min(many * 65536, total // many * many - begin)
        read = {s.units: np.asarray(reader.fsr(s.signal_id, begin, length), float) for s in of}
        V = read["V"] if "V" in read else np.full(length, _given(voltage, path))
        W = read["A"] * V if "A" in read else read["W"]
        parts.append(np.stack([V.reshape(-1, many).mean(axis=1), W.reshape(-1, many).mean(axis=1)]))
    ids = np.arange(1, total // many + 1) * many - 1
    utc = bool(reader.time_map_length(main.signal_id))
    if utc:
        first, last = (pyjls.jls_to_utc(reader.sample_id_to_timestamp(main.signal_id, int(n))) for n in ids[[0, -1]])
        since = (ids - ids[0]) / max(1, int(ids[-1] - ids[0])) * (last - first)
        t_ns = round(first * 1e9) + np.rint(since * 1e9).astype(np.int64)
    else:
        t_ns = np.rint((ids + 1) * (1e9 / main.sample_rate)).astype(np.int64)
    source = next((s.name for s in reader.sources.values() if s.source_id == main.source_id), "") or "Joulescope"
    V, W = np.concatenate(parts, axis=1) if parts else np.zeros((2, 0))
    there = np.isfinite(V) & np.isfinite(W)
    measured = any(signal.units == "V" for signal in of)
    notes = () if measured else (f"voltage of power: {voltage:g} V as given by --voltage, not measured",)
    return Recording(f"{source} (.jls)", utc, [Rail("power", t_ns[there], V[there], W[there])], notes)


def powenetics_packet(number: int, rails: Sequence[tuple[int, int]]) -> bytes:
    """One packet: its number, and (mV, mA) of each rail."""
    return (
        _MAGIC
        + struct.pack(">H", number & 0xFFFF)
        + b"".join(struct.pack(">H", mV) + mA.to_bytes(3, "big") for mV, mA in rails)
    )
