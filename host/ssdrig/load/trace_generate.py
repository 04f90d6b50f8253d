"""A trace made from published statistics: each window holds, exactly except rounding, the published shares of
directions, sizes, queue depths and sequential I/Os, in an order drawn from the seed.

An I/O's queue depth is the number of I/Os that are submitted at the same moment. Sequential I/Os continue one of the
streams of their direction; the others go to 20 % of the working set in 80 % of cases. Streams, places and pauses are
our assumptions: nothing was published of them."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from ssdrig.base.errors import UsageError
from ssdrig.base.words import do_you_mean
from ssdrig.load import trace_mix
from ssdrig.load.trace_published import BENCHES, QD_ROWS, TRIM_BYTES, Bench
from ssdrig.load.traceform import FLUSH, READ, ROW, TRIM, WRITE

BURSTS = 1 << 15  # of one window
STREAMS = 8  # of each direction; the first takes I/Os smaller than 4 KiB
RUN_IOS = 32  # mean length of a stream's run
HOT_SHARE, HOT_PLACE = 0.8, 0.2
THINK_NS = 500_000  # mean gap between two submissions ...
PAUSE_SHARE, PAUSE_NS = 0.01, 1_000_000_000  # ... and of each hundredth one, the mean of an exponential pause
IDLE_CAP_NS = 25_000_000  # as the source played it
PAGE_BYTES = 4096
FEWEST_IOS = 1000
SMALLEST_SET_BYTES = 64 << 20


@dataclass(frozen=True)
class Asked:
    """What `bench` is made with. idle_cap_ns None: pauses as drawn. block_bytes: 512, or 4096 for a drive that takes
    nothing smaller."""

    bench: str
    seed: int = 1
    scale: float = 1.0
    working_set_bytes: int = 64 << 30
    idle_cap_ns: int | None = IDLE_CAP_NS
    block_bytes: int = 512

    def check(self) -> None:
        """Raises UsageError."""
        if self.bench not in BENCHES:
            raise UsageError(f"a bench: {', '.join(BENCHES)}", repr(self.bench), do_you_mean(self.bench, BENCHES))
        if not 0 < self.scale <= 1 or self.ios < FEWEST_IOS:
            least = FEWEST_IOS / BENCHES[self.bench].ios
            raise UsageError(
                f"a scale of {least:.2g} to 1, for {FEWEST_IOS} I/Os", f"{self.scale:g}", "correct --scale"
            )
        if self.working_set_bytes < SMALLEST_SET_BYTES or self.working_set_bytes % PAGE_BYTES:
            raise UsageError(
                f"a working set of at least {SMALLEST_SET_BYTES >> 20} MiB, in whole blocks of {PAGE_BYTES} bytes",
                f"{self.working_set_bytes} bytes",
                "correct --working-set",
            )
        if self.seed < 0 or (self.idle_cap_ns is not None and self.idle_cap_ns < 0):
            raise UsageError("a seed and an idle cap of at least 0", f"{self.seed}", "correct --seed or --idle-cap")
        if self.block_bytes not in (512, 4096):
            raise UsageError("a block of 512 or 4096 bytes", str(self.block_bytes), "correct --block")

    @property
    def ios(self) -> int:
        return round(BENCHES[self.bench].ios * self.scale)

    def words(self) -> dict:
        """For the header of the file."""
        return {
            "name": self.bench,
            "synthetic": True,
            "scaled": self.scale < 1,
            "source": BENCHES[self.bench].source,
            "depths": "I/Os submitted together, in the published shares",
            "parameters": asdict(self),
        }


class Shares:
    """Counts in proportion to shares, the rounding carried from one call to the next."""

    def __init__(self, shares: np.ndarray, rng: np.random.Generator):
        self.shares = shares / shares.sum()
        self.carry = rng.random(len(shares)) - 0.5
        self.carry -= self.carry.mean()

    def of(self, n: int) -> np.ndarray:
        """int64 counts, n in all."""
        want = self.shares * n + self.carry
        counts = np.maximum(np.floor(want), 0).astype(np.int64)
        while (missing := n - int(counts.sum())) != 0:
            left = np.where((missing > 0) | (counts > 0), want - counts, np.inf) * np.sign(missing)
            counts[np.argsort(-left)[: abs(missing)]] += np.sign(missing)
        self.carry = want - counts
        return counts

    def shuffled(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """n indices of shares, in random order."""
        out = np.repeat(np.arange(len(self.shares)), self.of(n))
        rng.shuffle(out)
        return out


def depth_shares(depths: tuple[float, ...]) -> np.ndarray:
    """Share of bursts of 1, 2, 3 ... I/Os, such that the share of I/Os in them is the published row's."""
    out = np.zeros(QD_ROWS[-1][1])
    for (low, high), percent in zip(QD_ROWS, depths):
        for depth in range(low, high + 1):
            out[depth - 1] = percent / (high - low + 1) / depth
    return out / out.sum()


