"""Records of rig.bin -> raw tables: the frames of each boot of the board, still in its own integers and ticks.

Vectorised over frames; a stateful `Decoder` so that a run can be read whole or followed piece by piece with equal
results. Repeated frames are dropped and counted. A boot begins where the sequence number or the board time falls back,
or where a hello carries another boot id; it is named by its hello.
"""

from collections import Counter
from dataclasses import dataclass, field, fields
from itertools import repeat

import numpy as np

from ssdrig.meter import calibration, clock, fast, messages, ranges, wire
from ssdrig.runs import rigbin, rigrecords

REPEAT_REACH = 64  # frames among which a repeated one is looked for
LATEST_US = 1 << 52  # ticks from here on, in 142 years, are nonsense
BACK_US = 1_000_000  # board time falling by more than this is a reset
KINDS: tuple[int, ...] = (wire.HELLO, wire.SAMPLES, wire.ENERGY, wire.PONG, wire.LOG, wire.ARMED)
KINDS += (wire.CUT_REPORT, wire.WAVEFORM, wire.REFUSED, wire.TRIP, wire.FAST)
PING_PATIENCE_NS = 60 * 10**9
PONG_PATIENCE_NS = 10**9
NEVER_NS = np.iinfo(np.int64).max  # when a ping was sent that was not
FRAMES_AT_ONCE = 1000  # whose samples stay in a processor's cache while they are decoded


@dataclass
class Boot:
    """One life of the board. rails: (rail, config) -> the hello's facts."""

    boot: int | None = None
    hello: dict | None = None
    hello_frame: int | None = None  # number of the first H frame in the run
    rails: dict = field(default_factory=dict)
    _pings: list[np.ndarray] = field(default_factory=list)
    # of a recording: (tick us, host ns, bound ns) that its clock claims, instead of pings
    claims: list[tuple[int, int, int]] = field(default_factory=list)
    # of each rail: (board time us, vbus, current) of conversions in which the bypass of its low range moved, in order
    moves: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)

    @property
    def pings(self) -> np.ndarray:
        """int64 (pings, 4): t1 ns, tick us, t4 ns, held us."""
        if len(self._pings) != 1:
            self._pings = [np.concatenate([np.empty((0, 4), np.int64), *self._pings])]
        return self._pings[0]

    def clock(self, recent_pings: int | None = None) -> clock.ClockMap | None:
        """Its clock as a recording claims it, or by its pings (only the last `recent_pings`); None without either."""
        if self.claims:
            return clock.claimed(self.claims)
        pings = self.pings if recent_pings is None else self.pings[-recent_pings:]
        return clock.fit(*pings.T) if len(pings) else None

    def add_pings(self, pings: np.ndarray) -> None:
        """More of them."""
        self._pings.append(pings)

    def forget_pings(self, but: int) -> None:
        """Drop all but the latest `but` pings."""
        self._pings = [self.pings[-but:]]


@dataclass
class Heads:
    """The heads of the samples frames of one rail, in order; int64 (frames,)."""

    number: np.ndarray  # of the frame in the run, over all kinds
    boot: np.ndarray  # position in Decoder.boots
    config: np.ndarray
    n: np.ndarray
    missed: np.ndarray
    index: np.ndarray
    arrival_ns: np.ndarray


@dataclass
class Frames(Heads):
    """Frames, and their samples back to back."""

    t_us: np.ndarray  # int64 (samples,) board time at which each conversion was seen to be ready
    vbus: np.ndarray  # (samples,) int32, raw
    current: np.ndarray  # (samples,) int32, raw

    def only(self, chosen: np.ndarray) -> "Frames":
        """The chosen frames (bool, one per frame) and their samples."""
        samples = np.repeat(chosen, self.n)
        of_sample = ("t_us", "vbus", "current")
        return Frames(*(getattr(self, f.name)[samples if f.name in of_sample else chosen] for f in fields(Frames)))


@dataclass
class Places(Heads):
    """Frames, and where their samples lie."""

    t0_us: np.ndarray  # int64 (frames,) board time of the first
    at: np.ndarray  # int64 (frames,) byte of rig.bin at which it begins

    def only(self, chosen) -> "Places":
        """The chosen frames (bool, one per frame, or a slice)."""
        return Places(*(getattr(self, f.name)[chosen] for f in fields(Places)))


