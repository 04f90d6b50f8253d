"""A drive of contents without bytes, for windows of any size: honest, with a volatile cache, and with trims that take
effect some cuts later. A trimmed block shows its old content until it is collected, and zeros then, as a SATA drive
without DRAT may; NBD allows it. Its commands are the project's own streams, one after the other; the last ones are
under way when the power goes."""

from typing import NamedTuple

import numpy as np

from ssdrig.plan.kinds import cut_mixes, cut_schedule
from ssdrig.powerloss import health, judging, layout, record, streams, verdict
from ssdrig.powerloss.aim import Plan
from ssdrig.powerloss.campaign import Contents, damage_spreads
from ssdrig.powerloss.cycle import Lived
from ssdrig.powerloss.history import FLUSH, FUA, NEVER, ROW, TRIM, WRITE, ZEROS
from ssdrig.powerloss.layout import index, lba
from ssdrig.powerloss.promise import FLUSH as BY_FLUSH
from ssdrig.powerloss.promise import Promise
from ssdrig.powerloss.supply import Outcome
from ssdrig.powerloss.tally import Tally

HELD = Promise(BY_FLUSH, 4096, 0, 0, 0, None, True, "NBD: what FLUSH or FUA covers is kept")
COMMANDS, UNDER_WAY = 500, 24
SUBMIT_NS, DONE_NS = 20_000, 15_000
LATEST_CUTS = 40  # after which a trim has taken effect
READY = health.State(1.0)


class Result(NamedTuple):
    accused: int
    suspicious: int
    collected: int  # trims that took effect after the cut that followed them
    tally: Tally


class Drive:
    def __init__(self, places: layout.Layout, seed: int):
        self.places, self.chance = places, np.random.default_rng([seed, 1])
        self.disk = np.zeros(places.base_blocks, np.int64)
        self.cache: dict[int, int] = {}
        self.due: dict[int, int] = {}  # trimmed place -> cut at which it is collected
        self.cuts = self.collected = 0

    def session(self, rows: np.ndarray) -> None:
        """These commands, and then the power goes."""
        self.cuts += 1
        for row in rows:
            done = row["done_ns"] != NEVER
            if row["kind"] == FLUSH:
                if done:
                    self._write_out(dict(self.cache))
                continue
            at = index(self.places, np.arange(int(row["lba"]), int(row["lba"] + row["n"])))
            if row["kind"] == TRIM:
                self._trim([int(block) for block in at if block >= 0])
            elif done or self.chance.random() < 0.5:
                new = dict.fromkeys(map(int, at), record.ZEROS if row["flags"] & ZEROS else int(row["seq"]))
                if done and row["flags"] & FUA:
                    self._write_out(new)
                else:
                    self.cache |= new
        self._write_out({at: seq for at, seq in self.cache.items() if self.chance.random() < 0.5})
        self.cache = {}
        late = [at for at, cut in self.due.items() if cut <= self.cuts]
        self.disk[late] = record.ZEROS
        self.collected += len(late)
        for at in late:
            del self.due[at]

    def _trim(self, at: list[int]) -> None:
        when = self.cuts + int(self.chance.integers(0, LATEST_CUTS + 1))
        for block in at:
            self.cache.pop(block, None)
            self.due[block] = when

    def _write_out(self, contents: dict[int, int]) -> None:
        if contents:
            self.disk[list(contents)] = list(contents.values())
        for at in contents:
            self.cache.pop(at, None)
            self.due.pop(at, None)


def rows_of(places: layout.Layout, seed: int, session: int, first_seq: int) -> np.ndarray:
    """history.ROW[n]: commands of all streams, mixed by their shares."""
    chance = np.random.default_rng([seed, session])
    names = chance.choice(
        cut_mixes.NAMES, COMMANDS, p=np.array([*cut_mixes.SHARES.values()]) / sum(cut_mixes.SHARES.values())
    )
    drawn = {name: iter(streams.commands(name, places, HELD, seed, session, 0)) for name in cut_mixes.NAMES}
    out = np.zeros(COMMANDS, ROW)
    for i, name in enumerate(names):
        command = next(drawn[name], None)
        if command is None:
            drawn[name] = iter(streams.commands(name, places, HELD, seed, session, i))
            command = next(drawn[name])
        kind, flags, n, first, _ = (int(value) for value in command)
        submit_ns = (i + 1) * SUBMIT_NS
        done_ns = submit_ns + DONE_NS if i < COMMANDS - UNDER_WAY else NEVER
        out[i] = (first_seq + i, first, n, kind, flags, 0, submit_ns, done_ns)
    return out[np.isin(out["kind"], (WRITE, FLUSH, TRIM))]


def campaign(window_bytes: int, cuts: int, seed: int, forgets: bool = False) -> Result:
    """`forgets`: the judge forgets at each reading that a block was trimmed, as it once did."""
    places = layout.make(4096, 4 * window_bytes, window_bytes)
    drive, contents = Drive(places, seed), Contents(places, verdict.known(places.base_blocks, 0))
    tally, accused = Tally(), 0
    for n, cut in enumerate(cut_schedule.cuts(seed, cuts, 0, {"random": 1}, {"command": 1}, False)):
        rows = rows_of(places, seed, cut.number, 1 + n * COMMANDS)
        drive.session(rows)
        fired_ns = (COMMANDS + 1) * SUBMIT_NS
        outcome = Outcome(fired_ns, 1000, fired_ns + 10**9, 1.0)
        lived = Lived(rows, None, fired_ns, fired_ns + 1, outcome, Plan("random", None), link_lost=True, ready_s=1.0)
        whole, more = contents.is_whole(n, cuts), True
        while more:
            blocks = contents.asked(_read(drive, contents, rows, cut.seed, whole))
            how = READY, READY, None, None, lambda lba: None, tally.before(cut.number), None, True, tally.last_cut
            judged = judging.judge(cut, lived, blocks, fired_ns + 2 * 10**9, HELD, True, *how)
            more = not whole and damage_spreads(len(judged.verdict.failed()), tally.broken)
            whole = whole or more
        tally.add(judged.record)
        accused += len(judged.verdict.failed())
        contents.take(rows, blocks, judged.verdict, HELD, cut.number, whole)
        if forgets:
            contents.known.trimmed[:] = False
    return Result(accused, tally.suspicious, drive.collected, tally)


def _read(drive: Drive, contents: Contents, rows: np.ndarray, seed: int, whole: bool) -> verdict.Blocks:
    """Of the whole window only what was touched, or is not what it was, as readback.read() has it."""
    runs = contents.wanted(rows, seed, False)
    at = index(drive.places, np.concatenate([np.arange(first, end) for first, end in runs]))
    at = at[at >= 0]
    if whole:
        at = np.union1d(at, np.flatnonzero(drive.disk != contents.known.content))
    where = lba(drive.places, at)
    order = np.argsort(where)
    at, where = at[order], where[order]
    base = contents.known.content[at]
    return verdict.Blocks(where, base, drive.disk[at], at >= drive.places.window_blocks)


if __name__ == "__main__":
    import sys

    for size in (64 << 20, 2 << 30, 64 << 30):
        for number in range(1, 6):
            score = campaign(size, int(sys.argv[1]), number)
            print(
                f"{size >> 20} MiB seed {number}: {score.accused} accused, {score.suspicious} suspicious cuts,", end=" "
            )
            print(f"{score.collected} blocks collected late, {score.tally.cuts} cuts", flush=True)
