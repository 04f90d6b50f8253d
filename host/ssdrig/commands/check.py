"""`ssdrig check RUN...`: check runs against limits: pass, fail or cannot tell."""

import argparse
import datetime
import json
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ssdrig import __version__
from ssdrig.base.errors import CannotTell, JournalError, LimitMissed, UsageError
from ssdrig.base.files import write_atomically
from ssdrig.base.terminal import painter
from ssdrig.publish.verdicts import acceptance, junit, ocptv
from ssdrig.publish.verdicts.acceptance import CANNOT_TELL, FAIL, Case
from ssdrig.reading import table
from ssdrig.reading.row import Table
from ssdrig.runs import named, parts

COLOURS = {"pass": "green", "fail": "red", "cannot tell": "yellow"}
VERDICT = True  # its exit code
EXAMPLES = (
    ("check latest --limits measurement", "whether the measurement itself is in order; ssdrig has these limits"),
    ("check 3fa9 --limits drive.toml --junit check.xml", "your own limits, for a CI"),
    ("check latest", "the plan's own verdict: power cuts, retention"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = f"a run: {named.HELP}; or a folder of runs (default: latest)"
    parser.add_argument("runs", nargs="*", metavar="RUN", help=words)
    named.add_parent(parser)
    names = ", ".join(acceptance.shipped())
    parser.add_argument(
        "--limits",
        metavar="FILE",
        action="append",
        default=[],
        help=f"a limit file (TOML, host/docs/use/check.md), or one of ssdrig's: {names}; may be repeated",
    )
    parser.add_argument("--junit", metavar="XML", help="also write the verdicts as JUnit XML")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print one JSON object a line for each run")
    how.add_argument("--ocptv", action="store_true", help="print the JSON lines of OCP Test and Validation 2.0")


def check(args) -> None:
    """Raises UsageError for an invalid limit file, and for a word that matches no run; JournalError."""
    for word in args.limits:
        acceptance.read(word)
    if any((path / parts.REVIEW).is_file() for path in named.several(args.runs or [named.LATEST], args.parent)):
        raise UsageError("runs", "the folder of a review", "name its runs")
    named.check(args.runs or [named.LATEST], args.parent)


def command(args) -> int:
    """Print the verdicts. Raises LimitMissed or CannotTell by the worst of them; UsageError, JournalError."""
    check(args)
    limits = [limit for word in args.limits for limit in acceptance.read(word).limits]
    suites: list[tuple[dict, list[Case]]] = []
    for folder in named.several(args.runs or [named.LATEST], args.parent):
        table_ = table.load(folder)
        cases = acceptance.cases(table_, limits)
        if not limits and len(cases) == 1 and cases[0].verdict == acceptance.PASS:
            do = f"--limits FILE, or one of {', '.join(acceptance.shipped())}"
            raise UsageError(f"limits for a run of {table_.plan.name}, which judges nothing itself", "none", do)
        suites.append((_about(table_), cases))
        _print(args, *suites[-1])
    if args.junit:
        _write(Path(args.junit), junit.document(suites))
    every = [case for _, cases in suites for case in cases]
    _raise(every)
    return 0


def _about(table_: Table) -> dict:
    """The run, as the writers of verdicts take it."""
    header = table_.data.header
    drive, started = header["drive"], header["started"].get("utc_ns")
    return {
        "run": header["run"],
        "plan": table_.plan.name,
        "utc": _utc(started / 1e9) if isinstance(started, int) else None,
        "model": drive.get("model"),
        "serial": drive.get("serial"),
        "simulated": bool(header.get("simulated")),
    }


def _utc(seconds: float) -> str | None:
    try:
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return None


def _print(args, run: Mapping, cases: Sequence[Case]) -> None:
    if args.json:
        print(json.dumps({**run, "verdict": acceptance.worst(cases), "cases": [case.as_json() for case in cases]}))
    elif args.ocptv:
        words = shlex.join(["ssdrig", *sys.argv[1:]])
        for line in ocptv.lines(run, cases, _utc(time.time()), words, __version__):
            print(line)
    else:
        paint = painter(sys.stdout)
        print(f"{run['run']}  {run['plan']}{'  SIMULATED' * run['simulated']}")
        for case in cases:
            word = paint(case.verdict, COLOURS[case.verdict])
            print(f"  {word}{' ' * (12 - len(case.verdict))}{case.name}")
            if words := junit.message(case):
                print(f"              {words}")


def _write(path: Path, data: bytes) -> None:
    try:
        write_atomically(path, data)
    except OSError as error:
        do = "name another file with --junit"
        raise JournalError(f"to write {path}", error.strerror or str(error), do) from error


def _raise(cases: Sequence[Case]) -> None:
    missed = [case for case in cases if case.verdict == FAIL]
    unknown = [case for case in cases if case.verdict == CANNOT_TELL]
    if missed:
        first = f"{missed[0].name}: {junit.message(missed[0])}"
        seen = f"{len(missed)} of {len(cases)} missed; {first}"
        raise LimitMissed("every limit to be met", seen, "see the verdicts above")
    if unknown:
        first = f"{unknown[0].name}: {unknown[0].why}"
        seen = f"no verdict for {len(unknown)} of {len(cases)}; {first}"
        raise CannotTell("a verdict for every limit", seen, "remove the doubt, or measure longer and more often")
