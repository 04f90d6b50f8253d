"""`ssdrig import FILE --run RUN`: power that another instrument has recorded becomes the power of a run, with the claim
of its clock and its accuracy."""

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ssdrig.base import columns, files
from ssdrig.base.errors import JournalError, UsageError
from ssdrig.base.words import parse_seconds
from ssdrig.meter import recordings, sync, tape
from ssdrig.meter.recordings import Recording
from ssdrig.meter.tape import Knot
from ssdrig.runs import imported, integrity, journal, named, parts

EXAMPLES = (
    ("import power.csv --run latest --sync", "the run was made with --sync: its marks are found in the recording"),
    ("import power.csv --run latest --clock-error 20ms --accuracy '0.5% + 2 mA'", "UTC times, known to 20 ms"),
    ("import log.csv --run 3fa9 --sync --column 't=1:ms,V=2:V,A=4:mA'", "columns by number, with their units"),
)
MARGIN_NS = 5 * 10**9  # of a recording kept before and after the run
# made of the run as it was before, and made again when asked for
MADE_OF_RUN = (integrity.SUMMARY, integrity.FIGURES, "points.lp", "points.cursor", "points.made", "rejected.jsonl")
MOST_STEP_NS = 10**9  # of the machine's UTC within a run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", type=Path, help="CSV (also .gz), .ppk2, .jls (pyjls), or packets of a Powenetics v2"
    )
    parser.add_argument("--run", required=True, metavar="RUN", help=f"a run without a rig: {named.HELP}")
    named.add_parent(parser)
    when = parser.add_argument_group("time: how the recording's clock and the run's are one")
    when.add_argument(
        "--sync", action="store_true", help="find the marks of a run that was made with --sync: offset, drift, bound"
    )
    when.add_argument("--clock-error", metavar="TIME", help="by how much its UTC may be off this machine's, e.g. 20ms")
    when.add_argument("--begins", metavar="UTC", help="UTC of the recording's time 0, e.g. 2026-11-28T10:00:00.5Z")
    what = parser.add_argument_group("values")
    what.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="ROLE=NAME[:UNIT]",
        help="a column of a CSV by its heading or number: t=, V=, A=, W= (V1=, A1= … of more rails); "
        "e.g. t=Time:ms,V=3:V,A=Current:mA",
    )
    what.add_argument("--voltage", metavar="V", help="voltage of a rail without a recorded one, e.g. 5V")
    what.add_argument(
        "--accuracy",
        metavar="TEXT",
        help="as its manual states: '0.5%% + 2 mA' of the power, or 'V: 0.1%% + 5 mV, A: 0.2%% + 1 mA' "
        "(default: not known, and so is the uncertainty)",
    )
    parser.add_argument("--replace", action="store_true", help="replace the run's earlier import")
    parser.add_argument("--json", action="store_true", help="print the import as one JSON object on stdout")


def check(args: argparse.Namespace) -> None:
    """Raises UsageError for words that do not fit together."""
    columns.chosen(args.column, recordings.ROLES)
    if args.accuracy:
        tape.accuracy(args.accuracy)
    if args.begins:
        tape.parse_offset(args.begins)
    if args.voltage:
        _volts(args.voltage)
    if args.sync and (args.clock_error or args.begins):
        raise UsageError("--sync, or the clock's own claim", "--sync with --clock-error or --begins", "leave one out")
    if not args.sync and not args.clock_error:
        do = "add --sync if the run was made with it, or --clock-error TIME if you know by how much its UTC may be off"
        raise UsageError("how well the recording's time is known", "neither --sync nor --clock-error", do)
    if args.clock_error:
        parse_seconds(args.clock_error)
    if not args.file.is_file():
        raise UsageError(f"a file {args.file}", "no such file", "correct the path")


