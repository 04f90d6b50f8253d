"""Send a run folder with all its parts to InfluxDB: while the run goes on (--follow), or afterwards, or the rest of it.

A process of its own that only reads what the run has written; it may die, be started twice, or come a year later.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from ssdrig import journal, parts
from ssdrig.errors import JournalError, UploadIncomplete, UsageError
from ssdrig.influx import points
from ssdrig.influx import sender as influx
from ssdrig.progress import Progress
from ssdrig.words import clock

FOLLOW_POLL_S = 1.0
IDLE_POLL_S = 0.2


class Sent(NamedTuple):
    """Lines of points.lp: all, not acknowledged yet, refused for good; values that no database can hold."""

    lines: int
    pending: int
    rejected: int
    left_out: int


def add_arguments(parser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="the run folder")
    parser.add_argument(
        "--influx",
        metavar="URL",
        help=(
            "http[s]://[user:password@]host:port/DB (default: $SSDRIG_INFLUX); user and password are better kept in"
            " $SSDRIG_INFLUX_USER and $SSDRIG_INFLUX_PASSWORD (the token on 2.x, 3.x)"
        ),
    )
    parser.add_argument("--follow", action="store_true", help="continue until the run has ended and all of it is sent")
    parser.add_argument(
        "--timeout",
        type=float,
        default=60,
        metavar="S",
        help=(
            "once nothing new can come: give up after so many seconds in which the server took nothing (default"
            " %(default)g)"
        ),
    )
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object on stdout")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")


def command(args) -> int:
    """0 all is in the database; 6 (UploadIncomplete) some is not: pending, or refused for good."""
    url = args.influx or os.environ.get("SSDRIG_INFLUX")
    if not url:
        raise UsageError("an InfluxDB address", "none", "give --influx URL or set SSDRIG_INFLUX")
    to = influx.target(url)
    show = Progress(args.quiet)
    try:
        sent = push(args.run, to, args.follow, args.timeout, show)
    except OSError as error:
        raise JournalError(
            f"to read and write in {args.run}", str(error), "make room or mend it, then push again; nothing is lost"
        ) from None
    if args.json:
        print(json.dumps({"run": str(args.run), "to": str(to), **sent._asdict()}), flush=True)
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
            f"read rejected.jsonl in {args.run} and its parts; to try all again, remove it and points.cursor there and"
            " push again",
        )
    show.say(f"all {sent.lines} points are in {to}")
    return 0


def push(run: Path, to: influx.Target, follow: bool, timeout_s: float, show: Progress) -> Sent:
    """Make lines of what the run folder and its parts hold and send them, until all is sent or the server took nothing
    for timeout_s. Raises JournalError if the folder is not a run, or another process pushes it; UploadIncomplete if the
    address cannot be right."""
    folders = parts.of(run)
    sent = [_push(part, to, follow, timeout_s, show, part == folders[-1]) for part in folders]
    return Sent(*map(sum, zip(*sent, strict=True)))


def _push(run: Path, to: influx.Target, follow: bool, timeout_s: float, show: Progress, last: bool) -> Sent:
    """One part. `last`: the only one that may still go on; while it does, the run's lock is held, too."""
    journal.open_run(run)
    with points.Emitter(run) as emitter:
        sender = influx.Sender(run, to, say=show.say)
        started = moved_at = time.monotonic()
        first = sender.done
        while True:
            ended = not last or journal.state(run) != "running"  # asked first, so that what was written last is seen
            over = ended or not follow
            emitter.step(final=ended)
            moved = sender.attempt()
            if sender.wrong_address:
                raise sender.wrong_address
            if moved or not over:
                moved_at = time.monotonic()
            if moved:
                _tell(show, sender, first, time.monotonic() - started)
                continue
            if over and (sender.offset >= emitter.size or time.monotonic() - moved_at >= timeout_s):
                pending = sender.pending()
                if not ended:
                    show.say("the run is still going on; push again with --follow, or when it has ended, for the rest")
                return Sent(sender.done + pending, pending, sender.rejected, emitter.left_out)
            time.sleep(IDLE_POLL_S if over else FOLLOW_POLL_S)


def _tell(show: Progress, sender: influx.Sender, first: int, elapsed_s: float) -> None:
    pending = sender.pending()
    if pending:
        eta_s = pending * elapsed_s / max(1, sender.done - first)
        show.show(f"InfluxDB: {sender.done} points sent, {pending} to go, {clock(eta_s)} left")


def start(run: Path, url: str) -> subprocess.Popen:
    """Follow a run in a separate process, which Ctrl-C at the terminal does not reach. The address is passed in the
    environment, where other users cannot read a password. It prints to our stderr and ends as command() does."""
    words = [sys.executable, "-m", "ssdrig", "push", str(run), "--follow", "--quiet"]
    environ = os.environ | {"SSDRIG_INFLUX": url}
    return subprocess.Popen(
        words, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
    )
