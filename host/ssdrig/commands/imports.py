"""`ssdrig import FILE…`: recordings of others become runs: another instrument's power as the power of a run without a
rig (--run), or a new run of power, of fio's I/O, or of both."""

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ssdrig.base import columns, files, utc
from ssdrig.base.errors import JournalError, UsageError
from ssdrig.base.terminal import printable
from ssdrig.base.words import digits, parse_seconds
from ssdrig.commands import import_run
from ssdrig.load import foreign
from ssdrig.meter import otii, recordings, sync, tape
from ssdrig.meter.recordings import Recording
from ssdrig.meter.tape import Knot
from ssdrig.runs import imported, integrity, journal, named, parts

EXAMPLES = (
    ("import power.csv --run latest --sync", "the run was made with --sync: its marks are found in the recording"),
    ("import power.csv --run latest --clock-error 20ms --accuracy '0.5% + 2 mA'", "UTC times, known to 20 ms"),
    ("import log.csv --run 3fa9 --sync --column 't=1:ms,V=2:V,A=4:mA'", "columns by number, with their units"),
    ("import power.csv --model 'SSD of 2 TB'", "a new run, of a recording with UTC times"),
    ("import 'Main current - Ace.csv' 'Main voltage - Ace.csv' --run latest --sync", "channels of an Otii"),
    ("import out.json job_*.log", "a new run of fio's JSON and logs"),
    ("import out.json job_*.log power.csv --clock-error 50ms", "with power, whose clock is off by at most 50 ms"),
)
MARGIN_NS = 5 * 10**9  # of a recording kept before and after the run
# made of the run as it was before, and made again when asked for
MADE_OF_RUN = (integrity.SUMMARY, integrity.FIGURES, "points.lp", "points.cursor", "points.made", "rejected.jsonl")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        metavar="FILE",
        type=Path,
        nargs="+",
        help="power: CSV (also .gz), the CSVs of an Otii, .ppk2, .ppk2a (ppk2lab), .jls (pyjls), or packets of a"
        " Powenetics v2; or fio's JSON, and its logs of iops, bw, lat, clat, slat",
    )
    parser.add_argument(
        "--run", metavar="RUN", help=f"a run without a rig, whose power FILE is: {named.HELP} (default: a new run)"
    )
    named.add_parent(parser)
    new = parser.add_argument_group("a new run")
    new.add_argument("--model", metavar="TEXT", help="name of the drive (default: the disk that fio names)")
    new.add_argument("--serial", metavar="TEXT", help="its serial (default: not known)")
    when = parser.add_argument_group("time: how the recording's clock and the run's are one")
    when.add_argument(
        "--sync", action="store_true", help="find the marks of a run that was made with --sync: offset, drift, bound"
    )
    when.add_argument(
        "--clock-error", metavar="TIME", help="largest difference between its UTC and this machine's, e.g. 20ms"
    )
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
    if args.sync and not args.run:
        raise UsageError("--run RUN with --sync", "none", "name the run that was made with --sync")
    if args.run and not args.sync and not args.clock_error:
        do = "add --sync if the run was made with it, or --clock-error TIME if you know by how much its UTC may be off"
        raise UsageError("how well the recording's time is known", "neither --sync nor --clock-error", do)
    if args.run and (args.model or args.serial):
        raise UsageError("--model and --serial for a new run", "--run, which has a drive", "leave them out")
    if args.replace and not args.run:
        raise UsageError("--run RUN with --replace", "none", "name the run")
    if args.clock_error:
        parse_seconds(args.clock_error)
    for path in args.files:
        if not path.is_file():
            raise UsageError(f"a file {path}", "no such file", "correct the path")


class _Files(NamedTuple):
    """The files by kind: those of at most one recording of power, and at most one JSON of fio."""

    power: list[Path]
    document: Path | None
    logs: list[Path]