def command(args: argparse.Namespace) -> int:
    """0, or the exit code of the error."""
    check(args)
    run = parts.shown(named.one(args.run, args.parent))[0]
    header = _importable(run, args.replace)
    volts = _volts(args.voltage) if args.voltage else None
    recording = recordings.read(args.file, columns.chosen(args.column, recordings.ROLES), volts)
    events = journal.events(run)
    clock: dict[str, Any]
    if args.sync:
        drive = header["drive"]
        lag_ns = round(float(drive.get("power_lag_ms") or 0.0) * 1e6 * int(drive.get("time_dilation") or 1))
        alignment = sync.find(recording, sync.marks(events, lag_ns))
        knots, clock = (
            alignment.knots,
            {
                "clock": f"time by two marks in it, to {alignment.bound_ns / 1e6:.3g} ms",
                "offset_ns": alignment.offset_ns,
                "drift_ppm": alignment.drift_ppm,
                "drift_error_ppm": alignment.drift_error_ppm,
                "bound_ns": alignment.bound_ns,
                "correlation": alignment.correlation,
            },
        )
    else:
        error_ns = round(parse_seconds(args.clock_error) * 1e9)
        begins_ns = tape.parse_offset(args.begins) if args.begins else None
        recording = _dated(recording, begins_ns)
        knots, bound_ns = _by_utc(events, recording, error_ns)
        clock = {"clock": f"time by its own UTC, claimed to {bound_ns / 1e6:.3g} ms", "bound_ns": bound_ns}
        clock |= {"correlation": None}
    recording = _within(recording, knots, events, header)
    stated = tape.accuracy(args.accuracy) if args.accuracy else None
    data = tape.rig_bin(recording, knots, stated)
    digest = hashlib.sha256(args.file.read_bytes()).hexdigest()
    facts = {
        **clock,
        "file": args.file.name,
        "sha256": digest,
        "accuracy": stated,
        "accuracy_words": tape.limits_words(stated),
        "notes": list(recording.notes),
        "rails": [rail.name for rail in recording.rails],
        "samples": sum(len(rail.t_ns) for rail in recording.rails),
    }
    _write(run, data, imported.document(recording.source, data, **facts))
    if args.json:
        print(json.dumps({"run": str(run), "source": recording.source, **facts}, ensure_ascii=False))
    else:
        _say(run, recording, facts)
    return 0


def _say(run: Path, recording: Recording, facts: dict) -> None:
    print(f"{run.name}: {facts['samples']} samples of {', '.join(facts['rails'])} from {recording.source}")
    if facts["correlation"] is not None:
        print(f"  marks        found, correlation {facts['correlation']:.2f}")
        print(f"  offset       {facts['offset_ns'] / 1e9:+.6f} s (this machine's time less the recording's)")
        print(f"  drift        {facts['drift_ppm']:+.2f} ± {facts['drift_error_ppm']:.2f} ppm")
    where = "between the marks" if facts["correlation"] is not None else "as claimed"
    print(f"  time error   at most {facts['bound_ns'] / 1e6:.3g} ms {where}")
    print(f"  accuracy     {facts['accuracy_words']}")
    for note in recording.notes:
        print(f"  {note}")
    print(f"`ssdrig report {run.name}` shows it")


def _volts(text: str) -> float:
    value = columns.exact(text.strip().removesuffix("V").strip())
    if value is None or not 0 < value < 1000:
        raise UsageError("a voltage such as 5V", repr(text), "correct --voltage")
    return float(value)


def _importable(run: Path, replace: bool) -> dict:
    """The header of a run that takes a recording. Raises UsageError, JournalError."""
    header = journal.run_header(run)
    if len(parts.own(run)) > 1:
        raise UsageError("a run in one part", "one that was resumed", "import into a run that was not interrupted")
    if journal.lock_is_held(run):
        raise UsageError("a run that has ended", "one that goes on", "wait for its end")
    if imported.of(header) is not None:
        if not replace:
            raise UsageError("a run without a recording", f"one of {imported.of(header)}"[:120], "add --replace")
    elif header.get("rig") is not None:
        raise UsageError("a run without a rig", "one whose power its rig has measured", "name another run")
    return header


