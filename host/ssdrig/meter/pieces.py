"""The samples of one rail of a run of any length, a piece at a time, by the formulas of power.py.

The heads of all frames are known beforehand (frames.Places): the clock needs the pings of the whole run, a gap what
is on both its sides. Times and watts are exactly those of power.assemble(); running energies are sums of the same
terms in another order, and differ by the rounding of float64."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ssdrig.base import system
from ssdrig.base.deferred import is_installed
from ssdrig.base.errors import RigError
from ssdrig.meter import calibration, clock, power, wire
from ssdrig.meter.closure import Stretch
from ssdrig.meter.frames import Decoder, Places, decode_samples
from ssdrig.meter.power import Gaps

FRAMES_AT_ONCE = 2000  # whose samples stay in a processor's caches while they are worked on
COMPILED_SAMPLES = 10_000_000  # of a rail from which on compiled code is worth its import


class Piece(NamedTuple):
    """Samples that follow each other, of one boot and configuration. Arrays `with_lead` begin with the last sample
    before the piece; in the first piece with a point of time without energy, as long before the first sample as that
    is before the second."""

    number: int  # of its first sample in the run
    t_us: np.ndarray  # int64
    clock: clock.ClockMap
    late_ns: int  # by how much its stamps may be late
    lit: int  # number of its samples at which the rail had power (power.DARK_V)
    volts_sum_V: float  # of these; of all without any
    at_limit: np.ndarray  # int64: which of its samples stand at the end of the sensor's range
    t_ns: np.ndarray  # int64, with lead
    P: np.ndarray  # float64, with lead
    J: np.ndarray  # float64, with lead: running energy of the run
    raw_J: np.ndarray  # float64, with lead: see power.Power
    gaps: Gaps
    facts: dict  # the rail's entry of the hello that explains them
    vbus: np.ndarray  # int32 raw
    current: np.ndarray  # int32 raw


def clocks_of(decoder: Decoder) -> dict[int, clock.ClockMap]:
    """The clock of each boot that has frames of a rail, and pings or a claim."""
    boots = {boot for rail in decoder.rails() for boot in np.unique(decoder.frames(rail).boot).tolist()}
    clocks = {boot: decoder.boots[boot].clock() for boot in sorted(boots)}
    return {boot: fitted for boot, fitted in clocks.items() if fitted is not None}


class Stream:
    """One rail of a run: the heads of its frames, and the pieces of its samples. `file`: descriptor of rig.bin."""

    def __init__(self, file: int, decoder: Decoder, rail: int):
        places: Places = decoder.frames(rail)
        self._file, self._boots, self.rail = file, decoder.boots, rail
        known = power.explained(places, self._boots, rail)
        self._places = places if known.all() else places.only(known)
        self._layout = power.layout(self._places, self._boots)
        bounds = [*self._layout.starts.tolist(), len(self._places.n)]
        self._segments = list(zip(bounds[:-1], bounds[1:], strict=True))  # frames from and to
        self.samples = int(self._places.n.sum())
        self.counts = {**decoder.counts, "unconverted": int(places.n[~known].sum()), "missed": self._layout.missed}
        self._clocks: dict[int, clock.ClockMap] = {}
        self._bounds_us = [(int(self._samples(a, a + 1)[0][0]), self._last_us(z)) for a, z in self._segments]

    @property
    def facts(self) -> dict | None:
        """The rail's entry of the last hello that named it; None: none did."""
        return power.last_facts(self._boots, self.rail)

    def fit(self, clocks: dict[int, clock.ClockMap]) -> None:
        """Have a clock for each boot that has frames: of `clocks` (see clocks_of) or, without pings, by arrivals."""
        for boot in np.unique(self._places.boot).tolist():
            by_arrivals = None if boot in clocks else clock.fit(*np.array(self._arrivals(boot), np.int64).T)
            self._clocks[boot] = by_arrivals or clocks[boot]

    def error_ns(self, t_ns: np.ndarray) -> np.ndarray:
        """The largest error of the clock at host times (int64); beyond all samples that of the nearest."""
        bounds = [(np.zeros(0, np.int64), np.zeros(0))]
        for (a, _), bounds_us in zip(self._segments, self._bounds_us, strict=True):
            boot = int(self._places.boot[a])
            fitted = self._clocks[boot]
            knots_us = np.round(fitted.tick_us[1:-1]).astype(np.int64) + fitted.base_us
            inner = knots_us[(knots_us > bounds_us[0]) & (knots_us < bounds_us[1])]
            ticks = np.concatenate([bounds_us[:1], inner, bounds_us[1:]]).astype(np.int64)
            bounds.append((fitted.t_ns(ticks), fitted.bound_ns(ticks) + clock.late_ns(self._boots[boot].hello)))
        at_ns, errors = (np.concatenate(of) for of in zip(*bounds))
        if not len(at_ns):
            return np.zeros(len(t_ns))
        at_ns = np.maximum.accumulate(at_ns)
        return np.interp(t_ns - at_ns[0], at_ns - at_ns[0], errors)

    def stretches(self) -> Iterator[Stretch]:
        """Its segments, for closure.brackets."""
        for (a, z), (first_us, last_us) in zip(self._segments, self._bounds_us, strict=True):

            def holds(index: np.ndarray, a: int = a, z: int = z) -> tuple[np.ndarray, np.ndarray]:
                begins, n = self._places.index[a:z], self._places.n[a:z]
                frame = np.searchsorted(begins, index) - 1
                into = np.minimum(index - 1 - begins[frame], n[frame] - 1)
                there = self._layout.first[a + frame] + into
                return np.where(frame >= 0, there, -1), begins[frame] + into

            yield Stretch(int(self._places.boot[a]), first_us, last_us, holds)

    def pieces(self) -> Iterator[Piece]:
        """All samples, in order. Raises RigError where rig.bin has become shorter."""
        # t_ns, P, raw P, J and raw J of the last sample, its board time, facts and boot
        lead: tuple | None = None
        for (first, end), bounds_us in zip(self._segments, self._bounds_us, strict=True):
            facts, fitted = self._facts(first), self._clocks[int(self._places.boot[first])]
            begin_ns, end_ns = fitted.t_ns(bounds_us).tolist()
            spread = int(self._places.index[end - 1] + self._places.n[end - 1] - 1 - self._places.index[first])
            period = np.array([power.period_ns(facts, spread, end_ns - begin_ns)])
            for a in range(first, end, FRAMES_AT_ONCE):
                piece, lead = self._piece(a, min(a + FRAMES_AT_ONCE, end), first, facts, fitted, period, lead)
                yield piece

    def _piece(self, a: int, z: int, first: int, facts: dict, fitted, period: np.ndarray, lead: tuple | None):
        layout, number = self._layout, int(self._layout.first[a])
        n, lead_samples = (
            int(self._places.n[a:z].sum()),
            int(lead is not None),
        )  # what of the arrays is of the piece before
        t_ns, P = np.empty(lead_samples + n, np.int64), np.empty(lead_samples + n)
        compiled = self.samples >= COMPILED_SAMPLES and is_installed("numba")
        read = self._read_compiled if compiled else self._read
        t_us, vbus, current, volts_sum_V = read(a, z, facts, fitted, t_ns[lead_samples:], P[lead_samples:])
        plain = not power.corrected(facts) and not (current < 0).any()
        raw_P = P
        if not plain or (lead and lead[1] != lead[2]):
            raw_P = P.copy() if plain else np.append(P[:lead_samples], power.raw_W(facts, vbus, current))
        if lead:
            t_ns[0], P[0] = lead[:2]
            raw_P[0] = lead[2]
        if (t_ns[1:] < t_ns[:-1]).any():
            np.maximum.accumulate(t_ns, out=t_ns)
        own = slice(*np.searchsorted(layout.broken, (a, z)))
        broken = layout.first[layout.broken[own]] - number + lead_samples
        breaks = broken, layout.lost[own], np.array([layout.first[first] - number + lead_samples]), period
        fill_W, bound_J = np.full(len(broken), np.nan), np.zeros(len(broken))
        boot = self._boots[int(self._places.boot[first])]
        if lead and a == first and lead[7] is boot and len(broken) and broken[0] == lead_samples:
            between = (lead[6], facts), (lead[5], int(t_us[0])), (float(lead[1]), float(P[1]))
            lost_first = int(layout.lost[own][0])
            fill_W[0], bound_J[0] = power.moved(boot, self.rail, *between, lost_first, float(period[0]))
        J, (at, lost, dark_ns, filled_J) = power.running_J(t_ns, P, *breaks, fill_W)
        bound_J = bound_J[np.isin(broken, at)]
        raw_J = J if raw_P is P else power.running_J(t_ns, raw_P, *breaks)[0]
        if lead:
            raw_J = raw_J + (lead[4] - raw_J[0])
            J += lead[3] - J[0]
        else:
            start_ns = 2 * t_ns[0] - t_ns[min(1, n - 1)]
            t_ns, P = np.append(start_ns, t_ns), np.append(np.nan, P)
            J, raw_J, at = np.append(0.0, J), np.append(0.0, raw_J), at + 1
        gaps = Gaps(at - 1 + number, lost, dark_ns, filled_J, t_ns[at - 1], t_ns[at], bound_J)
        at_limit = np.flatnonzero(power.at_limit(facts, vbus, current))
        of_samples = t_ns, P, J, raw_J, gaps, facts, vbus, current
        lit, volts_sum_V = _lit(facts, vbus, current, volts_sum_V)
        late_ns = clock.late_ns(self._boots[int(self._places.boot[first])].hello)
        piece = Piece(number, t_us, fitted, late_ns, lit, volts_sum_V, at_limit, *of_samples)
        return piece, (t_ns[-1], P[-1], raw_P[-1], J[-1], raw_J[-1], int(t_us[-1]), facts, boot)

    def _read(self, a: int, z: int, facts: dict, fitted: clock.ClockMap, t_ns: np.ndarray, P: np.ndarray):
        """Frames a to z - 1: fills t_ns and P; returns t_us, vbus and current (see frames.Frames), and the sum of V."""
        t_us, vbus, current = self._samples(a, z)
        t_ns[:] = fitted.t_ns(t_us)
        V, I = np.empty(len(t_us)), np.empty(len(t_us))  # noqa: E741
        power.convert(facts, vbus, current, V, I)
        np.multiply(V, I, out=P)
        return t_us, vbus, current, float(V.sum())

    def _read_compiled(self, a: int, z: int, facts: dict, fitted: clock.ClockMap, t_ns: np.ndarray, P: np.ndarray):
        """As _read."""
        from ssdrig.meter import readings  # not with this module, see COMPILED_SAMPLES

        data, at = self._bytes(a, z)
        words = np.ndarray(len(data) - 7, "<i8", data, strides=(1,))
        of_frames = at, self._places.n[a:z], self._places.t0_us[a:z]
        of_clock = fitted.tick_us, fitted.offset_ns, fitted.base_us, fitted.base_ns
        of_rail = calibration.scales(facts), power.corrected(facts)
        t_us, vbus, current = np.empty(len(P), np.int64), np.empty(len(P), np.int32), np.empty(len(P), np.int32)
        volts_sum_V = readings.read(words, *of_frames, *of_clock, *of_rail, t_us, t_ns, vbus, current, P)
        return t_us, vbus, current, volts_sum_V

    def _facts(self, frame: int) -> dict:
        return self._boots[self._places.boot[frame]].rails[(self.rail, int(self._places.config[frame]))]

    def _samples(self, a: int, z: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """t_us, vbus and current (see frames.Frames) of frames a to z - 1."""
        data, at = self._bytes(a, z)
        return decode_samples(data, at, self._places.n[a:z], self._places.t0_us[a:z])

    def _bytes(self, a: int, z: int) -> tuple[bytes, np.ndarray]:
        """What of rig.bin has the samples of frames a to z - 1, and where in it those of each begin (int64)."""
        at, n = self._places.at[a:z], self._places.n[a:z]
        begin, end = int(at[0]), int(at[-1] + n[-1] * wire.SAMPLE_BYTES)
        data = system.pread(self._file, end - begin, begin)
        if len(data) < end - begin:
            raise RigError(f"{end} bytes in rig.bin", "it has become shorter while it was read", "report the run again")
        return data, at - begin

    def _last_us(self, z: int) -> int:
        """Board time of the last sample before frame z."""
        return int(self._samples(z - 1, z)[0][-1])

    def _arrivals(self, boot: int) -> list[tuple[int, int, int, int]]:
        """See power.arrivals; of a boot without pings."""
        frames = np.flatnonzero(self._places.boot == boot)
        last_us = []
        for a in range(frames[0], frames[-1] + 1, FRAMES_AT_ONCE):
            z = min(a + FRAMES_AT_ONCE, int(frames[-1]) + 1)
            last_us += self._samples(a, z)[0][np.cumsum(self._places.n[a:z]) - 1].tolist()
        return power.arrivals(last_us, self._places.arrival_ns[frames].tolist())


def _lit(facts: dict, vbus: np.ndarray, current: np.ndarray, volts_sum_V: float) -> tuple[int, float]:
    """Piece.lit and Piece.volts_sum_V, by the sum of all volts."""
    scale_V = calibration.scales(facts)[0]
    if vbus.min() * scale_V >= 2 * power.DARK_V:  # before it is corrected
        return len(vbus), volts_sum_V
    low = np.flatnonzero(vbus * scale_V < 2 * power.DARK_V)
    V, I = np.empty(len(low)), np.empty(len(low))  # noqa: E741
    power.convert(facts, vbus[low], current[low], V, I)
    dark = V < power.DARK_V
    lit = len(vbus) - int(dark.sum())
    return lit, volts_sum_V - float(V[dark].sum()) if lit else volts_sum_V
