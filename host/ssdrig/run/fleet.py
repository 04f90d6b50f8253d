"""Several drives tested together: `ssdrig run PLAN --drive A --drive B …`.

Each drive is its own process, the same command for that drive alone, so that one that fails ends nothing else.
Errors of any drive are reported before the first one starts. Signals are passed on to all; when this process is
killed each ends as if it had been asked to. Results: a run folder each, as if they had been started by hand.

The forecast for several drives before anything is touched: each with its rig, the data lost, how long its
runs take and how much they write."""

import argparse
import contextlib
import fcntl
import functools
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, cast

from ssdrig.base import prctl, words
from ssdrig.base.arguments import Parser
from ssdrig.base.errors import INTERRUPTED, OutputError, UnsafeTarget, UsageError, worst
from ssdrig.base.progress import Progress, columns, rows
from ssdrig.base.terminal import printable, wrapped
from ssdrig.drive import confirm, guard
from ssdrig.drive.inventory import Drive
from ssdrig.drive.uses import survey
from ssdrig.meter import meter
from ssdrig.meter.pico import ports
from ssdrig.plan import cost
from ssdrig.run import dry_run, fleet_table, keeping, matching, options, pairing, planned, prepare
from ssdrig.run.course import range_words
from ssdrig.run.fleet_table import Seen
from ssdrig.run.planned import Planned
from ssdrig.run.teardown import SIGNALS

HEAD = ("drive", "model", "rig", "time", "writes", "of its rating")
WIDEST = {"drive": 24, "model": 36, "rig": 40}  # characters


@dataclass
class Item:
    """A drive of several: its name, its own options, what each run of them comes to."""

    name: str
    args: argparse.Namespace
    runs: list[Planned] = field(default_factory=list)

    @property
    def prepared(self) -> prepare.Prepared:
        return self.runs[0].prepared

    @property
    def drive(self) -> Drive | None:
        """None: it is SIMULATED."""
        return self.runs[0].drive

    def host_s(self) -> tuple[float, float]:
        k, times = self.prepared.drive["time_dilation"], [run.prepared.cost.time_s for run in self.runs]
        least, most = (k * self.args.repeat * sum(side) for side in zip(*times, strict=True))
        return least, most

    def written(self) -> cost.Cost:
        """What all of its runs write."""
        least, most = (
            self.args.repeat * sum(side)
            for side in zip(*(run.prepared.cost.written_bytes for run in self.runs), strict=True)
        )
        return cost.Cost(written_bytes=(least, most))

    def as_json(self) -> dict:
        """As a dry run of this drive alone prints it; with several runs, the others after it."""
        one, *more = (prepare.as_json(run.prepared) for run in self.runs)
        known = {"drive_name": self.name, "rig": self.args.rig, "repeat": self.args.repeat}
        return known | one | {"destroyed": keeping.writes(self.prepared.acts)} | ({"more": more} if more else {})


def listed(items: list[Item], wide: int | None) -> list[str]:
    """The lines: the steps once for drives that are alike, then a row for each drive, in `wide` columns (None: as long
    as they are)."""
    out = [
        f"warning: {printable(item.name)}: {line}" for item in items for line in prepare.warnings(item.prepared.drive)
    ]
    kinds: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for item in items:
        one = item.runs[0]
        first, *steps = dry_run.table(one.prepared, one.budget, one.rated_bytes, wide)
        kinds.setdefault((item.prepared.drive["model"], *steps), []).append((item.name, first))
    for (_, *steps), ((_, first), *others) in kinds.items():
        out += [first, *steps]
        if others:
            out.append(f"the same on {len(others)} more: {', '.join(printable(name) for name, _ in others)}")
    out += in_columns([HEAD, *map(_cells, items)], wide)
    if lost := [printable(item.name) for item in items if keeping.writes(item.prepared.acts) and item.drive]:
        text = f"ALL DATA WILL BE LOST on {len(lost)} drives: {', '.join(lost)}"
        out.append(wrapped(text, wide - 1) if wide else text)
    return out


def _cells(item: Item) -> tuple[str, ...]:
    drive, whole = item.prepared.drive, item.written()
    rated_bytes = item.runs[0].rated_bytes or drive.get("rated_write_bytes")
    share = ""
    if rated_bytes and whole.written_bytes[1]:
        share = f"{dry_run.range_of(*(100 * size / rated_bytes for size in whole.written_bytes))} %"
    model = f"{drive['model']} {words.size(drive['capacity_bytes'])}"
    rig = item.args.rig or ("SIMULATED" if item.drive is None else "–")
    texts = [printable(text) for text in (item.name, model, rig)]
    for i, (name, most) in enumerate(WIDEST.items()):
        if len(texts[i]) > most:  # the end of a serial or a path identifies it
            texts[i] = f"{texts[i][: most - 1]}…" if name == "model" else f"…{texts[i][1 - most :]}"
    return (*texts, range_words(item.host_s()), dry_run.written(whole), share)


