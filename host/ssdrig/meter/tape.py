"""A recording as the content of a rig.bin: what a rig would have sent, with the claim of the recording's clock where a
rig has answered pings, and its maker's stated accuracy where a rig has a chip."""

import json
import re
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from ssdrig.base import columns
from ssdrig.base.columns import AMPERES, VOLTS, WATTS
from ssdrig.base.errors import UsageError
from ssdrig.base.words import digits
from ssdrig.meter import messages, wire
from ssdrig.meter.recordings import Recording
from ssdrig.runs import rigbin

FIRST_US = 1_000_000  # tick of the first sample
HALF_SCALE = 1 << 22  # raw value of the largest reading, of 23 bits and a sign
LONGEST_DT_US = (1 << 16) - 1
GAP_PERIODS = 2.5  # a longer step has lost samples
ANY = 1e9  # a limit holds for any reading
LEAST_V = 1e-3  # below it a current is not watts by volts


class Knot(NamedTuple):
    """What a clock claims: the recording's `own_ns` was at `host_ns` (CLOCK_MONOTONIC), off by at most `bound_ns`."""

    own_ns: int
    host_ns: int
    bound_ns: int


def accuracy(text: str) -> list[dict[str, Any]]:
    """What a manual states, as limits: "0.5% + 2 mA" of the power as a whole; "V: 0.1% + 5 mV, A: 0.5% + 2 mA" of each.
    Of each statement {"of", "percent", "V", "A", "W"}. Raises UsageError."""
    do = "e.g. --accuracy '0.5% + 2 mA', or 'V: 0.1% + 5 mV, A: 0.2% + 1 mA'"
    out = []
    for statement in filter(str.strip, re.split(r"[,;]", text)):
        head, colon, rest = statement.partition(":")
        of = head.strip() if colon else "W"
        limit: dict[str, Any] = {"of": of, "percent": 0.0, "V": 0.0, "A": 0.0, "W": 0.0}
        for part in (rest if colon else statement).replace("±", "").split("+"):
            number = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*(%|ppm|\w{1,2})\s*(?:of reading)?\s*", part)
            value = float(number[1]) if number else 0.0
            unit = number[2] if number else ""
            known = next((q for q, units in (("V", VOLTS), ("A", AMPERES), ("W", WATTS)) if unit in units), None)
            if unit in ("%", "ppm"):
                limit["percent"] += value if unit == "%" else value / 1e4
            elif known:
                limit[known] += value * float({"V": VOLTS, "A": AMPERES, "W": WATTS}[known][unit])
            else:
                raise UsageError("an accuracy of percents and fixed amounts", repr(part.strip()), do)
        if of not in ("V", "A", "W") or (of != "W" and any(limit[q] for q in "VAW" if q != of)):
            raise UsageError("an accuracy of V, A or W in its own unit", repr(statement.strip()), do)
        out.append(limit)
    stated = {term["of"] for term in out}
    if len(stated) < len(out) or not (stated == {"W"} or stated == {"V", "A"}):
        raise UsageError("an accuracy of the power, or of both V and A", repr(text), do)
    return out


def rig_bin(recording: Recording, knots: Sequence[Knot], stated: Sequence[dict] | None) -> bytes:
    """The content of a rig.bin.

    knots: of the clock, at least one, in order.
    stated: of accuracy(); None: it is not known.
    Raises UsageError for samples that are too rare."""
    base_ns = min(int(rail.t_ns[0]) for rail in recording.rails)

    def tick_us(own_ns: Any) -> Any:
        return FIRST_US + (own_ns - base_ns) // 1000

    own, host = (np.array([getattr(knot, name) for knot in knots], np.int64) for name in ("own_ns", "host_ns"))

    def host_ns(own_ns: np.ndarray) -> np.ndarray:
        away = np.interp(
            (own_ns - own[0]).astype(float), (own - own[0]).astype(float), (host - own - (host - own)[0]).astype(float)
        )
        return own_ns + (host - own)[0] + np.rint(away).astype(np.int64)

    facts, frames = [], []
    for number, rail in enumerate(recording.rails):
        period_ns = max(1, round(float(np.median(np.diff(rail.t_ns)))))
        if period_ns > messages.MOST_CONVERSION_NS:
            least = f"at least one sample in {messages.MOST_CONVERSION_NS / 1e9:g} s of {rail.name}"
            raise UsageError(least, f"one in {digits(period_ns / 1e9, 3)} s", "record it faster")
        fact, rows = _frames(number, rail, period_ns, tick_us(rail.t_ns), host_ns(rail.t_ns))
        facts.append({**fact, "accuracy": _limits(stated, rail)})
        frames += rows
    frames.sort(key=lambda row: row[0])
    boot = crc32(json.dumps([recording.source, base_ns]).encode())
    hello = {"protocol": wire.PROTOCOL, "boot": boot, "board": recording.source, "firmware": "", "simulated": False}
    body = json.dumps({**hello, "stamp_ns": 0, "rails": facts}, ensure_ascii=False).encode(errors="replace")
    rows = [(frames[0][0], wire.HELLO, body), *frames]
    out = []
    for seq, (t_ns, kind, body) in enumerate(rows):
        out.append(rigbin.encode(rigbin.FRAME, struct.pack("<BI", kind, seq) + body, int(t_ns)))
        if not seq:
            for knot in knots:
                claim = rigbin.CLAIM_BODY.pack(int(max(0, tick_us(knot.own_ns))), int(knot.bound_ns))
                out.append(rigbin.encode(rigbin.CLAIM, claim, int(knot.host_ns)))
    return b"".join(out)


