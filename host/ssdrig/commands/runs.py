"""`ssdrig runs`: the run folders that there are, the latest first, or those that a search finds."""

import argparse
import datetime
import json
import shlex
import sys
from pathlib import Path

from ssdrig.base.errors import SsdrigError, UsageError
from ssdrig.base.progress import Progress
from ssdrig.base.terminal import printable
from ssdrig.reading import trust
from ssdrig.reading.index import HELP, Index, Part, Run, joined
from ssdrig.runs import parts
from ssdrig.runs.integrity import FIGURES
from ssdrig.views import trust_strip
from ssdrig.views.terms import number, with_error

DEFAULT = "runs"


EXAMPLES = (
    ("runs", "all of ./runs, the latest first"),
    ("runs drive:990 plan:pts state:complete since:2026-11", "those that a search finds"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words",
        nargs="*",
        metavar="[FOLDER] [SEARCH]",
        help=f"parent folder of the runs (default ./{DEFAULT}), then a search: {HELP}".replace("%", "%%"),
    )
    parser.add_argument("--runs", metavar="DIR", help="the folder, named as in the other commands")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line for each run")
    parser.add_argument(
        "--figures",
        action="store_true",
        help="compute the figures of the runs found that have none yet (reads each of them whole)",
    )


def check(args) -> None:
    """Raises UsageError for an invalid search or a missing folder."""
    root, _ = asked(args.words, args.runs)
    if not root.is_dir():
        raise UsageError(f"a folder of runs {root}", "no such folder", "name the folder that holds them")


def command(args) -> int:
    root, where = asked(args.words, args.runs)
    index = Index(root)
    try:
        _refresh(index)
        runs_ = index.find(where)
        if args.figures and _work_out(index, runs_):
            _refresh(index)
            runs_ = index.find(where)
        for run in runs_:
            print(json.dumps(as_json(root, run)) if args.json else "\n".join(lines(root, run)))
        if not runs_ and index.count() and not args.json:
            print(f"none of {index.count()} runs is like that", file=sys.stderr)
        elif not runs_ and not args.json:
            print(f"no run in {printable(str(root))}", file=sys.stderr)
    finally:
        index.close()
    return 0


def _refresh(index: Index) -> None:
    show = Progress()
    index.refresh(lambda done, due: show.show(f"reading runs: {done} of {due}") if done else None)
    if show.live:
        show.show("")


def asked(words: list[str], runs: str | None) -> tuple[Path, Part]:
    """The folder and the condition. Raises UsageError."""
    if words and runs is None and (Path(words[0]).is_dir() or "/" in words[0]):
        runs, words = words[0], words[1:]
    return Path(runs or DEFAULT), joined([part for word in words for part in _split(word)])


def _split(word: str) -> list[str]:
    """A search that came as one argument in quotes, as its words; one with a blank in a value stays one."""
    parts = word.split()
    return parts if all(":" in part.lstrip("-") for part in parts) else [word]


def _work_out(index: Index, runs_: list[Run]) -> int:
    """Write figures.json of those that have ended and have none; returns of how many."""
    from ssdrig.reading import table  # to list a hundred runs takes less time than to import these
    from ssdrig.report import write
    from ssdrig.views import documents

    show, done = Progress(), 0
    due = [run for run in runs_ if run.figures["why"] and run.state not in ("running", "unreadable")]
    for count, run in enumerate(due):
        show.show(f"figures: {count} of {len(due)} runs")
        try:
            folder = index.folder(run)
            figures = documents.of_table(table.load(folder))
            write(folder / FIGURES, json.dumps(figures, indent=1) + "\n")
            done += 1
        except (SsdrigError, OSError) as error:  # its files may be another user's, or be gone meanwhile
            show.say(f"{printable(run.path)}: {error}")
    return done


def as_json(root: Path, run: Run) -> dict:
    """What `--json` prints of a run."""
    fields = run._asdict()
    fields.pop("path")
    return {**fields, "run": str(root / run.path), "started": started(run)}


def started(run: Run) -> str | None:
    """UTC to the minute."""
    if run.started_utc_ns is None:
        return None
    try:
        at = datetime.datetime.fromtimestamp(run.started_utc_ns / 1e9, datetime.UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return f"{at:%Y-%m-%d %H:%M}"


def lines(root: Path, run: Run) -> list[str]:
    """A run for a terminal: its plan, its result, its folder."""
    drive = "damaged" if run.why and not run.plan else f"{run.model or '-'} {run.serial or '-'}"
    marks = " SIMULATED" * run.simulated + " SCALED" * run.scaled
    op = "" if run.op_percent is None else f", OP {run.op_percent:g} %"
    line_ = [f"{started(run) or '-':16}  {printable(run.plan or '-'):28} {run.state:11} {printable(drive)}{op}{marks}"]
    figures = figures_words(run.figures)
    labels = " ".join([*(f"[{tag}]" for tag in run.tags), f'"{printable(run.title)}"' if run.title else ""]).strip()
    trust = trust_strip.brief(run.figures["trust"]) if run.figures["trust"] else ""
    trust = "; ".join(filter(None, [trust, steady_words(run.figures["steady"])]))
    more = (trust, figures, labels, printable(str(root / run.path)), _going_on(root, run))
    return line_ + [f"{'':16}  {line}" for line in more if line]


def _going_on(root: Path, run: Run) -> str:
    """The command that goes on with a run whose process was killed, or with its review; "" for another one."""
    if run.state != "died" or not run.plan or run.plan.startswith("record"):
        return ""
    folder = root / run.path
    of_review = (folder.parent / parts.REVIEW).is_file()
    words = ("review", "--resume", str(folder.parent)) if of_review else ("resume", str(folder))
    return f"go on with: ./ssdrig {printable(shlex.join(words))}"


def steady_words(of: dict | None) -> str:
    """ "steady at 1.40 drive writes, past the cliff"; "" where the rule was asked nowhere."""
    if of is None:
        return ""
    state = {True: "steady", False: "NOT STEADY", None: "steady not tested"}[of["passed"]]
    at = "" if of["drive_writes"] is None else f" at {number(of['drive_writes'], 2)} drive writes"
    return state + at + {True: ", past the cliff", False: ", NOT PAST THE CLIFF for sure", None: ""}[of["past_spare"]]


def figures_words(of: dict) -> str:
    """The figures of a run and their window; "" without any."""
    if of["why"]:
        return ""
    fields = [
        ("iops_mean", 0, "IOPS"),
        ("power_mean_W", 3, "W"),
        ("energy_uJ_per_io", 1, "µJ/IO"),
        ("clat_p99_us", 0, "µs P99"),
    ]
    texts = {key: f"{number(of[key], places)} {unit}" for key, places, unit in fields}
    texts["wa"] = f"WA {with_error(of['wa'], of['wa_error'], 3)}"
    bad = {id_ for id_, state in (of["window_trust"] or {}).items() if state == trust.BAD}
    out = [
        trust_strip.with_mark(text, "bad" if bad & {*trust.rests_on(key)} else None)
        for key, text in texts.items()
        if of[key] is not None
    ]
    return "  ".join([*out, f"({printable(of['window'])})"])