def generate(asked: Asked) -> Iterator[np.ndarray]:
    """The windows of the trace, arrays of traceform.ROW. The same Asked makes the same trace with the same release of
    NumPy. Raises UsageError."""
    asked.check()
    bench, rng = BENCHES[asked.bench], np.random.Generator(np.random.PCG64(asked.seed))
    sizes, ops, shares = kinds_of(bench, asked.block_bytes)
    kinds = Shares(shares, rng)
    bursts = Shares(depth_shares(bench.depths), rng)
    continued = Shares(np.array([100 - bench.sequential, bench.sequential]), rng)
    mean_burst = float(bursts.shares @ np.arange(1, len(bursts.shares) + 1))
    places = Places(asked.working_set_bytes, asked.block_bytes, bench.sequential / 100, rng)
    t_ns, left = 0, asked.ios
    while left:
        depths = bursts.shuffled(min(BURSTS, max(1, round(left / mean_burst))), rng) + 1
        if int(depths.sum()) > left:  # the last bursts are cut
            ends = np.cumsum(depths)
            depths = depths[: int(np.searchsorted(ends, left)) + 1]
            depths[-1] -= int(depths.sum()) - left
        n = int(depths.sum())
        left -= n
        rows, kind = np.zeros(n, ROW), kinds.shuffled(n, rng)
        gaps = _gaps(len(depths), asked.idle_cap_ns, rng)
        rows["t_ns"] = np.repeat(t_ns + np.cumsum(gaps) - gaps, depths)
        rows["depth"] = np.repeat(depths, depths)
        t_ns += int(gaps.sum())
        rows["op"], rows["length_bytes"] = ops[kind], sizes[kind]
        moves, on = rows["op"] <= WRITE, continued.shuffled(n, rng) == 1
        rows["offset_bytes"][moves] = places.of(ops[kind][moves], sizes[kind][moves], on[moves])
        trims = rows["op"] == TRIM
        if trims.any():
            rows["offset_bytes"][trims] = places.drawn(int(trims.sum()))
        yield rows


def kinds_of(bench: Bench, block_bytes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(sizes in bytes, operation, share of all I/Os) of each kind of I/O."""
    sizes, reads, writes = trace_mix.cells(BENCHES[bench.writes_of] if bench.writes_of else bench, block_bytes)
    if bench.writes_of is None:
        return np.concatenate([sizes, sizes]), np.repeat([READ, WRITE], len(sizes)), np.concatenate([reads, writes])
    more = np.array([bench.trims, bench.flushes]) / bench.ios
    return (
        np.append(sizes, [TRIM_BYTES, 0]),
        np.append(np.full(len(sizes), WRITE), [TRIM, FLUSH]),
        np.append(writes / writes.sum() * bench.writes / bench.ios, more),
    )


def _gaps(n: int, cap_ns: int | None, rng: np.random.Generator) -> np.ndarray:
    """The gap after each of n bursts, ns."""
    gaps = rng.exponential(THINK_NS, n)
    pauses = rng.random(n) < PAUSE_SHARE
    gaps[pauses] += rng.exponential(PAUSE_NS, int(pauses.sum()))
    return np.minimum(gaps, np.inf if cap_ns is None else cap_ns).astype(np.int64)


def mean_gap_ns(cap_ns: int | None) -> float:
    """The mean of _gaps: of the smaller of an exponential time and a cap it is mean x (1 - e^(-cap / mean)); the few
    gaps with a pause are taken as the pause alone."""

    def capped(mean: float) -> float:
        return mean if cap_ns is None else -mean * float(np.expm1(-cap_ns / mean))

    return (1 - PAUSE_SHARE) * capped(THINK_NS) + PAUSE_SHARE * capped(PAUSE_NS)


class Places:
    """Where I/Os go: streams that outlast a window, and places drawn again."""

    def __init__(self, set_bytes: int, block_bytes: int, sequential: float, rng: np.random.Generator):
        self.rng, self.block_bytes = rng, block_bytes
        self.span = set_bytes - (1 << 17)  # where an I/O may begin
        self.at = self.drawn(2 * STREAMS)  # where each stream goes on
        self.restarts = min(
            1.0, sequential / (RUN_IOS - 1) / (1 - sequential)
        )  # share of drawn places that begin a run

    def drawn(self, n: int) -> np.ndarray:
        """n places, page by page: most of them in the hot part."""
        hot = self.rng.random(n) < HOT_SHARE
        u = self.rng.random(n)
        place = np.where(hot, u * HOT_PLACE, HOT_PLACE + u * (1 - HOT_PLACE))
        return (place * self.span).astype(np.int64) // PAGE_BYTES * PAGE_BYTES

    def of(self, op: np.ndarray, sizes: np.ndarray, continued: np.ndarray) -> np.ndarray:
        """Offsets in bytes of I/Os of these directions and sizes, those that are `continued` where their stream is."""
        n, small = len(op), sizes < PAGE_BYTES
        stream = op * STREAMS + np.where(small, 0, self.rng.integers(1, STREAMS, n))
        offsets = self.drawn(n)
        member = continued | (self.rng.random(n) < self.restarts)
        order = np.flatnonzero(member)[np.argsort(stream[member], kind="stable")]
        of, length = stream[order], sizes[order]
        before = np.cumsum(length) - length
        first = np.diff(of, prepend=-1) != 0
        anew = ~continued[order]
        base = np.where(anew, offsets[order], self.at[of]) - before  # + before: where it is if its run begins here
        begin = np.maximum.accumulate(np.where(first | anew, np.arange(len(order)), 0))
        place = (base[begin] + before) % self.span
        place -= place % np.where(small[order], self.block_bytes, PAGE_BYTES)
        offsets[order] = place
        last = np.diff(of, append=-1) != 0
        self.at[of[last]] = place[last] + length[last]
        return offsets
