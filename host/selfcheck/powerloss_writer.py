"""Power-loss tests: what the writer costs, and that campaigns on an honest drive accuse it of nothing."""

import os
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from selfcheck import Figure, at_least, at_most, exactly, in_turn
from selfcheck.modeltime import Host
from selfcheck.powerloss_cuts import RUN, Campaign
from selfcheck.powerloss_scenes import KEPT
from ssdrig.base.errors import LoadError
from ssdrig.blockio.slots import Transport
from ssdrig.plan.kinds import cut_mixes
from ssdrig.powerloss import findings, layout, targets
from ssdrig.powerloss.history import History
from ssdrig.powerloss.writer import Writer

CUTS, COMMANDS = 1000, 400_000
# preset, write cache on, shortest and longest session: some 400 to 500 commands each
CLEAN = {
    "volatile cache": ("sata-tlc", True, (5_000_000, 180_000_000)),
    "write cache off": ("sata-tlc", False, (5_000_000, 900_000_000)),
    "capacitors": ("enterprise-plp", True, (1_000_000, 44_000_000)),
}
HOST = Host(late_ns=200_000)  # answers are seen together
TORN = (0.0, 0.5)  # half of the cuts each: 4 KiB are whole, or may be torn
SIZE_BYTES = 256 << 20
# 4 KiB writes, one command in eight with FUA, one in sixteen a FLUSH, 32 under way
SHARES = {"random": 13, "log-fua": 2, "flush": 1}
DEPTH = dict.fromkeys(cut_mixes.NAMES, 1) | {"random": 25, "log-fua": 5, "flush": 2}
RUN_NS, TRIES = 1_000_000_000, 5


class Clean(Counter):
    """What a campaign came to: cuts judged, commands, blocks read, writes lost, blocks of "FAIL" and "warn", cpu_ms."""


def clean(preset: str, cache_on: bool, session_ns: tuple[int, int], cuts: int, seed: int = 1, torn: float = 0) -> Clean:
    """A campaign of so many cuts in model time."""
    out, certain = Clean(), np.array([finding.certain for finding in findings.CLASSES])
    began_s = time.process_time()
    with tempfile.TemporaryDirectory(prefix="ssdrig-bench-powerloss-") as folder:
        campaign = Campaign(
            preset, Path(folder), seed, cache_on, session_ns=session_ns, host=HOST, torn=torn, adversary=True
        )
        try:
            for _ in range(cuts):
                cut = campaign.cut()
                classes = cut.verdict.finding
                out["cuts"] += not cut.verdict.why_not
                out["commands"] += len(cut.session.rows)
                out["blocks"] += len(cut.blocks.lba)
                out["lost"] += len(cut.verdict.lost_volatile)
                out["FAIL"] += int((certain[classes] & (classes > 0)).sum())
                out["warn"] += int((~certain[classes]).sum())
        finally:
            campaign.close()
    out["cpu_ms"] = round((time.process_time() - began_s) * 1000)
    return out


