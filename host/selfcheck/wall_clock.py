"""Someone sets the wall clock while a run goes on: each step of the clock at a moment of each phase. Every figure and
every point of the run must stay as it is, and the points behind the step have the right UTC."""

import concurrent.futures
import email.utils
import itertools
import math
import multiprocessing
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from selfcheck import Figure, at_least, at_most, exactly, in_turn
from ssdrig.base.progress import Progress
from ssdrig.publish.influx import line_protocol, push, sender
from ssdrig.reading import table
from ssdrig.report import page

TESTS = Path(__file__).parents[2] / "tests" / "support"  # the writer of run folders with known content is the tests'
PEAK_MB = 300
MEMORY_BYTES = 8 << 30  # more than this would harm the machine, not only miss the bar
PUSH_S = 15.0
UTC_OFF_NS = 100_000_000


def numbers(figures: dict, where: str = "") -> Iterator[tuple[str, float | None]]:
    """(path, value) of everything in `report --json` that can be a number, its windows and rails too."""
    for key, value in figures.items():
        if isinstance(value, dict):
            yield from numbers(value, f"{where}{key}.")
        elif isinstance(value, list) and key != "notes":
            yield from numbers(dict(enumerate(value)), f"{where}{key}.")
        elif value is None or isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{where}{key}", value


def worst(want: dict, got: dict) -> tuple[float, str]:
    """The largest difference of a figure that both have, in percent, and its path."""
    other, out = dict(numbers(got)), (0.0, "")
    for path, value in numbers(want):
        seen = other.get(path)
        if value is not None and seen is not None and value != seen:
            out = max(out, (100 * abs(seen / value - 1) if value else math.inf, path))
    return out


def lost(want: dict, got: dict) -> list[str]:
    """Figures that are null, or not there, without a note that the run as it was does not have."""
    if set(got["notes"]) - set(want["notes"]):
        return []
    other = dict(numbers(got))
    return [path for path, value in numbers(want) if value is not None and other.get(path) is None]


def case(run: str, url: str, by_s: float) -> tuple[dict, dict, float]:
    """In a process of its own: figures and page of the run, then its points sent, while this process' clock is set.
    Returns (figures, what push says, peak memory in bytes)."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    data, figures, _ = table.in_full(run)
    page.render([], 0, [(data, figures)])
    real, real_ns, set_at = time.time, time.time_ns, time.monotonic() + 0.2
    time.time = lambda: real() + (by_s if time.monotonic() > set_at else 0)
    time.time_ns = lambda: real_ns() + (round(by_s * 1e9) if time.monotonic() > set_at else 0)
    sent = push.push(Path(run), sender.target(url, {}), False, PUSH_S, Progress(quiet=True))
    return figures, sent._asdict(), 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def series(run: Path) -> dict[bytes, list[tuple[bytes, int]]]:
    """(fields, UTC) of each point in points.lp in the order made, by series. Left out are the events of anchors, and of
    sums, which fio's UTC changes; and what is computed of the figures, which are compared themselves."""
    out: dict[bytes, list[tuple[bytes, int]]] = {}
    for line in (run / "points.lp").read_bytes().splitlines():
        key, t = line_protocol.series_and_time(line)
        fields = line[len(key) : line.rindex(b" ")]
        if not fields.startswith((b' kind="clock.anchor"', b' kind="sums"')) and not key.startswith(COMPUTED):
            out.setdefault(key, []).append((fields, t))
    return out


def _wall_clock() -> list[Figure]:
    sys.path.insert(0, str(TESTS))
    import fake_influx
    import set_clock
    import synthetic_run

    folder = Path(tempfile.mkdtemp(prefix="ssdrig-wall-clock-", dir="/var/tmp"))
    # a forkserver is small, so that the peak memory of a case is its own
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["selfcheck.wall_clock"])

    def measured(by_s: float, at: str, stamped: bool, name: str) -> tuple[Path, dict, dict, float]:
        run = set_clock.stepped(whole, folder / name, by_s, set_clock.MOMENTS_S[at], stamped)
        # a server that is busy at first says until when, by its own clock: the step falls into the wait
        busy = [(503, {"Retry-After": email.utils.formatdate(time.time() + 2, usegmt=True)})]
        with (
            fake_influx.FakeInflux("1.8", script=busy if at == PUSHED else ()) as server,
            concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool,
        ):
            return run, *pool.submit(case, str(run), server.url, by_s if at == PUSHED else 0.0).result()

    cases = list(itertools.product((True, False), set_clock.STEPS_S, set_clock.MOMENTS_S))
    difference, null, peak_bytes, altered, off = (0.0, ""), 0, 0.0, 0, 0
    try:
        whole = set_clock.write(folder)
        plain = {stamped: measured(0.0, "early", stamped, f"plain-{stamped}") for stamped in (True, False)}
        for number, (stamped, by, at) in enumerate(in_turn(cases, "wall-clock")):
            by_s, set_ns = set_clock.STEPS_S[by], set_clock.step_ns(whole, set_clock.MOMENTS_S[at])
            run, figures, sent, peak = measured(by_s, at, stamped, f"case-{number}")
            before, want, all_sent, _ = plain[stamped]
            words = f"{by}, {at}, {'stamped' if stamped else 'UTC only'}"
            difference = max(difference, (worst(want, figures)[0], f"{worst(want, figures)[1]} ({words})"))
            for path in lost(want, figures):
                null += 1
                print(f"{words}: {path} is null without a note", file=sys.stderr)
            peak_bytes = max(peak_bytes, peak)
            mine, theirs = series(run), series(before)
            same = {k: [f for f, _ in v] for k, v in mine.items()} == {k: [f for f, _ in v] for k, v in theirs.items()}
            if not same or sent["pending"] or sent["rejected"]:
                altered += 1
                print(f"{words}: other points, or not all sent: {sent}, once {all_sent}", file=sys.stderr)
                continue
            for key, points in theirs.items():
                for (_, utc), (_, seen) in zip(points, mine[key], strict=True):
                    t_ns = utc - synthetic_run.UTC_RUN_NS + synthetic_run.T_RUN_NS
                    if not set_ns <= t_ns <= set_ns + set_clock.ANCHOR_AFTER_NS:
                        off += abs(seen - set_clock.utc_ns(t_ns, set_ns, by_s)) > UTC_OFF_NS
            shutil.rmtree(run)
        if difference[0]:
            print(f"worst difference: {difference[1]}", file=sys.stderr)
        return [
            at_least("steps of the clock", len(cases), "", 25),
            at_most("worst difference of a figure without a note", difference[0], "%", 1),
            exactly("figures that are null without a note", null, "", 0),
            at_most("peak memory of a report and its points", peak_bytes / 1e6, "MB", PEAK_MB),
            exactly("runs with points that are lost or altered", altered, "", 0),
            exactly("points with another UTC, 1 s after the step", off, "", 0),
        ]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


COMPUTED = (b"run_result,", b"run_figure,", b"run_value,", b"load_second,")
PUSHED = "while points are pushed"
BENCHES = {
    "wall-clock": (
        "wall clock set at a moment of each phase: figures, points and memory as without (about 1 min)",
        _wall_clock,
    )
}