def in_columns(cells: Sequence[tuple[str, ...]], wide: int | None) -> list[str]:
    """Rows in columns; if the terminal is too narrow, model and rig are dropped, then the ratings."""
    shown = list(range(len(cells[0])))
    width = [max(len(row[i]) for row in cells) for i in shown]
    for spared in (2, 1, 5):
        if wide is not None and sum(width[i] + 2 for i in shown) >= wide:
            shown.remove(spared)
    line = lambda row: "  ".join(row[i].ljust(width[i]) if i < 3 else row[i].rjust(width[i]) for i in shown).rstrip()
    return [f"  {line(row)}" for row in cells]


PROGRAM: tuple[str, ...] = (sys.executable, "-P", "-m", "ssdrig")
SHOW_S, LOOK_S = 1.0, 0.2
LAST_WORDS_S = 2.0  # for the output of an ended process; its children may hold stderr for longer
PIPE_BYTES = 1 << 20  # a reader that is stopped (Ctrl-S) holds up no run for a while
OF_ONE = ("target", "power_off", "power_on", "kept", "manifest", "only_cut")  # options that belong to one drive


def command(args: argparse.Namespace) -> int:
    """All drives that the options name. Exit code: errors.worst() of theirs. Raises the error of any of them
    before one starts."""
    show = Progress(args.quiet)
    items = _items(args)
    show.say("\n".join(listed(items, columns() if show.live else None)))
    if args.dry_run:
        if args.json or args.jsonl:
            print(json.dumps({"dry_run": True, "drives": [item.as_json() for item in items]}, default=str), flush=True)
        _refuse_used(items, args.consents)
        return 0
    _consented(items, args)
    matched(items, show)
    return _carried_out(items, args, show)


def _items(args: argparse.Namespace) -> list[Item]:
    """The drives, each with its own options and plan. Raises UsageError and the errors of planned."""
    if args.stray_rigs:
        seen = f"--rig {args.stray_rigs[0]}, which does not follow a --drive, or follows one that already has a rig"
        raise UsageError("each --rig right after the --drive it powers", seen, "write --drive SERIAL --rig PORT")
    for name in OF_ONE:
        if getattr(args, name, None) is not None:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} with one drive", f"with {len(args.drives)}", "start that drive alone")
    rigs = [one.rig for one in args.drives if one.rig]
    if two := _twice([os.path.realpath(rig) if meter.is_rig(rig) else rig for rig in rigs]):
        raise UsageError("a rig for each drive", f"{two} for two drives", "name each drive's own rig, or none")
    for rig in rigs:
        if meter.split(rig)[0] == meter.BOARD:
            ports.check_access(meter.split(rig)[1])
    items = []
    for i, named in enumerate(args.drives):
        alike = [drive.word for drive in args.drives].count(named.word)
        own = {"drive": None, "virtual": None, named.option: named.word, "rig": named.rig, "drives": (named,)}
        one = argparse.Namespace(**vars(args) | own | {"dry_run": True})
        items.append(Item(f"{named.word}-{i + 1}" if named.option == "virtual" and alike > 1 else named.word, one))
    for item in items:
        on = planned.on_real if item.args.drive else planned.on_virtual
        item.runs = [on(share) for share in options.each_share(item.args)]
        if item.drive and item.drive.serial:
            item.name = item.drive.serial  # shorter than a path
        if asks := [act.path for act in item.prepared.acts if act.do == "ask" and not act.not_run]:
            raise UsageError("a plan without questions", f"{asks[0]}, which asks the user", "start each drive alone")
    drives = [item.drive for item in items if item.drive]
    if two := _twice([drive.key or drive.name for drive in drives]):
        raise UsageError("each drive once", f"{two} twice", "leave one out")
    if args.raw_nand not in (None, options.ASSUMED) and len({(d.model, d.capacity_bytes) for d in drives}) > 1:
        do = "start them apart, or give --raw-nand assumed"
        raise UsageError("--raw-nand of drives of one model", "drives of several", do)
    return items