def _sorted(paths: Sequence[Path]) -> _Files:
    """Raises UsageError for several recordings or several JSON."""
    logs = [path for path in paths if foreign.is_log(path)]
    others = [path for path in paths if path not in logs]
    documents = [path for path in others if foreign.is_json(path)]
    power = [path for path in others if path not in documents]
    channels = all(map(otii.is_channel, power))
    for what, of in (("recording of power", [] if channels else power), ("JSON of fio", documents)):
        if len(of) > 1:
            raise UsageError(f"one {what} at a time", ", ".join(path.name for path in of)[:120], "import one by one")
    return _Files(sorted(power), documents[0] if documents else None, logs)


def command(args: argparse.Namespace) -> int:
    """0, or the exit code of the error."""
    check(args)
    files_by_kind = _sorted(args.files)
    if args.run:
        if not files_by_kind.power or files_by_kind.document or files_by_kind.logs:
            do = "import fio's files without --run, as a run of their own"
            raise UsageError("one recording of power for --run", "files of fio", do)
        return _into(args, files_by_kind.power)
    jobs = (
        foreign.read(files_by_kind.document, files_by_kind.logs) if files_by_kind.document or files_by_kind.logs else []
    )
    recording, digest = _recording(args, files_by_kind.power) if files_by_kind.power else (None, "")
    recording = _dated(recording, _begins_ns(args)) if recording else None
    facts: dict[str, Any] = {"notes": import_run.notes(jobs)}
    with import_run.hidden(args.parent) as folder:
        run, knots, clock = import_run.make(args, folder, recording, jobs)
        if recording:
            data, of_power = _power(args, recording, knots, clock)
            of_power |= {"file": _names(files_by_kind.power), "sha256": digest}
            _write(run, data, imported.document(recording.source, data, **of_power))
            facts = {**of_power, "notes": [*facts["notes"], *of_power["notes"]]}
        run = import_run.finish(run)
    if args.json:
        source = recording.source if recording else jobs[0].version
        made = {"run": str(run), "source": source, "jobs": [job.name for job in jobs], **facts}
        print(json.dumps(made, ensure_ascii=False))
        return 0
    for job in jobs:
        ios = sum(side.ios for side in job.sides.values())
        by = f"{job.seconds} seconds" if job.seconds else "totals alone"
        print(printable(f"{run.name}: {ios} I/Os of {job.name}, {by}, from {job.version or 'logs of fio'}"))
    if recording:
        _say(run, recording, facts)
    else:
        print(*(printable(f"  {note}") for note in facts["notes"]), sep="\n", end="\n" * bool(facts["notes"]))
        print(f"`ssdrig report {run.name}` shows it")
    return 0


def _recording(args: argparse.Namespace, paths: Sequence[Path]) -> tuple[Recording, str]:
    """The recording in these files, and the SHA-256 of their contents one after the other. Raises UsageError, also for
    files that change meanwhile."""
    volts, before = _volts(args.voltage) if args.voltage else None, _stamps(paths)
    chosen = columns.chosen(args.column, recordings.ROLES)
    if otii.is_channel(paths[0]) and not chosen:
        recording = otii.read(paths, volts)
    elif len(paths) > 1:
        raise UsageError("--column for one file", _names(paths)[:120], "import one by one")
    else:
        recording = recordings.read(paths[0], chosen, volts)
    digest = hashlib.sha256()
    for path in paths:
        with contextlib.suppress(OSError), open(path, "rb") as file:  # then its stamp has changed, too
            while piece := file.read(1 << 20):
                digest.update(piece)
    if None in before or _stamps(paths) != before:
        raise UsageError(f"{_names(paths)} as it was", "it changed while it was read", "import it when it is complete")
    return recording, digest.hexdigest()


def _stamps(paths: Sequence[Path]) -> list[tuple[int, int, int] | None]:
    """What changes when a file does; None without the file."""
    stamps: list[tuple[int, int, int] | None] = []
    for path in paths:
        try:
            status = os.stat(path)
            stamps.append((status.st_ino, status.st_size, status.st_mtime_ns))
        except OSError:
            stamps.append(None)
    return stamps