ENERGY = np.dtype(
    [
        ("boot", "i8"),
        ("rail", "i8"),
        ("config", "i8"),
        ("index", "i8"),
        ("t_us", "i8"),
        ("energy", "i8"),
        ("charge", "i8"),
        ("die_temp", "i8"),
        ("diag", "i8"),
    ]
)

ANSWERS = np.dtype([(name, "i8") for name in ("token", "boot", "tick", "t4_ns", "held_us")])


class Decoder:
    """Feed it records in file order; then read `boots`, `frames(rail)`, `energies()` and the counts. `kind` Places: it
    does not decode samples, only locates them."""

    def __init__(self, kind: type[Frames] | type[Places] = Frames):
        self._kind = kind
        self.boots: list[Boot] = [Boot()]
        self.counts = {"frames": 0, "frames_lost": 0, "repeated": 0, "damaged": 0, "malformed": 0, "resets": 0}
        self._rails: dict[int, list] = {}
        self._energies: list[np.ndarray] = []
        self._fasts: list[np.ndarray] = [np.empty(0, fast.ROWS)]
        self._sent: dict[int, int] = {}  # token -> t1 of pings without an answer yet
        self._answers = np.empty(0, ANSWERS)  # pongs whose ping has not been read yet
        self._highest_seq, self._latest_us, self._last_seq = -1, -1, -1
        self._tail: list[tuple[int, bytes]] = []  # (seq, payload) of the latest frames

    def feed(self, records: rigrecords.Records) -> None:
        """Take the next records. Never raises on what a board may have sent."""
        self.counts["damaged"] += int(np.count_nonzero(records.kind == rigbin.DAMAGE))
        rows = np.flatnonzero((records.kind == rigbin.PING) & (records.length == 4))
        sent_ns = records.t_ns[rows]
        self._sent.update(zip(_gather(records.data, records.start[rows], 4).tolist(), sent_ns.tolist()))
        rows = np.flatnonzero((records.kind == rigbin.FRAME) & (records.length >= wire.BODY))
        if len(rows):
            self._frames(records, rows)
        claim = rigbin.CLAIM_BODY
        for row in np.flatnonzero((records.kind == rigbin.CLAIM) & (records.length == claim.size)).tolist():
            tick_us, bound_ns = claim.unpack(records.payload(row))
            if 0 <= tick_us < LATEST_US and bound_ns < NEVER_NS:
                self.boots[-1].claims.append((tick_us, int(records.t_ns[row]), bound_ns))
        self._match_pongs(int(records.t_ns[-1]) if len(records) else 0)

    def frames(self, rail: int):
        """All samples frames of one rail so far, of the decoder's kind (empty arrays if it has none)."""
        parts = self._rails.get(rail) or [_EMPTY[self._kind]]
        if len(parts) > 1:
            columns = [np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(self._kind)]
            parts = self._rails[rail] = [self._kind(*columns)]
        return parts[0]

    def keep(self, rail: int, chosen: np.ndarray) -> None:
        """Drop all frames of a rail that are not chosen (bool, one per frame)."""
        self._rails[rail] = [self.frames(rail).only(chosen)]

    def forget(self, pings: int) -> None:
        """Drop all but the latest pings: a follower of a run for hours needs its clock alone."""
        self._rails = {rail: [] for rail in self._rails}
        self._energies, self._fasts = [], self._fasts[:1]
        self._sent = dict(list(self._sent.items())[-pings:])
        for boot in self.boots:
            boot.forget_pings(pings)

    def energies(self) -> np.ndarray:
        """All energy frames so far, dtype ENERGY, in order."""
        return np.concatenate(self._energies) if self._energies else np.empty(0, ENERGY)

    def fasts(self) -> np.ndarray:
        """All frames of the fast current channel so far, dtype fast.ROWS, in order; of a decoder of places."""
        return np.concatenate(self._fasts)

    def rails(self) -> list[int]:
        """Rails that have sent samples."""
        return sorted(self._rails)

    def rail_names(self) -> dict[int, str]:
        """Number -> name of every rail that a hello named; one without a name is identified by its number."""
        names = {
            rail: str(facts.get("name", ""))
            for boot in self.boots
            for (rail, _), facts in boot.rails.items()
            if isinstance(rail, int)
        }
        often = Counter(names.values())
        return {rail: name if name and often[name] == 1 else f"{name or 'rail'} {rail}" for rail, name in names.items()}

    # ---- frames of one feed

    def _frames(self, records: rigrecords.Records, rows: np.ndarray) -> None:
        data, start, length = records.data, records.start[rows], records.length[rows]
        kind, seq = data[start], _gather(data, start + 1, 4)
        tick = np.full(len(rows), -1, np.int64)
        for which, at, least in (
            (wire.SAMPLES, wire.S_T0, wire.S_FIRST),
            (wire.ENERGY, wire.E_T, wire.E_END),
            (wire.PONG, wire.P_T, wire.P_HELD),
        ):
            chosen = (kind == which) & (length >= least)
            tick[chosen] = _gather(data, start[chosen] + at, 8)
        tick[~_sensible(tick)] = -1
        keep, boot = self._boots(records, rows, kind, seq, tick)
        number = self.counts["frames"] + np.arange(len(rows))
        self.counts["frames"] += len(rows)
        known = np.isin(kind, KINDS)
        self.counts["malformed"] += int(np.count_nonzero(keep & ~known))

        chosen = keep & (kind == wire.SAMPLES)
        self._samples(records, start[chosen], length[chosen], boot[chosen], number[chosen], records.t_ns[rows][chosen])
        chosen = keep & (kind == wire.ENERGY)
        self._energy(data, start[chosen], length[chosen], boot[chosen])
        if self._kind is Places and (chosen := keep & (kind == wire.FAST)).any():
            self._fasts.append(fast.rows_of(data, start[chosen], length[chosen], boot[chosen]))
        chosen = np.flatnonzero(keep & (kind == wire.PONG) & (tick >= 0))
        answers = np.zeros(len(chosen), ANSWERS)
        answers["token"] = _gather(data, start[chosen] + wire.P_TOKEN, 4)
        answers["boot"], answers["tick"], answers["t4_ns"] = boot[chosen], tick[chosen], records.t_ns[rows[chosen]]
        whole = length[chosen] >= wire.P_END
        answers["held_us"][whole] = _gather(data, start[chosen[whole]] + wire.P_HELD, 4)
        self._answers = np.concatenate([self._answers, answers])

    def _boots(self, records, rows, kind, seq, tick) -> tuple[np.ndarray, np.ndarray]:
        """Which frames to keep (no repeats), and the boot of each; counts frames lost by sequence number."""
        n = len(rows)
        keep = np.ones(n, bool)
        resets = []
        at = 0
        while at < n:
            highest = np.maximum.accumulate(np.concatenate([[self._highest_seq], seq[at:]]))
            latest = np.maximum.accumulate(np.concatenate([[self._latest_us], tick[at:]]))
            fell = (seq[at:] <= highest[:-1] - REPEAT_REACH) | ((tick[at:] >= 0) & (tick[at:] < latest[:-1] - BACK_US))
            reset = None
            for i in (np.flatnonzero((seq[at:] <= highest[:-1]) | fell) + at).tolist():
                if self._is_repeat(records, rows, seq, i):
                    keep[i] = False
                elif fell[i - at]:
                    reset = i
                    break
            end = n if reset is None else reset
            numbers = seq[at:end][keep[at:end]]
            if len(numbers):
                steps = np.diff(numbers, prepend=self._last_seq if self._last_seq >= 0 else numbers[0] - 1)
                self.counts["frames_lost"] += int((steps - 1).sum())
                self._last_seq = int(numbers[-1])
            self._highest_seq, self._latest_us = int(highest[end - at]), int(latest[end - at])
            if reset is not None:
                resets.append(reset)
                self._highest_seq = self._latest_us = -1
                self._last_seq = -1
                self.counts["frames_lost"] += int(seq[reset])
            at = end
        self.counts["repeated"] += int(np.count_nonzero(~keep))
        self._tail = (
            self._tail + [(int(seq[i]), records.payload(rows[i])) for i in range(max(0, n - REPEAT_REACH), n)]
        )[-REPEAT_REACH:]
        boot = np.empty(n, np.int64)
        done = 0
        turns = sorted({*resets, *np.flatnonzero(keep & (kind == wire.HELLO)).tolist()})
        for i in turns:
            boot[done:i] = len(self.boots) - 1
            done = i
            if i in resets:
                self._new_boot()
            if kind[i] == wire.HELLO:
                self._hello(records.payload(rows[i])[wire.BODY :], self.counts["frames"] + i)
        boot[done:] = len(self.boots) - 1
        return keep, boot

    def _is_repeat(self, records, rows, seq, i) -> bool:
        payload = records.payload(rows[i])
        near = np.flatnonzero(seq[max(0, i - REPEAT_REACH) : i] == seq[i]) + max(0, i - REPEAT_REACH)
        if any(records.payload(rows[j]) == payload for j in near.tolist()):
            return True
        reach = REPEAT_REACH - i
        return reach > 0 and (int(seq[i]), payload) in self._tail[-reach:]

    def _new_boot(self) -> None:
        self.boots.append(Boot())
        self.counts["resets"] += 1

    def _hello(self, body: bytes, number: int) -> None:
        try:
            hello = messages.document(body)
            boot = hello["boot"]
            of_rails = [r for r in hello["rails"] if messages.is_rail(r)]
            rails = ranges.by_config(of_rails)
        except (ValueError, KeyError, TypeError):
            self.counts["malformed"] += 1
            return
        if hello.get("protocol") != wire.PROTOCOL:
            return
        self.counts["malformed"] += sum(
            bool(facts.get("calibration")) and not calibration.of_rail(facts) for facts in of_rails
        )
        if self.boots[-1].boot not in (None, boot):
            self._new_boot()
        now = self.boots[-1]
        now.boot, now.hello = boot, hello
        now.hello_frame = number if now.hello_frame is None else now.hello_frame
        now.rails |= rails

    def _samples(self, records, start, length, boot, number, arrival_ns) -> None:
        data, n = records.data, np.zeros(len(start), np.int64)
        headed = length >= wire.S_FIRST
        n[headed] = data[start[headed] + wire.S_N]
        headed[headed] = _sensible(_gather(data, start[headed] + wire.S_T0, 8))
        whole = headed & (length == wire.S_FIRST + n * wire.SAMPLE_BYTES)
        self.counts["malformed"] += int(np.count_nonzero(~whole))
        whole &= n > 0
        start, boot, number, n, arrival_ns = (a[whole] for a in (start, boot, number, n, arrival_ns))
        rails = data[start + wire.S_RAIL]
        for rail in np.unique(rails).tolist():
            own = np.flatnonzero(rails == rail)
            own = own[self._moves(data, rail, start[own], n[own], boot[own])]
            at, count = start[own], n[own]
            config, t0_us = data[at + wire.S_CONFIG].astype(np.int64), _gather(data, at + wire.S_T0, 8)
            missed, index = _gather(data, at + wire.S_MISSED, 4), _gather(data, at + wire.S_INDEX, 4)
            head, first = (number[own], boot[own], config, count, missed, index, arrival_ns[own]), at + wire.S_FIRST
            frames: Frames | Places
            if self._kind is Places:
                frames = Places(*head, t0_us, first + records.place)
            else:
                frames = Frames(*head, *decode_samples(data, first, count, t0_us))
            self._rails.setdefault(rail, []).append(frames)

    def _moves(self, data, rail: int, at, n, boot) -> np.ndarray:
        """Which frames at data[at] are samples (bool): conversions in which a bypass moves become moves of their
        boot."""
        samples, config = np.ones(len(at), bool), data[at + wire.S_CONFIG]
        for k in np.flatnonzero(config & 3 == ranges.MOVING).tolist():
            of_boot = self.boots[boot[k]]
            if ranges.is_moving(of_boot.rails.get((rail, int(config[k])), {})):
                samples[k] = False
                one = at[k : k + 1]
                columns = decode_samples(data, one + wire.S_FIRST, n[k : k + 1], _gather(data, one + wire.S_T0, 8))
                of_boot.moves.setdefault(rail, []).extend(zip(*(column.tolist() for column in columns)))
        return samples

    def _energy(self, data, start, length, boot) -> None:
        whole = length == wire.E_END
        self.counts["malformed"] += int(np.count_nonzero(~whole))
        at = start[whole]
        rows = np.empty(len(at), ENERGY)
        charge, die_temp = _gather(data, at + wire.E_CHARGE, 5), _gather(data, at + wire.E_TEMP, 2)
        rows["boot"], rows["rail"], rows["config"] = boot[whole], data[at + wire.E_RAIL], data[at + wire.E_CONFIG]
        rows["index"], rows["t_us"] = _gather(data, at + wire.E_INDEX, 4), _gather(data, at + wire.E_T, 8)
        rows["energy"] = _gather(data, at + wire.E_ENERGY, 5)
        rows["charge"], rows["die_temp"] = charge - (charge >> 39 << 40), die_temp - (die_temp >> 15 << 16)
        rows["diag"] = _gather(data, at + wire.E_DIAG, 2)
        if len(rows):
            self._energies.append(rows)

    def _match_pongs(self, now_ns: int) -> None:
        """Pair pongs with their pings; either may have been written first."""
        of = self._answers
        t1_ns = np.fromiter(map(self._sent.get, of["token"].tolist(), repeat(NEVER_NS)), np.int64, len(of))
        # strictly in order, so that it does not matter how the file was cut: the ping's record may come right after
        waits = (t1_ns == NEVER_NS) & (of["t4_ns"] > now_ns - PONG_PATIENCE_NS)
        done = int(waits.argmax()) if waits.any() else len(of)
        self._answers, good = of[done:], np.flatnonzero((t1_ns <= of["t4_ns"])[:done])
        for boot in np.unique(of["boot"][good]).tolist():
            mine = good[of["boot"][good] == boot]
            columns = (t1_ns[mine], of["tick"][mine], of["t4_ns"][mine], of["held_us"][mine])
            self.boots[boot].add_pings(np.stack(columns, axis=1))
        if len(self._sent) > 10_000:
            self._sent = {token: t for token, t in self._sent.items() if now_ns - t < PING_PATIENCE_NS}


