"""Episodes of a step laid on each other: the view `episodes`.

An episode is a short event that draws power: a SMART reading, whose times the journal has; an I/O after a pause, which
may wake the drive; a burst above the load's own power, such as a garbage collection, found in the samples. The episodes
of one kind are cut out in cells of equal length that begin where the episode begins, and laid on each other.

    energy of one = integral of its power - (level before it + level after it) / 2 x its time

It is integrated until more cells before and after add no energy beyond the scatter; where the episodes are too near to
each other for that, it is null. Its error (k = 2) has the scatter of the episodes among each other (Student's t), half
the step from the level before to the level after, what a wider stretch may add, and the uncertainty of the meter. The
step is the mean one. Bursts are found where the level is high, so its wander does not average out: of bursts it is the
root mean square of the steps beyond their noise. Cells that belong to another episode, or in which a rail is not known,
do not count. Fewer than FEWEST episodes, or an energy within its error, give null."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ssdrig.base.uncertain import t95
from ssdrig.base.words import digits
from ssdrig.meter import rails, reduced
from ssdrig.meter.reduced import Asked, Reduced
from ssdrig.plan.shows import listed
from ssdrig.reading.power import end_ns
from ssdrig.reading.row import WHOLE, Row
from ssdrig.reading.rundata import SECOND_NS, RunData
from ssdrig.views.terms import with_error

SMART, IO, BURST = "smart", "io", "burst"
FEWEST = 3
MOST_LAID = 100  # of one kind, evenly chosen
MOST_POINTS = 60  # of a curve
STEPS_ms = (1, 2, 5, 10)  # of the cells in which bursts are looked for, of drive time
MOST_CELLS = 12_000  # at most: the end of a long load
ABOVE = 1.2  # of the usual cell: a burst draws more
BEYOND = 6.0  # deviations of the highest samples of a cell: noise does not reach it
OF_LOAD, OF_REST = 0.5, 0.2  # quantile that is the usual cell: of a load, and of a drive that mostly rests
MOST_BUSY = {OF_LOAD: 0.5, OF_REST: 0.9}  # of the cells in bursts: above that too little is between them
JOINED, SAME_COUNT = (2, 4, 8, 16, 32), 0.95  # cells below the threshold that do not end a burst
LEVEL_CELLS = (4, 40)  # before and after an episode, at least and at most
REACH_CELLS, REACH_LONGEST = (80, 200), 4  # before and after a burst: a multiple of the longest
MARGINS = (0, 1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 135)  # cells before and after the hot ones
NO_GAIN = 0.003  # of an energy: where episodes are alike, less than their scatter is still nothing
READING_CELLS = 30  # of a SMART reading
TAIL_s = 0.05  # after a SMART reading, at least
LONGER = 3.0  # than the median: such a reading was disturbed
CLOCK_SHARE = 0.25  # of the time of a reading: times that are less well known blur it


class Cut(NamedTuple):
    """Episodes in cells: `watts` float64 (n, cells), not-a-number where a cell does not count; the episode itself is
    from cell `first` to before cell `last` (n,); the begin is at the edge of cell `zero`. `seen`: how many there are;
    n are laid on each other."""

    watts: np.ndarray
    first: np.ndarray
    last: np.ndarray
    zero: int
    cell_s: float
    seen: int


def figures_of(kind: str, cut: Cut, percent: float | None) -> dict:
    """The report of the episodes of one kind (schemas/json). `percent`: expanded uncertainty of the power."""
    ends = _ends(cut)
    known = np.isfinite(ends[0].energy_J) if ends else np.zeros(0, bool)
    n = int(known.sum())
    out: dict[str, Any] = {"of": kind, "count": cut.seen, "laid": n}
    out |= dict.fromkeys(("level_W", "lasts_s", "energy_J", "energy_error_J", "begins_s", "step_s"))
    out |= {"mean_W": [], "sd_W": [], "why": None}
    if not n:
        return out | {"why": "no samples of it with its level before and after" if cut.seen else "none was seen"}
    lasts_s = (cut.last - cut.first) * cut.cell_s
    out |= {"level_W": float(ends[0].level_W[known].mean()), "lasts_s": float(lasts_s[known].mean())}
    out |= _curve(cut, known, 0)
    if n < FEWEST:
        return out | {"why": f"{n} of them; an energy and its error need {FEWEST}"}
    whole = _whole(ends)
    if whole is None:
        return out | {"why": "too little is between them to see where they begin and end"}
    narrow, end, rest_J = whole
    known = np.isfinite(end.energy_J)
    n = int(known.sum())
    lasts_s = float((lasts_s[known] + 2 * narrow.margin * cut.cell_s).mean())
    out |= {"laid": n, "level_W": float(end.level_W[known].mean()), "lasts_s": lasts_s}
    out |= _curve(cut, known, end.margin)
    energy_J = float(end.energy_J[known].mean())
    scatter_J = t95(n - 1) * float(end.energy_J[known].std(ddof=1)) / math.sqrt(n)
    taken_s = lasts_s + 2 * (end.margin - narrow.margin) * cut.cell_s
    step_W = end.step_W[known]
    wander_W = _wander_W(step_W, end.noise_W[known]) if kind == BURST else abs(float(step_W.mean()))
    step_J = wander_W / 2 * taken_s
    if percent is None:
        return out | {"why": "the uncertainty of the power is not known"}
    error_J = math.hypot(scatter_J, step_J, rest_J, percent / 100 * abs(energy_J))
    if energy_J <= error_J:
        return out | {"why": f"{with_error(1e3 * energy_J, 1e3 * error_J, 3)} mJ: within its uncertainty"}
    return out | {"energy_J": energy_J, "energy_error_J": error_J}


def _wander_W(step_W: np.ndarray, noise_W: np.ndarray) -> float:
    """Root mean square of the steps of the level from before to after an episode, without their noise; at least the
    mean step. The level in an episode is unknown, and bursts are found where it is high: it does not average out."""
    excess = float((step_W**2).mean() - (noise_W**2).mean())
    return max(abs(float(step_W.mean())), math.sqrt(max(excess, 0.0)))


class End(NamedTuple):
    """The episodes with `margin` cells more on each side, float64 (n,), not-a-number where one is not known: energy
    above the level, the level, the level after less that before, and the standard deviation that noise gives to the
    latter."""

    margin: int
    energy_J: np.ndarray
    level_W: np.ndarray
    step_W: np.ndarray
    noise_W: np.ndarray


def _ends(cut: Cut) -> list[End]:
    """By margin, from none to the widest that leaves cells for a level."""
    column = np.arange(cut.watts.shape[1])
    out: list[End] = []
    for margin in MARGINS:
        first, last = cut.first[:, None] - margin, cut.last[:, None] + margin
        if len(cut.watts) and (first.min() < LEVEL_CELLS[0] or last.max() > len(column) - LEVEL_CELLS[0]):
            break
        sides = column < first - 1, column > last
        before, after = (_mean(cut.watts, side) for side in sides)
        inside = np.where((column >= first) & (column < last), cut.watts, 0.0)
        level_W, cells = (before + after) / 2, cut.last - cut.first + 2 * margin
        energy_J = (inside.sum(axis=1) - level_W * cells) * cut.cell_s
        out.append(End(margin, energy_J, level_W, after - before, _noise_W(cut.watts, sides)))
    return out


def _whole(ends: Sequence[End]) -> tuple[End, End, float] | None:
    """The first margin beyond which the next two wider ones add no energy beyond the scatter, the first of them, and
    what the second may add (J). None where all add some."""
    gains = [_gain(end.energy_J, wider.energy_J) for end, wider in itertools.pairwise(ends)]
    for n, ((gain_J, noise_J), (next_J, next_noise_J)) in enumerate(itertools.pairwise(gains)):
        least_J = NO_GAIN * abs(float(np.nanmean(ends[n + 1].energy_J))) if math.isfinite(next_J) else math.nan
        if abs(gain_J) <= max(noise_J, least_J) and abs(next_J) <= max(next_noise_J, least_J):
            return ends[n], ends[n + 1], abs(next_J) + next_noise_J
    return None


def _gain(narrow_J: np.ndarray, wide_J: np.ndarray) -> tuple[float, float]:
    """Mean of what a wider stretch adds (J), and the half width of its 95 % interval; not-a-number of too few."""
    more_J = wide_J - narrow_J
    more_J = more_J[np.isfinite(more_J)]
    n = len(more_J)
    if n < FEWEST:
        return math.nan, math.nan
    return float(more_J.mean()), t95(n - 1) * float(more_J.std(ddof=1)) / math.sqrt(n)


def _mean(watts: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Mean of the known cells of each row; not-a-number of fewer than two."""
    good = where & np.isfinite(watts)
    count = good.sum(axis=1)
    return np.where(count > 1, np.where(good, watts, 0.0).sum(axis=1) / np.maximum(count, 1), np.nan)