def matched(items: list[Item], show: Progress) -> None:
    """With several rigs: find out which feeds which drive, and take that. Raises UsageError where it is not one rig for
    each drive."""
    real = [item for item in items if item.drive]
    rigs = [item.args.rig for item in real if item.args.rig]
    if len(rigs) < 2 or any(pairing.at_end(item.prepared.acts) for item in real):
        return  # the drive's own process finds out whether its rig is the right one
    show.show(f"which rig feeds which drive: {pairing.LASTS_S:g} s")
    drives = []
    with contextlib.ExitStack() as holding:
        for item in real:
            if drive := item.drive:
                held = holding.enter_context(guard.hold(drive, item.args.destroy_data))
                connect = matching.connect_to(held.path)
                drives.append(matching.Named(item.name, connect, drive.capacity_bytes, item.args.rig))
        matched = matching.found_by_ports(drives, rigs)
    take(items, matched, show)


def take(items: list[Item], matched: matching.Matching, show: Progress) -> None:
    """Each drive gets the rig that was found to feed it."""
    for item in items:
        rig = matched.feeds.get(item.name)
        if item.name in matched.moved:
            show.warn(f"{item.name}: rig {rig} feeds it, not {item.args.rig or 'none'} as given: {rig} is taken")
        elif rig:
            show.say(f"{item.name}: rig {rig} feeds it")
        elif item.name in matched.unseen:
            show.warn(f"{item.name}: no rig shows its load; its run tries again")
        if rig:
            item.args.rig = rig
            item.args.drives = tuple(one._replace(rig=rig) for one in item.args.drives)


def _twice(names: Sequence[str]) -> str | None:
    return next((name for name in names if names.count(name) > 1), None)


def _consented(items: list[Item], args: argparse.Namespace) -> None:
    """Asks once for all; then each drive has its own consent. Raises UnsafeTarget."""
    drives = [item.drive for item in items if item.drive]
    if drives and any(keeping.writes(item.prepared.acts) for item in items):
        confirm.all_confirmed(drives, args.consents)
        _refuse_used(items, [drive.consent for drive in drives])
    for item in items:
        item.args.dry_run = False
        item.args.destroy_data = item.drive.consent if item.drive and keeping.writes(item.prepared.acts) else None


def _refuse_used(items: list[Item], consents: Sequence[str]) -> None:
    """Raises UnsafeTarget with all that speaks against writing to any of the drives."""
    drives = [item.drive for item in items if item.drive and keeping.writes(item.prepared.acts)]
    machine = survey() if drives else None
    against = []
    for drive in drives:
        refused = guard.refusals(drive, drive.consent if drive.consent in consents else None, machine=machine)
        against += [f"{drive.serial or drive.node}: {refusal}" for refusal in refused]
    if against:
        raise UnsafeTarget(
            f"{len(drives)} drives that may be written", "; ".join(against), "free them, or leave them out"
        )


# ---- the processes


def words_of(args: argparse.Namespace) -> list[str]:
    """The words of `ssdrig run` that mean these options, for one drive."""
    parser = Parser()
    options.add_arguments(parser)
    left_out = {"help", "json", "jsonl", "quiet", "verbose", "dry_run"}
    words, positional = [], []
    for action in parser._actions:
        value = getattr(args, action.dest, None)
        if action.dest in left_out or value in (None, False) or value == action.default:
            continue
        left_out.add(action.dest)  # options with an old name, too
        if not action.option_strings:
            positional.append(str(value))
        elif value is True:
            words.append(action.option_strings[-1])
        else:
            words += [
                f"{action.option_strings[-1]}={element}" for element in (value if isinstance(value, list) else [value])
            ]
    return [*positional, *words, "--jsonl", "--quiet"]