def decode_samples(data, at, n, t0_us) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples of frames whose first sample is at data[at]: board time int64 us, vbus and current int32, back to
    back."""
    total = int(n.sum())
    t_us, vbus, current = np.empty(total, np.int64), np.empty(total, np.int32), np.empty(total, np.int32)
    view, done = memoryview(data), 0
    for i in range(0, len(n), FRAMES_AT_ONCE):
        part = slice(i, i + FRAMES_AT_ONCE)
        spans = zip(at[part].tolist(), (at[part] + n[part] * wire.SAMPLE_BYTES).tolist())
        word = np.frombuffer(b"".join([view[a:z] for a, z in spans]), "<i8")
        dt_us, vbus_here, current_here = unpacked(word)
        first = np.cumsum(n[part]) - n[part]
        dt_us[first] = 0
        since_us = np.cumsum(dt_us)
        to = slice(done, done + len(word))
        np.add(since_us, np.repeat(t0_us[part] - since_us[first], n[part]), out=t_us[to])
        vbus[to], current[to] = vbus_here, current_here
        done += len(word)
    return t_us, vbus, current


def unpacked(word: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """dt in us, vbus and current of samples (wire.py), each as one little-endian int64."""
    return word & 0xFFFF, word >> 16 & 0xFFFFFF, word >> 40


def _sensible(tick: np.ndarray) -> np.ndarray:
    """Which ticks (int64, of unsigned 64 bits) a board can have counted to."""
    return (tick >= 0) & (tick < LATEST_US)


def _gather(data: np.ndarray, at: np.ndarray, width: int) -> np.ndarray:
    """Little-endian unsigned integers of `width` bytes at data[at], int64 (of eight bytes: two's complement)."""
    if len(at) and int(at.max()) + 8 <= len(data):  # all together, as the first bytes of words
        words = np.ndarray(len(data) - 7, "<i8", data, strides=(1,))[at]
        return words & ((1 << 8 * width) - 1) if width < 8 else words
    value = np.zeros(len(at), np.int64)
    for i in range(width):
        value |= data[at + i].astype(np.int64) << (8 * i)
    return value


_NONE, _NONE_32 = np.empty(0, np.int64), np.empty(0, np.int32)
_EMPTY = {Frames: Frames(*(_NONE,) * 8, _NONE_32, _NONE_32), Places: Places(*(_NONE,) * 9)}
