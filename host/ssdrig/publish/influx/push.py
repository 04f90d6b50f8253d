"""Send a run folder with all its parts to InfluxDB: while the run goes on (--follow), or afterwards, or the rest of it.

A separate process that only reads the run folder; it may die, be started twice, or come a year later.
"""

import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from ssdrig.base.arguments import add_quiet, seconds
from ssdrig.base.errors import JournalError, UploadIncomplete, UsageError
from ssdrig.base.progress import Progress
from ssdrig.base.words import clock
from ssdrig.publish.influx import line_protocol, made, verify
from ssdrig.publish.influx import sender as influx
from ssdrig.publish.influx.line_protocol import drive_tag
from ssdrig.publish.influx.link import ANSWER_S, CONNECT_S, LAST_S
from ssdrig.publish.influx.outbox import Outbox
from ssdrig.runs import journal, named, parts

FOLLOW_POLL_S = 1.0
IDLE_POLL_S = 0.2
TELL_S = 1.0
SENT_S = 200.0  # a pusher that has not got on for this long hangs: an answer and its time-out take 130


class Sent(NamedTuple):
    """Lines of points.lp: all, not acknowledged yet, refused for good; values that no database can hold."""

    lines: int
    pending: int
    rejected: int
    left_out: int


EXAMPLES = (("push latest --influx http://localhost:8086/ssdrig", "the newest run"),)


def add_arguments(parser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help=f"a run: {named.HELP}")
    named.add_parent(parser, dest="runs")
    parser.add_argument(
        "--influx",
        metavar="URL",
        help=(
            "http[s]://[user:password@]host[:port]/DB[?rp=POLICY], or for 2.x http[s]://host[:port]/?org=ORG&bucket=BUCKET"
            " (default: $SSDRIG_INFLUX); user and password are better kept in $SSDRIG_INFLUX_USER and"
            " $SSDRIG_INFLUX_PASSWORD, a token of 2.x or 3.x in $SSDRIG_INFLUX_TOKEN"
        ),
    )
    parser.add_argument("--follow", action="store_true", help="continue until the run has ended and all of it is sent")
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=60,
        metavar="TIME",
        help="once nothing new can come: give up when the server took nothing for this long (default %(default)g s)",
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help=(
            "count in the database what has been sent; a relay acknowledges before it stores anything. If points are"
            " missing, the next push sends all again"
        ),
    )
    parser.add_argument(
        "--retry-rejected",
        action="store_true",
        help="send everything again, including lines that this server has rejected",
    )
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object on stdout")
    add_quiet(parser)


def check(args) -> None:
    """Raises UsageError for a word that names no run, and without a database; JournalError for a folder without a
    run."""
    named.check([args.run], args.runs)
    if not (args.influx or os.environ.get("SSDRIG_INFLUX")):
        raise UsageError("an InfluxDB address", "none", "give --influx URL or set SSDRIG_INFLUX")
    if not args.timeout >= 0:
        raise UsageError("a time of 0 s or more", f"--timeout {args.timeout:g}", "correct --timeout")
    influx.target(args.influx or os.environ["SSDRIG_INFLUX"])


def command(args) -> int:
    """0 all is in the database; 6 (UploadIncomplete) some is not: pending, refused for good, or, with --verify, not
    found there."""
    check(args)
    args.run = named.one(args.run, args.runs)
    to = influx.target(args.influx or os.environ["SSDRIG_INFLUX"])
    show = Progress(args.quiet)
    try:
        sent = push(args.run, to, args.follow, args.timeout, show, args.retry_rejected)
        range_ = None
        if args.verify and not sent.pending:
            range_ = verify.counted(parts.of(args.run), to, sent.rejected, args.timeout, show)
    except OSError as error:
        raise JournalError(
            f"to read and write in {args.run}",
            str(error),
            "free disk space or fix it, then push again; nothing is lost",
        ) from None
    if args.json:
        counted = {"missing": None if range_.why else range_.missing} if range_ else {}
        print(json.dumps({"run": str(args.run), "to": str(to), **sent._asdict(), **counted}), flush=True)
    if sent.left_out:
        show.say(f"{sent.left_out} values were not finite or beyond 64 bits and are only in the run folder")
    if sent.pending:
        raise UploadIncomplete(
            f"all {sent.lines} points in {to}",
            f"{sent.pending} not sent yet",
            f"./ssdrig push {args.run} when it answers; they are kept in points.lp of {args.run} and its parts",
        )
    if sent.rejected:
        raise UploadIncomplete(
            f"all {sent.lines} points in {to}",
            f"{sent.rejected} refused for good",
            f"read rejected.jsonl in {args.run} and its parts; when the reason is gone, ./ssdrig push {args.run}"
            " --retry-rejected",
        )
    if range_:
        range_.complain(to)
    show.say(f"all {sent.lines} points are in {to}" + (", counted there" if range_ else ""))
    if grafana := os.environ.get("SSDRIG_GRAFANA"):
        show.say(dashboard(args.run, grafana))
    return 0


def dashboard(run: Path, grafana: str) -> str:
    """The address of the dashboard of a run, in its own time, at a Grafana that has host/grafana/dashboards."""
    from ssdrig.reading import timeline  # imported here: slow to import

    header, (_, ends_ns) = journal.open_run(run), timeline.utc_ns(parts.of(run)[-1])
    begins_ms, ends_ms = header["started"]["utc_ns"] // 10**6 - 1000, ends_ns // 10**6 + 1000
    drive = line_protocol.clean_tag(drive_tag(header))
    asked = {"var-drive": drive, "var-run": line_protocol.clean_tag(header["run"]), "from": begins_ms, "to": ends_ms}
    return f"{grafana.rstrip('/')}/d/ssdrig-run?" + urlencode(asked)