class Child:
    """The process of one drive. `streams`: its stdout and stderr, each with the function that takes a line. Nothing
    reads them but the loop of _follow(): of a parent with threads, each thread's end would ask the child to end once
    more."""

    def __init__(self, item: Item):
        self.seen = Seen(item.name, item.args.rig)
        self.process = subprocess.Popen(
            [*PROGRAM, "run", *words_of(item.args)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C at the terminal reaches it once: from here
            preexec_fn=functools.partial(prctl.die_with_parent, os.getpid(), signal.SIGTERM),
        )
        assert self.process.stdout and self.process.stderr
        with contextlib.suppress(OSError):  # no more is allowed
            fcntl.fcntl(self.process.stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self.streams = {self.process.stdout: self.heard, self.process.stderr: self.warned}
        self._rest = dict.fromkeys(self.streams, b"")

    def lines(self, stream: IO[bytes]) -> list[str] | None:
        """The complete lines since the last call; None at the end of the stream."""
        data = os.read(stream.fileno(), 1 << 16)
        *lines, self._rest[stream] = (self._rest[stream] + (data or b"\n" * bool(self._rest[stream]))).split(b"\n")
        return [line.decode(errors="replace") for line in lines] if data or lines else None

    def heard(self, line: str, show: Progress) -> dict | None:
        """A line of its stdout, with the drive's name."""
        try:
            message = json.loads(line)
        except ValueError:
            return None
        if "state" in message or "repeats" in message:
            self.seen.results.append(message)
        else:
            self.seen.second = {"samples_lost": self.seen.second.get("samples_lost"), **message}
        return {"drive": self.seen.drive, **message}

    def warned(self, line: str, show: Progress) -> None:
        self.seen.message = line.strip().removeprefix("ssdrig run: ") or self.seen.message
        show.warn(f"{self.seen.drive}: {line}")

    def ended(self, asked: bool) -> bool:
        """Whether it has; its exit code is in `seen` from then on. `asked`: a signal was passed on to it."""
        if self.seen.code is None and (code := self.process.poll()) is not None:
            self.seen.code = code if code >= 0 else INTERRUPTED if asked else 1
        return self.seen.code is not None


@contextlib.contextmanager
def _passing_on(children: list[Child], asked: list[int]) -> Iterator[None]:
    """Termination signals go to all processes; `asked` has them. Ctrl-Z is not handled: nothing would read the
    runs' output."""

    def on_signal(number: int, _frame) -> None:
        asked.append(number)
        for child in children:
            child.seen.ending = True
            if child.process.returncode is None:
                child.process.send_signal(number)

    before = {}
    try:
        for number in SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup
                before[number] = signal.signal(number, on_signal)
        before[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _carried_out(items: list[Item], args: argparse.Namespace, show: Progress) -> int:
    children: list[Child] = []
    asked: list[int] = []
    printer = _Told(args)
    with _passing_on(children, asked):
        for item in items:
            if asked:
                break
            children.append(Child(item))
            if asked:  # after the list was gone through, before it was in it
                children[-1].process.send_signal(asked[-1])
        _follow(children, asked, printer, show)
    seen = [child.seen for child in children]
    seen += [Seen(item.name, item.args.rig, code=INTERRUPTED, message="not started") for item in items[len(children) :]]
    code = printer.end(seen, worst(one.code or 0 for one in seen))
    say = show.warn if code else show.say
    say("\n".join(fleet_table.ends(seen)))
    if folders := [folder for one in seen for folder in one.folders]:
        show.say(f"report: ./ssdrig report {' '.join(folders)}")
    return code


def _follow(children: list[Child], asked: list[int], printer: "_Told", show: Progress) -> None:
    """Wait until all have ended and all of their output is read."""
    seen, running, shown, passed_on, over = [child.seen for child in children], list(children), 0.0, 0, 0.0
    with selectors.DefaultSelector() as streams:
        for child in children:
            for stream in child.streams:
                streams.register(stream, selectors.EVENT_READ, child)
        while running or (streams.get_map() and time.monotonic() < over):
            for key, _ in streams.select(LOOK_S):
                child, stream = key.data, cast(IO[bytes], key.fileobj)
                lines = child.lines(stream)
                if lines is None:
                    streams.unregister(stream)
                for line in filter(None, lines or ()):
                    printer.line(child.streams[stream](line, show))
            if len(asked) > passed_on:
                passed_on = len(asked)
                name, once_more = (
                    signal.Signals(asked[-1]).name,
                    "" if passed_on > 1 else "; once more stops immediately",
                )
                show.say(f"{name}: passed on to {len(running)} drives, each stops after this second{once_more}")
            for child in [child for child in running if child.ended(bool(asked))]:
                running.remove(child)
                over = time.monotonic() + LAST_WORDS_S
                if not show.live:
                    show.say(f"{child.seen.drive}: {child.seen.state}")
            if time.monotonic() - shown >= SHOW_S:
                shown = time.monotonic()
                show.table(fleet_table.lines(seen, columns(), rows()), fleet_table.summary(seen))


class _Told:
    """What goes to stdout: with --jsonl each line of each drive, with its name; then, as with --json, all results."""

    def __init__(self, args: argparse.Namespace):
        self._lines, self._whole = args.jsonl, args.json or args.jsonl

    def line(self, message: dict | None) -> None:
        if message is not None and self._lines:
            try:
                print(json.dumps(message), flush=True)
            except OSError:  # the reader is gone or the disk is full: the runs go on
                self._lines = False

    def end(self, seen: Sequence[Seen], code: int) -> int:
        """Returns the exit code: `code`, or 7 if that is 0 and the result could not be printed."""
        if not self._whole:
            return code
        drives = [
            {"drive": one.drive, "rig": one.rig, "exit_code": one.code, "state": one.state, "why": one.why or None}
            | {"results": one.results}
            for one in seen
        ]
        try:
            print(json.dumps({"drives": drives, "exit_code": code}), flush=True)
        except BrokenPipeError:
            pass  # the reader is gone
        except OSError:
            return code or OutputError.exit_code
        return code