def _dated(recording: Recording, begins_ns: int | None) -> Recording:
    """The recording with UTC times. Raises UsageError."""
    if recording.utc and begins_ns is None:
        return recording
    if recording.utc:
        raise UsageError("--begins for relative times only", "a recording with UTC", "leave --begins out")
    if begins_ns is None:
        do = "add --begins UTC, or --sync if the run was made with it"
        raise UsageError("a recording with UTC times", "relative ones", do)
    return recording._replace(
        utc=True, rails=[rail._replace(t_ns=rail.t_ns + np.int64(begins_ns)) for rail in recording.rails]
    )


def _by_utc(events: Sequence[dict], recording: Recording, error_ns: int) -> tuple[list[Knot], int]:
    """The clock of a recording with UTC times, and its bound: as claimed, and what this machine's own UTC moved."""
    anchors = [(event["utc_ns"], event["t_ns"]) for event in events if event["kind"] == "clock.anchor"]
    if not anchors:
        raise UsageError("a run that knows its UTC", "one without an anchor", "run it again, with --sync")
    distances = np.array([utc - t for utc, t in anchors], np.int64)
    distance = int(np.median(distances - distances[0])) + int(distances[0])
    moved_ns = int(np.abs(distances - distance).max())
    if moved_ns > MOST_STEP_NS:
        seen = f"one whose clock was set by {moved_ns / 1e9:.3g} s meanwhile"
        raise UsageError("a machine whose UTC ran on during the run", seen, "run it again with --sync, import with it")
    bound_ns = error_ns + moved_ns
    own = [int(rail.t_ns[at]) for rail in recording.rails for at in (0, -1)]
    return [Knot(at, at - distance, bound_ns) for at in sorted({min(own), max(own)})], bound_ns


def _within(recording: Recording, knots: Sequence[Knot], events: Sequence[dict], header: dict) -> Recording:
    """The part of a recording that belongs to the run. Raises UsageError if none does."""
    begin_ns, end_ns = header["started"]["t_ns"], max((event["t_ns"] for event in events), default=0)
    own, host = (np.array([getattr(knot, name) for knot in knots], np.int64) for name in ("own_ns", "host_ns"))
    offset = host - own

    def own_ns(host_ns: int) -> int:
        away = np.interp(float(host_ns - host[0]), (host - host[0]).astype(float), (offset - offset[0]).astype(float))
        return int(host_ns - offset[0] - round(float(away)))

    first, last = own_ns(begin_ns - MARGIN_NS), own_ns(end_ns + MARGIN_NS)
    rails = []
    for rail in recording.rails:
        a, z = np.searchsorted(rail.t_ns, [first, last])
        if z - a >= 2:
            rails.append(rail._replace(t_ns=rail.t_ns[a:z], V=rail.V[a:z], W=rail.W[a:z]))
    if not rails:
        away_s = (int(recording.rails[0].t_ns[0]) - first) / 1e9
        do = "see --begins and the file's time zone: a time without a zone is taken as UTC"
        raise UsageError("a recording of the time of the run", f"one that begins {away_s:+.0f} s from it", do)
    return recording._replace(rails=rails)


def _write(run: Path, data: bytes, document: bytes) -> None:
    """rig.bin, then import.json, which makes it count. Raises JournalError."""
    try:
        with _locked(run):
            for name in (imported.NAME, *MADE_OF_RUN):
                (run / name).unlink(missing_ok=True)
            files.write_atomically(run / "rig.bin", data)
            files.write_atomically(run / imported.NAME, document)
    except OSError as error:
        do = "make room, or ask its owner"
        raise JournalError(f"to write {run}", error.strerror or str(error), do) from error


@contextlib.contextmanager
def _locked(run: Path) -> Iterator[None]:
    lock = files.lock_file(run / "lock")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(lock)
