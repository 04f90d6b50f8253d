"""What the rig shows of a fall and of the start after it, against the SIMULATED supply's closed forms; how long the
virtual drive's writes stay volatile, against its model."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from selfcheck import Figure, at_least, at_most, in_turn
from selfcheck.powerloss_cuts import RUN, SETTLE_NS, Campaign
from ssdrig.base import soft_start
from ssdrig.meter import power
from ssdrig.powerloss import boot, fall, readback
from ssdrig.powerloss.history import NEVER, WRITE, History
from ssdrig.powerloss.writer import Aim, Writer
from ssdrig.reading import cuts
from ssdrig.switch import profiles
from ssdrig.virtual.board import supply
from ssdrig.virtual.flash import capacitor
from ssdrig.virtual.flash.nand import K_DRAIN_NS
from ssdrig.virtual.flash.presets import PRESETS

BENCH = "powerloss-fall"
T0_ns = 10**12
COUNT_V, ADC_NOISE = 1.611328e-3, 2.0  # of the scope; rms counts
FAST_ns, SLOW_ns = 2000, 100_000  # between two of its samples
BEFORE, AFTER = 1000, 6500  # samples of a picture
DEAD_us, OHM = 50, 2.2  # of the discharge switch
RISE_ms = soft_start.WHOLE_ms[5000]
WATTS, BULKS_uF, LOCKOUTS = (0.4, 1.2, 2.5, 5.0), (100, 270, 470, 1000), (60, 70, 80, 90)
CONVERSION_us = (540, 150, 50)  # shunt, bus, temperature
CURRENT_LSB_A, VBUS_LSB_V = 9.765625e-6, 195.3125e-6
START_ns = 1_000_000_000  # after the return of power, over which starts are compared
BOOTS, CUTS, CONTROLS = 30, 100, 5
SCATTER = 0.005  # of a drive's starts among themselves, in time and so in energy
AGED_TO = 0.6
WINDOW_CUTS, WRITES_NS, SILENT_NS = 200, 10_000_000, 200_000_000


class Source:
    """What draws while the rail is on: watts[k] from t_ns[k] on, at `volts`."""

    def __init__(self, volts: float, t_ns: Sequence[int], watts: Sequence[float]):
        self.volts = volts
        self._t = np.array(t_ns, float)
        self._amps = np.array(watts, float) / volts
        self._total = np.concatenate([[0.0], np.cumsum(np.diff(self._t) * self._amps[:-1])])

    def charge(self, t_ns) -> np.ndarray:
        """A ns from the beginning to each of these times."""
        t = np.asarray(t_ns, float)
        k = np.clip(np.searchsorted(self._t, t, "right") - 1, 0, None)
        return self._total[k] + (t - self._t[k]) * self._amps[k]

    def window(self, t0: int, t1: int, t2: int) -> tuple[float, float]:
        return float(self.charge(t1) - self.charge(t0)) / (t1 - t0), self.volts


class Falls(NamedTuple):
    """Of many cuts: errors of what the pictures showed, and how many did not show a knee."""

    t90_10: np.ndarray  # relative
    holdup: np.ndarray  # of what is allowed, max(5 %, 20 us)
    hidden: int
    energy: np.ndarray  # relative, of the drive's share until the knee


def sampled(rail: supply.Supply, t_ns, gates: list[tuple[int, int]]) -> tuple[np.ndarray, list[tuple[int, bool]]]:
    """(volts at these times, [(ns, powered)] of the drive), the gates driven at [(ns, pins)]."""
    volts = np.empty(len(t_ns))
    changes: list[tuple[int, bool]] = []
    for k, t in enumerate(t_ns):
        step(rail, int(t), gates, changes)
        volts[k] = rail.at(int(t))[1]
    return volts, changes


def step(rail: supply.Supply, until_ns: int, gates: list[tuple[int, int]], changes: list[tuple[int, bool]]) -> None:
    """All that happens up to then."""
    while True:
        due = rail.plan[0][0] if rail.plan else supply.NEVER
        asked = gates[0][0] if gates else supply.NEVER
        if min(due, asked) > until_ns:
            return
        was = rail.powered
        if due <= asked:
            rail.due()
        else:
            rail.gate(*gates.pop(0))
        if rail.powered != was:
            changes.append((min(due, asked), rail.powered))


def falls(shape: str, step_ns: int = FAST_ns, seed: int = 1) -> Falls:
    """All of WATTS, BULKS_uF and LOCKOUTS."""
    chance = np.random.default_rng(seed)
    t90_10, holdup, energy, hidden = [], [], [], 0
    for watts in WATTS:
        for bulk_uF in BULKS_uF:
            for lockout in LOCKOUTS:
                load = supply.Load(RISE_ms, bulk_uF=bulk_uF, uvlo_percent=lockout, gate_us=10 * chance.random())
                rail = supply.Supply(Source(5.0, [0], [watts]), load)
                gates = [(T0_ns, 1)] + ([(T0_ns + DEAD_us * 1000, 3)] if shape == profiles.DEFAULT else [])
                times = T0_ns + np.arange(-BEFORE, AFTER) * step_ns + int(chance.integers(step_ns))
                volts, changes = sampled(rail, times, gates)
                counts = np.clip(np.rint(volts / COUNT_V + ADC_NOISE * chance.standard_normal(len(volts))), 0, 4095)
                picture = {"t0_ns": int(times[0]), "dt_ns": step_ns, "volts": counts * COUNT_V}
                closed = shape == profiles.DEFAULT
                figures = fall.of(picture, T0_ns, shape, None, OHM if closed else None, None if closed else bulk_uF)
                if figures.t90_10_us is not None:
                    true_us = t90_10_us(rail)
                    t90_10.append(abs(figures.t90_10_us - true_us) / true_us)
                down_us = (changes[0][0] - T0_ns) / 1000 if changes else None
                if figures.holdup_us is None:
                    hidden += 1
                elif down_us is None:  # a knee that was none
                    holdup.append(np.inf)
                else:
                    holdup.append(abs(figures.holdup_us - down_us) / max(0.05 * down_us, 20))
                    if figures.drive_W is not None:
                        energy.append(abs(figures.drive_W / watts - 1))
    return Falls(np.array(t90_10), np.array(holdup), hidden, np.array(energy))


def t90_10_us(rail: supply.Supply) -> float:
    """By the closed forms of the phases that it has gone through."""
    times = []
    for level in (0.9 * rail.source.volts, 0.1 * rail.source.volts):
        ends = [phase.t0 for phase in rail.phases[1:]] + [supply.NEVER]
        for phase, end in zip(rail.phases, ends):
            crossed = rail.crossing(phase, level)
            if phase.v0 > level and crossed <= end:
                times.append(crossed)
                break
    return (times[1] - times[0]) / 1000


class _Samples(NamedTuple):
    """What power.integral_J looks at."""

    t_ns: np.ndarray
    energy_J: np.ndarray


class Start(NamedTuple):
    seen_J: float
    true_J: float


def start(chance: np.random.Generator, drive: int, missing_J: float = 0.0, charge_W: float = 1.5) -> Start:
    """Power returns: the rail rises, the drive starts for some 0.3 s with bursts of work, then idles; its capacitors
    take what they miss. A drive, by its number, does the same work at each start, in times that scatter by SCATTER. As
    the rig's sensor sees it, and as it was."""
    own, pace = np.random.default_rng(drive), chance.normal(1, SCATTER)
    on_ns = T0_ns
    times, watts = [0, on_ns], [0.45, 1.4]
    end_ns, t = on_ns + int(300e6 * pace), on_ns + int(8e6 * pace)
    while t < end_ns:
        work = int(own.uniform(1e6, 6e6) * pace)
        times += [t, t + work]
        watts += [1.4 + own.uniform(0.5, 2.0), 1.4]
        t += work + int(own.exponential(8e6) * pace)
    times.append(max(t, end_ns))
    watts.append(0.45)
    times, watts = charged(times, watts, on_ns + 5_000_000, missing_J, charge_W)
    source = Source(5.0, times, watts)
    rail = supply.Supply(source, supply.Load(RISE_ms))
    gates = [(on_ns - 400_000_000, 1), (on_ns - 399_000_000, 3), (on_ns - 50_000, 1), (on_ns, 0)]
    step(rail, on_ns - 300_000_000, gates, [])
    period_ns = int(sum(CONVERSION_us) * 1000 * (1 + chance.uniform(-0.005, 0.005)))
    shunt, bus = (int(us * 1000 * period_ns / (1000 * sum(CONVERSION_us))) for us in CONVERSION_us[:2])
    begin = on_ns - 100_000_000 + int(chance.integers(period_ns))
    t_ns, volts, amps = [], [], []
    while begin < on_ns + START_ns + 10_000_000:
        step(rail, begin + shunt + bus, gates, [])
        i, v = rail.window(begin, begin + shunt, begin + shunt + bus)
        amps.append(round(i / CURRENT_LSB_A + chance.standard_normal()) * CURRENT_LSB_A)
        volts.append(round(v / VBUS_LSB_V + chance.standard_normal()) * VBUS_LSB_V)
        begin += period_ns
        t_ns.append(begin)
    seen = _Samples(np.array(t_ns), np.cumsum(np.array(volts) * amps * period_ns * 1e-9))
    seen_J = power.integral_J(cast(power.Power, seen), [on_ns, on_ns + START_ns])
    return Start(float(np.diff(seen_J)[0]), true_J(rail, source, on_ns))