def _noise_W(watts: np.ndarray, sides: Sequence[np.ndarray]) -> np.ndarray:
    """Standard deviation that the noise from cell to cell gives to the difference of two sides' means, of each row."""
    variance = np.zeros(len(watts))
    for side in sides:
        cells = np.where(side, watts, np.nan)
        between = np.diff(cells, axis=1)
        known, count = np.isfinite(between), np.isfinite(cells).sum(axis=1)
        squares = np.where(known, between, 0.0) ** 2
        variance += squares.sum(axis=1) / 2 / np.maximum(known.sum(axis=1), 1) / np.maximum(count, 1)
    return np.sqrt(variance)


def _curve(cut: Cut, known: np.ndarray, margin: int) -> dict:
    """Mean and standard deviation of the episodes in at most MOST_POINTS steps, with their level on both sides; None
    where fewer than two are known."""
    longest = int((cut.last - cut.first)[known].max())
    around = margin + min(max(LEVEL_CELLS[0], longest), LEVEL_CELLS[1]) + 2
    begin = max(0, int(cut.first[known].min()) - around)
    watts, zero = cut.watts[known, begin : int(cut.last[known].max()) + around], cut.zero - begin
    size = -(-watts.shape[1] // MOST_POINTS)
    skipped = zero % size  # so that a step begins where the episodes begin
    wide = (watts.shape[1] - skipped) // size * size
    steps = watts[:, skipped : skipped + wide].reshape(len(watts), wide // size, size).mean(axis=2)
    good = np.isfinite(steps)
    count = good.sum(axis=0)
    mean = np.where(good, steps, 0.0).sum(axis=0) / np.maximum(count, 1)
    sd = np.sqrt(np.where(good, (steps - mean) ** 2, 0.0).sum(axis=0) / np.maximum(count - 1, 1))
    return {
        "begins_s": (skipped - zero) * cut.cell_s,
        "step_s": size * cut.cell_s,
        "mean_W": [round(float(v), 5) if c else None for v, c in zip(mean, count, strict=True)],
        "sd_W": [round(float(v), 5) if c > 1 else None for v, c in zip(sd, count, strict=True)],
    }


# ---- bursts, found in the cells of a step


def bursts(
    mean_W: np.ndarray, highest_W: np.ndarray, cell_s: float, apart: np.ndarray, usual_at: float = OF_LOAD
) -> Cut | str:
    """The bursts of a step, or why none can be laid. mean_W, highest_W: of each cell (n,), not-a-number where not
    known; apart: cells (n,) that belong to something else; usual_at: OF_LOAD or OF_REST."""
    known = np.isfinite(mean_W) & np.isfinite(highest_W) & ~apart
    if known.sum() < FEWEST:
        return rails.NO_POWER
    middle, usual = (float(np.quantile(of[known], usual_at)) for of in (mean_W, highest_W))
    # the level of a load wanders, and counts as noise; that of a rest has two values, asleep and awake
    off_W = highest_W[known] - usual if usual_at == OF_LOAD else np.diff(highest_W[known]) / math.sqrt(2)
    deviation = 1.4826 * float(np.median(np.abs(off_W)))  # of a normal distribution, from its median
    hot = known & (highest_W > max(ABOVE * middle, usual + BEYOND * deviation))
    if hot.sum() > MOST_BUSY[usual_at] * known.sum():
        return "most of the time is in bursts: too little is between them for a level"
    first, last = _stretches(hot, JOINED[0])
    for joined in JOINED[1:]:  # noise parts a weak burst in pieces: until twice as far joins no more of them
        fewer = _stretches(hot, joined)
        if len(fewer[0]) >= SAME_COUNT * len(first):
            break
        first, last = fewer
    if not len(first):
        return "no sample rises above the noise and 20 % above the usual power"
    inner = (first > 0) & (last < len(hot))  # one that began before the step, or ends after it, is not whole
    first, last = first[inner], last[inner]
    if not len(first):
        return "none is whole"
    chosen = evenly(len(first))
    longest = int((last - first)[chosen].max())
    around = min(max(REACH_CELLS[0], REACH_LONGEST * longest), REACH_CELLS[1])
    masked = np.where(known, mean_W, np.nan)
    rows = []
    for i in chosen:
        low, high = first[i] - around, first[i] + longest + around
        row = np.full(high - low, np.nan)
        inside = slice(max(low, 0), min(high, len(masked)))
        row[inside.start - low : inside.stop - low] = masked[inside]
        for other, sign in ((i - 1, 1), (i + 1, -1)):  # the neighbours and a cell next to them
            if 0 <= other < len(first):
                cut = max(0, last[other] + 1 - low) if sign > 0 else max(0, first[other] - 1 - low)
                row[slice(None, cut) if sign > 0 else slice(cut, None)] = np.nan
        rows.append(row)
    lasts = (last - first)[chosen]
    return Cut(
        np.array(rows), np.full(len(rows), around - 1), around + lasts + 1, around, cell_s, len(first)
    )  # with a cell on each side


def _stretches(hot: np.ndarray, joined: int) -> tuple[np.ndarray, np.ndarray]:
    """First cell of each burst, and the cell after its last."""
    at = np.flatnonzero(hot)
    breaks = np.flatnonzero(np.diff(at) > joined + 1)
    if not len(at):
        return at, at
    return at[np.append(0, breaks + 1)], at[np.append(breaks, len(at) - 1)] + 1


def evenly(n: int) -> np.ndarray:
    """Places of at most MOST_LAID of n."""
    return np.unique(np.linspace(0, n - 1, min(n, MOST_LAID)).round().astype(int)) if n else np.empty(0, int)


# ---- SMART readings, whose times are known


class Readings(NamedTuple):
    """begin_ns, end_ns: int64 (n,), host, of the readings that are laid on each other; of `seen` ones. `edges_ns`:
    int64 (n, cells + 1)."""

    begin_ns: np.ndarray
    lasts_ns: int
    cell_ns: int
    seen: int

    @property
    def zero(self) -> int:
        """Cells before the begin: the level, one between it and the reading, and one that is the reading's own, because
        a sample is the mean of a time that begins before it."""
        return READING_CELLS // 2 + 2

    @property
    def edges_ns(self) -> np.ndarray:
        cells = self.zero + READING_CELLS + READING_CELLS // 2 + 1
        return self.begin_ns[:, None] + self.cell_ns * (np.arange(cells + 1) - self.zero)


def readings(events: Sequence[Mapping], from_ns: int, to_ns: int, k: int) -> Readings | None:
    """The SMART readings within a step (host times) that can be laid on each other; None without one."""
    spans, begun = [], {}
    for event in events:
        if event["kind"] == "smart.start":
            begun[event.get("n")] = event["t_ns"]
        elif event["kind"] == "smart.end" and (begin_ns := begun.pop(event.get("n"), None)) is not None:
            spans.append((begin_ns, event["t_ns"]))
    inside = np.array([(a, b) for a, b in spans if from_ns <= a and b <= to_ns], np.int64).reshape(-1, 2)
    if not len(inside):
        return None
    lasts = inside[:, 1] - inside[:, 0]
    usual = inside[lasts <= LONGER * np.median(lasts)]
    longest_ns = int((usual[:, 1] - usual[:, 0]).max())
    lasts_ns = longest_ns + max(round(TAIL_s * SECOND_NS * k), longest_ns)
    cell_ns = -(-lasts_ns // READING_CELLS)
    one = Readings(usual[:, 0], lasts_ns, cell_ns, len(inside))
    edges = one.edges_ns
    clear = (edges[:, 0] >= from_ns) & (edges[:, -1] <= to_ns)
    others = np.searchsorted(np.sort(inside[:, 0]), edges[:, -1]) - np.searchsorted(np.sort(inside[:, 1]), edges[:, 0])
    at = np.flatnonzero(clear & (others == 1))
    return one._replace(begin_ns=one.begin_ns[at[evenly(len(at))]])


class Asker(NamedTuple):
    """The episodes of one row: the edges that they need, and where their figures go."""

    row: Row
    grid_ns: np.ndarray  # int64 (cells + 1,): edges of the cells in which bursts are looked for
    cell_s: float
    smart: Readings | None

    @property
    def timed(self) -> Asked:
        """Times for which no error is needed."""
        return Asked.of([])

    @property
    def edges_ns(self) -> np.ndarray:
        """Host times between which the energy is needed."""
        return np.append(self.grid_ns, np.empty(0, np.int64) if self.smart is None else self.smart.edges_ns.ravel())

    def put(self, base: RunData, powers: list[Reduced]) -> None:
        """Puts the figures into `episodes` of the row."""
        whole = self.row.windows.get(WHOLE) or {}
        percent, out = whole.get("power_uncertainty_percent"), []
        if self.smart is not None:
            out.append(self._of_smart(powers, percent, whole.get("clock_error_us")))
        kind = IO if "every" in self.row.act.keys else BURST
        bursts_of = self._bursts(powers) if powers else rails.NO_POWER
        if isinstance(bursts_of, str):
            out.append({**figures_of(kind, _NONE, percent), "why": bursts_of})
        else:
            out.append(figures_of(kind, bursts_of, percent))
        self.row.episodes = out

    def _of_smart(self, powers: list[Reduced], percent: float | None, clock_us: float | None) -> dict:
        of, k = self.smart, self.row.k
        assert of is not None
        edges = of.edges_ns
        cell_s = of.cell_ns / SECOND_NS / k
        none = figures_of(SMART, _NONE._replace(seen=of.seen), percent)
        if not powers:
            return none | {"why": rails.NO_POWER}
        if clock_us is not None and clock_us * 1e3 > CLOCK_SHARE * of.lasts_ns:
            return none | {"why": f"time: the samples' times are known to {digits(clock_us / 1e3, 3)} ms"}
        watts = np.array([rails.steps_J(powers, row) for row in edges]) / (of.cell_ns / SECOND_NS)
        n, zero = len(edges), of.zero
        cut = Cut(
            watts.reshape(n, edges.shape[1] - 1),
            np.full(n, zero - 1),
            np.full(n, zero + READING_CELLS),
            zero,
            cell_s,
            of.seen,
        )
        return figures_of(SMART, cut, percent)

    def _bursts(self, powers: list[Reduced]) -> Cut | str:
        if len(self.grid_ns) < 2:
            return "it is shorter than a second"
        step_s = self.cell_s * self.row.k
        mean_W = rails.steps_J(powers, self.grid_ns) / step_s
        _, highest_W = reduced.extremes_W(powers, self.grid_ns)
        highest_W = np.where(np.isnan(highest_W), mean_W, highest_W)  # no sample ends in a short cell
        apart = np.zeros(len(mean_W), bool)
        if self.smart is not None:
            for begin_ns in self.smart.begin_ns:
                a, b = np.searchsorted(self.grid_ns, (begin_ns, begin_ns + self.smart.lasts_ns))
                apart[max(0, a - 1) : b] = True
        return bursts(mean_W, highest_W, self.cell_s, apart, OF_REST if "every" in self.row.act.keys else OF_LOAD)


_NONE = Cut(np.empty((0, 2)), np.empty(0, int), np.empty(0, int), 0, 0.0, 0)


def read(shows: Sequence[Mapping], rows: Sequence[Row]) -> Iterator[Asker]:
    """The needs of each row of each view `episodes`."""
    paths = {path for show in shows if show["view"] == "episodes" for path in listed(show["of"])}
    for row in rows:
        data = row.data
        if row.act.path not in paths or data is None or data.t0_ns is None or row.state == "not run":
            continue
        yield Asker(row, *grid(data), readings(data.events, data.t0_ns, end_ns(data), row.k))


def grid(data: RunData) -> tuple[np.ndarray, float]:
    """Edges of the cells in which bursts of a step are looked for (int64 host ns), and the length of one (s of drive
    time): of a long step its end."""
    lasts_ms = int(data.load_s * 1000)
    step_ms = next((step for step in STEPS_ms if lasts_ms <= step * MOST_CELLS), STEPS_ms[-1])
    cells = min(MOST_CELLS, lasts_ms // step_ms)
    first = lasts_ms // step_ms - cells
    step_ns = data.k * step_ms * (SECOND_NS // 1000)
    assert data.t0_ns is not None
    return data.t0_ns + step_ns * np.arange(first, first + cells + 1, dtype=np.int64), step_ms / 1000
