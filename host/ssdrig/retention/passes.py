"""What a pass over a sealed drive shows: the speed of each piece against the baseline, bad blocks, bounds. Pure."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ssdrig.plan.kinds import retention_layout as layouts
from ssdrig.plan.kinds.retention_layout import Layout
from ssdrig.plan.rules import chance
from ssdrig.powerloss import record
from ssdrig.retention.reading import OTHER, Read
from ssdrig.retention.terms import SLOW, UNITS

UBER_CONFIDENCE = 0.6  # JESD218
MANY_ERRORS = 200  # above it the Poisson distribution's own bound, which is never below the exact one
CLASSES = {
    record.UNREADABLE: "UNREADABLE",
    record.CORRUPT: "CORRUPT",
    record.TORN: "CORRUPT",
    record.MISDIRECTED: "MISDIRECTED",
    record.FOREIGN: "FOREIGN",
    record.ZEROS: "ZEROS",
    record.ONES: "ONES",
    OTHER: "OTHER",
}


def piece(read: Read) -> dict:
    """{"piece", "MBps", "p50_us", "p99_us", "max_us", "blocks", "bad"}: MB/s of the time in which the drive was
    waited for."""
    if not len(read.ns):
        return {"piece": read.piece, **dict.fromkeys(UNITS), "blocks": 0, "bad": 0}
    p50, p99 = np.percentile(read.ns, [50, 99], method="higher") / 1000
    return {
        "piece": read.piece,
        "MBps": round(read.bytes / max(1, int(read.ns.sum())) * 1000, 2),
        "p50_us": round(float(p50), 1),
        "p99_us": round(float(p99), 1),
        "max_us": round(float(read.ns.max()) / 1000, 1),
        "blocks": read.blocks,
        "bad": len(read.bad),
    }


def middle(pieces: Sequence[Mapping]) -> dict:
    """The medians over pieces: {"MBps", "p50_us", "p99_us", "max_us", "pieces"}; max_us is the highest of all."""
    known = [piece for piece in pieces if piece["blocks"]]
    if not known:
        return {**dict.fromkeys(UNITS), "pieces": 0}
    medians: dict[str, Any] = {key: round(float(np.median([piece[key] for piece in known])), 2) for key in UNITS}
    return medians | {"max_us": max(piece["max_us"] for piece in known), "pieces": len(known)}


def runs(bad: np.ndarray) -> list[list]:
    """Bad blocks (block, class) as [first block, how many, class name]."""
    out: list[list] = []
    for block, code in bad.tolist():
        name = CLASSES.get(code, "OTHER")
        if out and out[-1][2] == name and out[-1][0] + out[-1][1] == block:
            out[-1][1] += 1
        else:
            out.append([block, 1, name])
    return out


def poisson_most(events: int, confidence: float) -> float:
    """One-sided upper bound of the mean of a Poisson distribution after `events`: the chance of that many or fewer is
    1 - confidence. 0 events at 60 %: 0.916."""
    low, high = float(events), events + 10 * math.sqrt(events) + 20.0
    least = max(0, events - 12 * math.isqrt(events) - 20)  # below it nothing is left of the distribution
    for _ in range(50):
        mean = (low + high) / 2
        logs = [k * math.log(mean) - math.lgamma(k + 1) - mean for k in range(least, events + 1)]
        if math.fsum(math.exp(log) for log in logs) > 1 - confidence:
            low = mean
        else:
            high = mean
    return high


def share_most(bad: int, blocks: int) -> float | None:
    """The chance of a block to be bad is below it, one-sided, 95 % (Clopper-Pearson); None without blocks."""
    if not blocks:
        return None
    if bad <= MANY_ERRORS:
        return chance.upper_bound(bad, blocks)
    return min(1.0, poisson_most(bad, chance.CONFIDENCE) / blocks)


def uber(bad: int, bits: int) -> dict:
    """The rate of uncorrectable bit errors, bad blocks / bits read: {"uber", "most" (60 %, as JESD218 has it),
    "bits"}; None of nothing read."""
    if not bits:
        return {"uber": None, "most": None, "bits": 0}
    return {"uber": bad / bits, "most": poisson_most(bad, UBER_CONFIDENCE) / bits, "bits": bits}


def bytes_for(rate: float) -> float:
    """How many bytes must be read without an error to bound the error rate below it, at 60 %."""
    return poisson_most(0, UBER_CONFIDENCE) / rate / 8


def drives_for(share: float) -> int:
    """How many drives must be tested without a failure to bound their share of failures below it, at 60 %."""
    return math.ceil(math.log(1 - UBER_CONFIDENCE) / math.log1p(-share))


def cannot(bits: int) -> list[str]:
    """What a test of one drive cannot show."""
    read = bits / 8
    most = uber(0, bits)["most"]
    bound = f"; without an error these {_size(read)} bound it below {most:.1e} only" if most else ""
    return [
        f"An error rate (UBER) below 1e-15, which JESD218 asks of client drives, takes {_size(bytes_for(1e-15))} read"
        f" without an error, at 60 % confidence{bound}.",
        f"A share of failing drives of at most 3 % takes {drives_for(0.03)} drives without a failure, at 60 %: this is"
        " one.",
    ]


def _size(size: float) -> str:
    from ssdrig.base.words import size as words

    return words(size)


def judge(layout: Layout, pieces: Sequence[Mapping], bad_runs: Sequence[Sequence], baseline: Mapping) -> dict:
    """One pass: {"blocks", "bad", "classes", "share_most", "uber", "slow", "slowdown", "middle", "pieces",
    "bad_runs"}. slow: pieces whose P99 is SLOW times the baseline's, or more; slowdown: how many times longer the pass
    took than at the speed of the baseline."""
    blocks, bad = sum(piece["blocks"] for piece in pieces), sum(piece["bad"] for piece in pieces)
    classes: dict[str, int] = {}
    for _, n, name in bad_runs:
        classes[name] = classes.get(name, 0) + n
    limit, base_MBps = baseline.get("p99_us"), baseline.get("MBps")
    slow = [piece["piece"] for piece in pieces if limit and piece["blocks"] and piece["p99_us"] >= SLOW * limit]
    took = sum(piece["blocks"] / piece["MBps"] for piece in pieces if piece["blocks"] and piece["MBps"])
    return {
        "blocks": blocks,
        "bad": bad,
        "classes": classes,
        "share_most": share_most(bad, blocks),
        "uber": uber(bad, blocks * layout.block_bytes * 8),
        "slow": slow,
        "slowdown": round(took * base_MBps / blocks, 3) if base_MBps and blocks else None,
        "middle": middle(pieces),
        "kinds": {kind: middle([e for e in pieces if layouts.kind(e["piece"]) == kind]) for kind in layouts.KEPT},
        "pieces": list(pieces),
        "bad_runs": [list(limits) for limits in bad_runs],
    }