def charged(times: list[int], watts: list[float], from_ns: int, missing_J: float, charge_W: float):
    """The same draw with a charger on top until missing_J are delivered."""
    until_ns = from_ns + int(missing_J / charge_W * 1e9)
    edges = sorted({*times, from_ns, until_ns})
    base = [watts[np.searchsorted(times, t, "right") - 1] for t in edges]
    return edges, [w + charge_W * (from_ns <= t < until_ns) for t, w in zip(edges, base)]


def true_J(rail: supply.Supply, source: Source, on_ns: int) -> float:
    """From the return of power on: the rise in steps of 1 us, then in closed form."""
    settled = next(phase.t0 for phase in rail.phases if phase.kind == supply.STEADY and phase.t0 > on_ns)
    t = np.arange(on_ns, settled, 1000) + 500
    rise = sum(amps * volts for amps, volts in (rail.at(int(t_us)) for t_us in t)) * 1e-6
    rest = float(source.charge(on_ns + START_ns) - source.charge(settled)) * 1e-9 * source.volts
    return rise + rest


def capacitors(chance: np.random.Generator) -> float:
    """A drive's capacitors age while it is cut again and again: the largest error of their health, points."""
    capacitors_ = capacitor.of(PRESETS["enterprise-plp"])
    assert capacitors_
    bank, _ = capacitors_
    announced = [start(chance, 0).seen_J for _ in range(CONTROLS)]
    health = np.linspace(1, AGED_TO, CUTS)
    missing = [capacitor.missing_J(bank, float(share), bank.least_V) for share in health]
    seen = [start(chance, 0, lack_J, bank.charge_W).seen_J for lack_J in in_turn(missing, BENCH)]
    reported = boot.health(range(1, CUTS + 1), [boot.recharge(energy_J, announced).energy_J for energy_J in seen])
    assert reported
    return float(np.abs(np.array(reported.percent) - 100 * health / health[0]).max())