def _names(paths: Sequence[Path]) -> str:
    return ", ".join(path.name for path in paths)


def _begins_ns(args: argparse.Namespace) -> int | None:
    return tape.parse_offset(args.begins) if args.begins else None


def _power(
    args: argparse.Namespace, recording: Recording, knots: Sequence[Knot], clock: dict
) -> tuple[bytes, dict[str, Any]]:
    """The content of rig.bin, and the facts of import.json except the files."""
    stated = tape.accuracy(args.accuracy) if args.accuracy else None
    return tape.rig_bin(recording, knots, stated), {
        **clock,
        "accuracy": stated,
        "accuracy_words": tape.limits_words(stated),
        "notes": list(recording.notes),
        "rails": [rail.name for rail in recording.rails],
        "samples": sum(len(rail.t_ns) for rail in recording.rails),
    }


def _into(args: argparse.Namespace, paths: Sequence[Path]) -> int:
    """Make a recording the power of a run."""
    run = parts.shown(named.one(args.run, args.parent))[0]
    header = _importable(run, args.replace)
    recording, digest = _recording(args, paths)
    events = journal.events(run)
    clock: dict[str, Any]
    if args.sync:
        drive = header["drive"]
        lag_ns = round(float(drive.get("power_lag_ms") or 0.0) * 1e6 * int(drive.get("time_dilation") or 1))
        alignment = sync.find(recording, sync.marks(events, lag_ns))
        knots, clock = (
            alignment.knots,
            {
                "clock": f"time by two marks in it, to {digits(alignment.bound_ns / 1e6, 3)} ms",
                "offset_ns": alignment.offset_ns,
                "drift_ppm": alignment.drift_ppm,
                "drift_error_ppm": alignment.drift_error_ppm,
                "bound_ns": alignment.bound_ns,
                "correlation": alignment.correlation,
            },
        )
    else:
        recording = _dated(recording, _begins_ns(args))
        knots, bound_ns = _by_utc(events, recording, round(parse_seconds(args.clock_error) * 1e9))
        clock = {"clock": f"time by its own UTC, claimed to {digits(bound_ns / 1e6, 3)} ms", "bound_ns": bound_ns}
        clock |= {"correlation": None}
    recording = _within(recording, knots, events, header)
    data, facts = _power(args, recording, knots, clock)
    facts |= {"file": _names(paths), "sha256": digest}
    _write(run, data, imported.document(recording.source, data, **facts))
    if args.json:
        print(json.dumps({"run": str(run), "source": recording.source, **facts}, ensure_ascii=False))
    else:
        _say(run, recording, facts)
    return 0


def _say(run: Path, recording: Recording, facts: dict) -> None:
    rails = ", ".join(facts["rails"])
    print(printable(f"{run.name}: {facts['samples']} samples of {rails} from {recording.source}"))
    if facts["correlation"] is not None:
        print(f"  marks        found, correlation {facts['correlation']:.2f}")
        print(f"  offset       {facts['offset_ns'] / 1e9:+.6f} s (this machine's time less the recording's)")
        print(f"  drift        {facts['drift_ppm']:+.2f} ± {facts['drift_error_ppm']:.2f} ppm")
    where = "between the marks" if facts["correlation"] is not None else "as stated"
    print(f"  time error   at most {digits(facts['bound_ns'] / 1e6, 3)} ms {where}")
    print(f"  accuracy     {facts['accuracy_words']}")
    for note in facts["notes"]:
        print(printable(f"  {note}"))
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
    known = utc.distance(events)
    if known is None:
        raise UsageError("a run that knows its UTC", "one without an anchor", "run it again, with --sync")
    distance, moved_ns = known
    if moved_ns > utc.MOST_STEP_NS:
        seen = f"one whose clock was set by {digits(moved_ns / 1e9, 3)} s meanwhile"
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