def push(
    run: Path, to: influx.Target, follow: bool, timeout_s: float, show: Progress, retry_rejected: bool = False
) -> Sent:
    """Make lines of what the run folder and its parts hold and send them, until all is sent or the server took nothing
    for timeout_s. retry_rejected: send everything again, including rejected lines. Raises JournalError if the folder is
    not a run, or another process pushes it; UploadIncomplete if the address cannot be right."""
    folders = parts.of(run)
    if retry_rejected:
        for part in folders:
            _forget(part, to)
    sent: list[Sent] = []
    for part in folders:
        gone = bool(sent and sent[-1].pending)  # the server was given its time already
        sent.append(_push(part, to, follow, timeout_s, show, part == folders[-1], gone))
    return Sent(*(sum(of_parts) for of_parts in zip(*sent, strict=True)))


def _push(
    run: Path, to: influx.Target, follow: bool, timeout_s: float, show: Progress, last: bool, gone: bool = False
) -> Sent:
    """One part. `last`: the only one that may still go on; while it does, the run's lock is held, too. `gone`: lines
    are made and none is sent, unless the run still goes on."""
    journal.open_run(run)
    answer_s = min(ANSWER_S, max(CONNECT_S, timeout_s))
    ended = not last or journal.state(run) != "running"  # asked first, so the last lines are read
    whole = made.whole(run) if ended else None
    with (
        _Complete(run, whole) if whole else _emitter(run, ended) as emitter,
        influx.Sender(run, to, say=show.say, longest_wait_s=timeout_s / 4, answer_s=answer_s) as sender,
    ):
        tell, moved_at, final_try = _Tell(show, sender), time.monotonic(), False
        all_made = begun = False
        while True:
            ended = ended or journal.state(run) != "running"
            over = ended or not follow
            if not all_made:
                emitter.step(final=ended)
                if ended or not begun:
                    moved_at = time.monotonic()  # to make them may have taken its time
                all_made, begun = ended, True
            if gone and over:
                pending = sender.pending()
                return Sent(sender.done + pending, pending, sender.rejected, emitter.left_out)
            sender.until = moved_at + timeout_s + LAST_S if over else math.inf
            at, more = sender.offset, sender.attempt(last=final_try)
            if sender.wrong_address:
                raise sender.wrong_address
            if sender.offset != at or not over:
                moved_at, final_try = time.monotonic(), False
            if more and time.monotonic() - moved_at < timeout_s:
                tell.progress()
                continue
            if over and sender.offset >= emitter.size or final_try:
                pending = sender.pending()
                if not ended:
                    show.say("the run is still going on; push again with --follow, or after it has ended")
                return Sent(sender.done + pending, pending, sender.rejected, emitter.left_out)
            if over and time.monotonic() - moved_at >= timeout_s:
                final_try = True  # whatever wait is under way: asking once more costs nothing
                continue
            time.sleep(min(IDLE_POLL_S, timeout_s) if over else FOLLOW_POLL_S)


def _forget(run: Path, to: influx.Target) -> None:
    journal.open_run(run)
    with Outbox(run), influx.Sender(run, to) as sender:
        sender.retry_rejected()


def _emitter(run: Path, ended: bool):
    from ssdrig.publish.influx import points  # imported here: not needed when all points already exist

    return points.Emitter(run, ended)


class _Complete:
    """In place of points.Emitter, where points.lp holds all lines of a run."""

    def __init__(self, run: Path, made_points: made.Made):
        self._outbox = Outbox(run, made_points.bytes)
        self.size, self.left_out = self._outbox.size, made_points.left_out

    def __enter__(self) -> "_Complete":
        return self

    def __exit__(self, *_) -> None:
        self._outbox.close()

    def step(self, final: bool = False) -> int:
        return 0


class _Tell:
    """How far it is, now and then: lines that wait are counted at the start and not again."""

    def __init__(self, show: Progress, sender: influx.Sender):
        self._show, self._sender = show, sender
        self._first, self._total, self._bytes = sender.done, 0, -1
        self._began = self._reported = time.monotonic()

    def progress(self) -> None:
        now = time.monotonic()
        sent = self._sender.done - self._first
        if now - self._reported < TELL_S or not sent:
            return
        self._reported = now
        size = self._sender.points.stat().st_size
        if size != self._bytes:  # of a run that goes on
            self._bytes, self._total = size, sent + self._sender.pending()
        if left := self._total - sent:
            eta_s = left * (now - self._began) / sent
            self._show.show(f"InfluxDB: {self._sender.done} points sent, {left} to go, {clock(eta_s)} left")


def moved(run: Path) -> tuple:
    """What changes whenever a pusher of this run has got on."""
    ranges: list[tuple[int, int] | None] = []
    for name in ("points.lp", "points.cursor", "rejected.jsonl"):
        try:
            status = os.stat(run / name)
            ranges.append((status.st_mtime_ns, status.st_size))
        except OSError:
            ranges.append(None)
    return tuple(ranges)


def start(run: Path, url: str) -> subprocess.Popen:
    """Follow a run in a separate process, which Ctrl-C at the terminal does not reach. The address is passed in the
    environment, where other users cannot read a password. It prints to our stderr and ends as command() does."""
    words = [sys.executable, "-P", "-m", "ssdrig", "push", str(run), "--follow", "--quiet"]
    environ = os.environ | {"SSDRIG_INFLUX": url}
    return subprocess.Popen(
        words, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
    )