def volatile() -> tuple[cuts.Window, float]:
    """(what the last writes before cuts after a silence of 0 to 0.2 s show, what the model keeps them for, ms)."""
    ages, lost = [], []
    with tempfile.TemporaryDirectory(prefix="ssdrig-window-") as folder:
        campaign = Campaign("sata-tlc", Path(folder), session_ns=(WRITES_NS, WRITES_NS + 1))
        for number in in_turn(range(WINDOW_CUTS), BENCH):
            age_ms, gone = silent(campaign, Path(folder) / "window.bin", number)
            ages += age_ms
            lost += gone
        model = campaign.device.drive.m
        true_ms = (int(model[K_DRAIN_NS]) + campaign.device.drive.preset.t_PROG_ns) / 1e6
        campaign.close()
    return cuts.cut_window(ages, lost), true_ms


def silent(campaign: Campaign, path: Path, number: int) -> tuple[list[float], list[bool]]:
    """One cut of a drive whose host was silent for a time: age and fate of its last acknowledged write."""
    transport, chance = campaign.transport, np.random.default_rng([5, number])
    path.unlink(missing_ok=True)
    book = History(path, campaign.next_seq)
    writer = Writer(
        transport, book, campaign.layout, campaign.promise, RUN, number + 1, 5, campaign.known.content, {"random": 100}
    )
    quiet_ns = transport.now_ns() + int(chance.integers(WRITES_NS // 2, WRITES_NS))
    cut_ns = transport.cut_at_ns = quiet_ns + int(SILENT_NS * (number + chance.random()) / WINDOW_CUTS)
    writer.write(cut_ns + SETTLE_NS, Aim(0, quiet_ns, 0, NEVER // 2))
    writer.settle(SETTLE_NS)
    transport.power_on(max(transport.t_ns, cut_ns) + 500_000_000)
    writer.settle(SETTLE_NS)
    campaign.next_seq = book.next_seq
    rows = book.written()
    book.close()
    acked = rows[(rows["kind"] == WRITE) & (rows["status"] == 0) & (rows["done_ns"] < cut_ns)]
    if not len(acked):
        return [], []
    last = acked[acked["done_ns"].argmax()]
    first = np.array([last["lba"]], np.int64)
    seen, *_ = readback.seen_in(transport, campaign.layout, RUN, first, np.ones(1, np.int64))
    return [(cut_ns - int(last["done_ns"])) / 1e6], [bool(seen[0] != last["seq"])]


def shown() -> list[Figure]:
    chance = np.random.default_rng(3)
    figures = []
    for shape, slowest_ns in in_turn(((profiles.DEFAULT, FAST_ns), ("float", SLOW_ns)), BENCH):
        seen = falls(shape)
        t90_10 = (seen if slowest_ns == FAST_ns else falls(shape, slowest_ns)).t90_10
        what = f"of {len(WATTS) * len(BULKS_uF) * len(LOCKOUTS)} falls by {shape}"
        figures += [
            at_most(f"t90-10 {what}, largest error", 100 * t90_10.max(initial=0), "%", 5),
            at_least(f"t90-10 {what}, seen", len(t90_10), "falls", 60),
            at_most(f"hold-up {what}, largest error", seen.holdup.max(initial=0), "of 5 % or 20 us", 1),
            at_least(f"knees that show {what}", len(seen.holdup), "falls", 40),
            Figure(
                f"the drive's power {what}, largest error",
                100 * seen.energy.max(initial=0),
                "%",
                "for comparison",
                True,
            ),
        ]
    starts = [start(chance, drive, 0.3 * drive / BOOTS) for drive in in_turn(range(BOOTS), BENCH)]
    error = max(abs(begin.seen_J / begin.true_J - 1) for begin in starts)
    lost, true_ms = volatile()
    return [
        *figures,
        at_most(f"energy of {BOOTS} starts, largest error", 100 * error, "%", 0.5),
        at_most(
            f"health of capacitors, 100 to {100 * AGED_TO:.0f} % in {CUTS} cuts, starts scatter {100 * SCATTER:g} %",
            capacitors(chance),
            "points",
            3,
        ),
        at_most(
            f"volatile window of {lost.writes} cuts, off the model's {true_ms:.0f} ms",
            np.inf if lost.window_ms is None else abs(lost.window_ms - true_ms),
            "ms",
            10,
        ),
    ]


BENCHES = {BENCH: ("falls, starts, capacitors and the volatile window against the SIMULATED supply and drive", shown)}