def _frames(
    number: int, rail: Any, period_ns: int, us: np.ndarray, host_ns: np.ndarray
) -> tuple[dict[str, Any], list[tuple[int, int, bytes]]]:
    """The rail's entry of the hello, and (host ns, kind, body) of each frame."""
    A = np.where(np.abs(rail.V) >= LEAST_V, rail.W / np.where(np.abs(rail.V) >= LEAST_V, rail.V, 1.0), 0.0)
    scales = [max(float(np.abs(values).max()), 1e-9) / HALF_SCALE for values in (rail.V, A)]
    vbus, current = (np.rint(values / scale).astype("<i4") for values, scale in zip((rail.V, A), scales, strict=True))
    n = len(us)
    step = np.diff(us, prepend=us[0] - period_ns // 1000)
    jump = np.where(step * 1000 > GAP_PERIODS * period_ns, np.rint(step * 1000 / period_ns), 1).astype(np.int64)
    jump[0] = 1
    index = np.cumsum(jump) - 1
    breaks = (jump > 1) | (step > LONGEST_DT_US)
    breaks[0] = True
    starts = np.flatnonzero(breaks)
    into = np.arange(n) - np.repeat(starts, np.diff(starts, append=n))
    begins = np.flatnonzero(into % wire.MAX_SAMPLES == 0)
    body = np.zeros((n, 8), np.uint8)
    dt = np.where(np.isin(np.arange(n), begins), 0, np.clip(step, 0, LONGEST_DT_US))
    body[:, :2] = dt.astype("<u2").view(np.uint8).reshape(n, 2)
    body[:, 2:5] = vbus.view(np.uint8).reshape(n, 4)[:, :3]
    body[:, 5:8] = current.view(np.uint8).reshape(n, 4)[:, :3]
    data, rows = body.tobytes(), []
    for a, z in zip(begins.tolist(), [*begins[1:].tolist(), n], strict=True):
        head = struct.pack(wire.SAMPLES_HEAD, number, 1, z - a, 0, int(index[a]), int(us[a]))
        rows.append((int(host_ns[z - 1]), wire.SAMPLES, head + data[8 * a : 8 * z]))
    fact = {
        **{"rail": number, "config": 1, "name": rail.name[:40], "chip": "", "conversion_ns": period_ns},
        **{"vbus_lsb_nV": scales[0] * 1e9, "current_lsb_pA": scales[1] * 1e12, "nominal_mV": None},
    }
    return fact, rows


def _limits(stated: Sequence[dict] | None, rail: Any) -> dict[str, Any]:
    """A statement as a rail's hello has it, see meter.Accuracy. A fixed amount in another unit than the quantity's
    counts at the rail's highest reading."""
    if not stated:
        return {"unknown": "the accuracy of the recording is not stated (import --accuracy)"}
    most_V = float(np.abs(rail.V).max())
    most_A = float(np.abs(rail.W).max()) / max(most_V, LEAST_V)
    out = {}
    for term in stated:
        own = term[term["of"]]
        fixed = term["A"] * most_V + term["V"] * most_A + own if term["of"] == "W" else own
        out[term["of"]] = [[ANY, term["percent"], fixed]]
    return out


def limits_words(stated: Sequence[dict] | None) -> str:
    """An accuracy in words."""
    if not stated:
        return "not stated"

    def one(limit: dict) -> str:
        parts = [f"{limit['percent']:g} %"] + [f"{limit[q]:g} {q}" for q in "VAW" if limit[q]]
        return f"{limit['of']} ±({' + '.join(parts)})"

    return ", ".join(map(one, stated))


def parse_offset(text: str) -> int:
    """UTC in ns of an option such as 2026-11-28T10:00:00Z. Raises UsageError."""
    utc_ns = columns.utc_ns(text)
    if utc_ns is None:
        raise UsageError("a time such as 2026-11-28T10:00:00.5Z", repr(text), "correct it")
    return utc_ns