def clean_campaigns() -> list[Figure]:
    """1000 cuts of each kind in four campaigns, so that there is a progress to show."""
    figures, totals = [], {title: Clean() for title in CLEAN}
    parts = [(title, torn, seed) for title in CLEAN for torn in TORN for seed in (1, 2)]
    for title, torn, seed in in_turn(parts, "powerloss-clean"):
        totals[title] += clean(*CLEAN[title], CUTS // 4, seed, torn)
    for title, total in totals.items():
        figures += [
            at_least(f"{title}: cuts judged", total["cuts"], "cuts", CUTS),
            at_least(f"{title}: commands", total["commands"], "commands", COMMANDS),
            exactly(f"{title}: broken promises", total["FAIL"], "blocks", 0),
            exactly(f"{title}: suspicions", total["warn"], "blocks", 0),
            at_most(f"{title}: on one core", total["cpu_ms"] / 1000, "s CPU", 60),
            Figure(f"{title}: blocks read", total["blocks"], "blocks", "for comparison", True),
            Figure(f"{title}: lost as the promise allows", total["lost"], "writes", "for comparison", True),
        ]
    return figures


def writer() -> list[Figure]:
    """CPU time of this process, user and system, a command; the least of a few runs, since what else goes on can only
    add to it. Of the rate the most."""
    with tempfile.TemporaryDirectory(prefix="ssdrig-bench-writer-", dir=_direct_folder()) as name:
        folder = Path(name)
        file = folder / "drive"
        with file.open("wb") as f:
            os.truncate(f.fileno(), SIZE_BYTES)
        aio_us, aio_rate = _best(str(file), folder)
        figures = [
            at_most(f"AIO on a file of {name.split('/')[1:3]}", aio_us, "us CPU a command", 8),
            Figure("AIO, commands", aio_rate, "a second", "for comparison", True),
        ]
        nbdkit = shutil.which("nbdkit")
        if nbdkit is None:
            return [*figures, Figure("NBD: nbdkit is not installed", 0, "", "<= 10", False)]
        socket = folder / "socket"
        process = subprocess.Popen([nbdkit, "--foreground", "--unix", str(socket), "memory", str(SIZE_BYTES)])
        try:
            _await(socket, process)
            nbd_us, nbd_rate = _best(f"nbd+unix:///?socket={socket}", folder)
        finally:
            process.terminate()
            process.wait()
    return [
        *figures,
        at_most("NBD to nbdkit memory", nbd_us, "us CPU a command", 10),
        at_least("NBD to nbdkit memory, QD 32", nbd_rate, "commands a second", 50_000),
    ]


def _direct_folder() -> str:
    """Where a file can be written past the page cache; in memory, if there."""
    for place in ("/dev/shm", "/var/tmp"):
        try:
            with tempfile.NamedTemporaryFile(dir=place) as f:
                os.close(os.open(f.name, os.O_RDWR | os.O_DIRECT))
            return place
        except OSError:
            continue
    raise LoadError("a folder for direct I/O", "neither /dev/shm nor /var/tmp", "make room in /var/tmp")


def _await(socket: Path, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 10
    while not socket.exists():
        if time.monotonic() > deadline or process.poll() is not None:
            raise LoadError("nbdkit to listen", f"exit code {process.poll()}", "start it by hand to see why")
        time.sleep(0.02)


def _best(target: str, folder: Path) -> tuple[float, float]:
    """(least us of CPU a command, most commands a second)."""
    transport = targets.connected(target)
    try:
        measured = [_once(transport, folder / f"history-{i}", 1 + i) for i in range(TRIES + 1)][1:]
    finally:
        transport.close()
        for file in folder.glob("history-*"):
            file.unlink()
    return min(us for us, _ in measured), max(rate for _, rate in measured)


def _once(transport: Transport, path: Path, session: int) -> tuple[float, float]:
    places = layout.make(KEPT.block_bytes, transport.size_bytes)
    book = History(path)
    writing = Writer(transport, book, places, KEPT, RUN, session, 1, shares=SHARES, depth=DEPTH)
    began, cpu_s = transport.now_ns(), time.process_time()
    ended = writing.write(began + RUN_NS)
    writing.settle(RUN_NS)
    cpu_s, took_s = time.process_time() - cpu_s, (transport.now_ns() - began) / 1e9
    if ended.reason != "time" or (book.written()["status"] != 0).any():
        raise LoadError("writing to go on for a second", f"{ended.reason}: {ended.why}", "see the kernel's log (dmesg)")
    book.close()
    return cpu_s / len(book) * 1e6, len(book) / took_s


BENCHES = {
    "powerloss-clean": (
        "1000 cuts of each kind of honest drive in model time, none of which may be accused",
        clean_campaigns,
    ),
    "powerloss-writer": ("what the writer costs with AIO and NBD, payload and history in it", writer),
}
