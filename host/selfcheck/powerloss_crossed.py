"""Campaigns of power cuts whose rig feeds another drive, which is at rest or at work, on the whole virtual bench: each
ends before its first cut by the signature, or, where no signature was seen, at that cut, and its own drive gets no
verdict. Sound campaigns of the same drives go on."""

import contextlib
import random
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from selfcheck import Figure, exactly, in_turn
from ssdrig import cli
from ssdrig.base.errors import DriveError, NotPaired
from ssdrig.blockio.nbd import NbdClient, NbdError
from ssdrig.meter.pairing import EVENT, NOT_PAIRED, PAIRED, UNKNOWN
from ssdrig.powerloss import sessions
from ssdrig.run import pairing
from ssdrig.runs import journal
from ssdrig.virtual import bench

BENCH = "powerloss-crossed"
CAMPAIGNS, CUTS, SOUND_CUTS = 20, 40, 2  # a campaign of SOUND_CUTS has control sessions, too
DRIVES = ("sata-mlc", "sata-tlc", "nvme-tlc", "enterprise-plp")
WORDS = ["--capacity", "512MiB", "--quiet", "--set", "window=16 MiB", "--set", "write=0.5 s", "--set", "off_time=0.6 s"]
WORDS += ["--set", "aims={ random = 3, flush = 1, fua = 1 }"]
LEAST_S, MOST_S = 0.05, 1.0  # of a burst, and of a pause, of a stranger at work
BLOCK_BYTES = 64 << 10


@dataclass
class Outcome:
    """A campaign: its exit code, the last verdict of its signature, sessions planned with a cut, cuts fired, and the
    records of its sessions."""

    code: int
    verdict: str
    planned: int
    fired: int
    judged: list[dict]

    @property
    def accused(self) -> int:
        """Sessions that come to a verdict on the drive."""
        return sum(bool(record["judged"] or record["failed"] or record["findings"]) for record in self.judged)


@contextlib.contextmanager
def at_work(socket: str, seed: int) -> Iterator[None]:
    """Random writes in bursts, for as long as the block lasts, by a client that connects again after a cut."""
    ended, chance = threading.Event(), random.Random(seed)

    def work() -> None:
        while not ended.wait(0.1):
            with contextlib.suppress(DriveError, NbdError, OSError), NbdClient(socket) as link:
                while not ended.wait(chance.uniform(LEAST_S, MOST_S)):
                    for _ in range(chance.randint(10, 100)):
                        link.write(chance.randrange(link.size_bytes // BLOCK_BYTES) * BLOCK_BYTES, bytes(BLOCK_BYTES))

    thread = threading.Thread(target=work, name="stranger", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextlib.contextmanager
def crossed(stranger: str, works: bool, seed: int) -> Iterator[None]:
    """Benches that start meanwhile have the board of a second drive, of the preset `stranger`."""
    start = bench.start
    with contextlib.ExitStack() as strangers:

        def start_both(preset, **how):
            ours = start(preset, **{**how, "board": False})
            strangers.callback(ours.end)
            other = start(stranger, capacity=how["capacity"], data="crc")
            strangers.callback(other.end)
            ours.port = other.port
            if works:
                strangers.enter_context(at_work(other.drive["socket"], seed))
            return ours

        with mock.patch.object(bench, "start", start_both):
            yield


def _unseen(bench_, book, *_) -> dict:
    """Stands in for the signature: nothing was seen."""
    return book.event(EVENT, verdict=UNKNOWN, why="not looked", looks=[])


def outcome(runs: Path, seed: int, cuts: int, stranger: bool, looked: bool) -> Outcome:
    """One campaign. stranger: the rig feeds another drive, at work in every other seed; looked: by a signature."""
    preset, other = DRIVES[seed % len(DRIVES)], DRIVES[(seed + 1 + seed // len(DRIVES)) % len(DRIVES)]
    words = ["run", "powerloss", "--virtual", preset, "--cuts", str(cuts), "--seed", str(seed), *WORDS]
    with contextlib.ExitStack() as around:
        if stranger:
            around.enter_context(crossed(other, bool(seed & 1), seed))
        if not looked:
            around.enter_context(mock.patch.object(pairing, "carry_out", _unseen))
        code = cli.main([*words, "--runs", str(runs)])
    (run,) = runs.iterdir()
    events = journal.events(run)
    of_kind = lambda kind: [event for event in events if event["kind"] == kind]
    verdict = next((event["verdict"] for event in reversed(of_kind(EVENT))), "")
    planned = sum(event["shape"] is not None for event in of_kind("cut.plan"))
    return Outcome(code, verdict, planned, len(of_kind("cut.fired")), of_kind(sessions.JUDGED))


def outcomes(cuts: int, stranger: bool, looked: bool) -> list[Outcome]:
    made = []
    for seed in in_turn(range(CAMPAIGNS), BENCH):
        runs = Path(tempfile.mkdtemp(prefix="ssdrig-crossed-", dir="/var/tmp"))
        try:
            made.append(outcome(runs, seed, cuts, stranger, looked))
        finally:
            shutil.rmtree(runs, ignore_errors=True)
        print(f"{BENCH}: seed {seed}, crossed {stranger}, looked {looked}: {made[-1]}"[:400], file=sys.stderr)
    return made


def shown() -> list[Figure]:
    of, right = f"of {CAMPAIGNS} campaigns", NotPaired.exit_code
    looked, unseen = outcomes(CUTS, True, True), outcomes(CUTS, True, False)
    sound = outcomes(SOUND_CUTS, False, True)
    at_latest = [one for one in looked if one.code == right and one.fired <= one.planned <= 1]
    before = sum(one.verdict == NOT_PAIRED and not one.planned for one in at_latest)
    at_first = [one for one in unseen if one.code == right and one.fired == one.planned == 1]
    goes_on = [one for one in sound if one.code == 0 and one.verdict == PAIRED and one.fired == SOUND_CUTS]
    return [
        exactly(f"{of} by another drive's rig, ended at its first cut at the latest", len(at_latest), "", CAMPAIGNS),
        Figure("of these before it (a busy host shows no signature)", before, "campaigns", "to compare", True),
        exactly(f"{of} without a signature, ended at its first cut", len(at_first), "campaigns", CAMPAIGNS),
        exactly("sessions of these with a verdict", sum(one.accused for one in (*looked, *unseen)), "sessions", 0),
        exactly(f"{of} with the drive's own rig, carried out", len(goes_on), "campaigns", CAMPAIGNS),
    ]


BENCHES = {
    BENCH: (f"{3 * CAMPAIGNS} campaigns of power cuts, 40 by another drive's rig: none beyond its first cut", shown)
}
