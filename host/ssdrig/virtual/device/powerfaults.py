"""The faults of the SIMULATED drive at a loss of power, by name: `--drive-faults JSON` switches them on.

    {"lying_flush": 1}                                      with this probability at each cut
    {"map_rollback": {"p": 0.5, "most": 100}, "seed": 3}    with other parameters; another seed of all chances

What each does is in faultmodels.py. What of it can be seen at all is in the truth (cuts.jsonl)."""

import json
from typing import Any, NamedTuple

from ssdrig.base.errors import UsageError

Range = tuple[float, float, float]  # default, least, most; an int if the first is one
AT_REST = ("CORRUPT", "COLLATERAL", "METADATA")  # whatever is next to it
LOST = ("LOST_FUA", "LOST_FLUSHED", "LOST_ACKED")
OLD = (*LOST, "STALE", "COLLATERAL", "METADATA")


class Fault(NamedTuple):
    """`leads_to`: names of powerloss.findings, one of which a judge must report. `parameters` except p."""

    name: str
    p: float
    leads_to: tuple[str, ...]
    words: str
    parameters: dict[str, Range] = {}


FAULTS = (
    Fault(
        "lying_flush",
        1.0,
        ("LOST_FLUSHED",),
        "a FLUSH is answered and nothing is written out: the newest pages are gone except those with FUA",
        {"pages": (512, 1, 16384)},
    ),
    Fault(
        "fua_ignored", 1.0, ("LOST_FUA",), "a write with FUA is answered from the cache, and lost if no FLUSH follows"
    ),
    Fault(
        "map_rollback", 0.5, OLD, "the map forgets its last updates", {"least": (50, 1, 16384), "most": (400, 1, 16384)}
    ),
    Fault(
        "paired_page", 1.0, AT_REST, "a page at rest is corrupt that shares its word line with an interrupted program"
    ),
    Fault(
        "torn_block", 1.0, ("TORN_LB",), "a logical block has the first sectors of one write and the rest of another"
    ),
    Fault("misdirected", 0.3, ("MISDIRECTED", *LOST), "a write has gone to another page", {"pages": (2, 1, 1024)}),
    Fault(
        "trim_resurrected", 1.0, ("TRIM_UNDONE",), "a block that was trimmed, read as such and flushed has data again"
    ),
    Fault(
        "partial_dump",
        1.0,
        ("LOST_ACKED", "PLP_DEGRADED"),
        "the capacitors have this share of their capacity, and cannot save all of the cache",
        {"health": (0.002, 0.0, 1.0)},
    ),
    Fault("bit_flip", 0.3, AT_REST, "one bit of a page at rest has flipped"),
    Fault(
        "dropped_write",
        0.3,
        LOST,
        "one acknowledged write was never executed; `durable` 0: also one that the drive may lose",
        {"durable": (1, 0, 1)},
    ),
    Fault("old_region", 1.0, OLD, "a region shows its content of a session ago", {"pages": (64, 1, 4096)}),
    Fault("ghost", 1.0, ("GHOST",), "a write that was under way at a cut, and then absent, appears at the next one"),
    Fault(
        "aged_unsaid",
        1.0,
        ("PLP_DEGRADED", "LOST_ACKED"),
        "the capacitors lose this share of their capacity at each cut, and log C0h reports 100",
        {"per_cut": (0.01, 0.0, 1.0)},
    ),
    Fault("torn_atomic", 1.0, ("TORN_ATOMIC",), "a write within the atomic limit that was under way is there in part"),
    Fault(
        "unreadable_line",
        1.0,
        ("UNREADABLE", "COLLATERAL", "METADATA", "SPARE_MEDIA"),
        "pages of the word line that was being programmed cannot be read",
        {"pages": (4, 1, 256)},
    ),
    Fault(
        "rmw_neighbours",
        1.0,
        AT_REST,
        "a write of less than a page, on its way to the NAND, takes its neighbours within the page with it",
    ),
    Fault(
        "slow_recovery",
        1.0,
        ("SLOW_READY", "READY_TOO_LATE", "MISSING", "DEAD"),
        "from cut `after` on recovery takes `factor` times as long, and `growth` times longer at each further cut",
        {"after": (12, 0, 1 << 30), "factor": (50.0, 1.0, 1e6), "growth": (1.0, 1.0, 100.0)},
    ),
    Fault("dead", 1.0, ("DEAD", "MISSING"), "after this many cuts the drive stays away", {"after": (136, 0, 1 << 30)}),
    Fault("read_only", 1.0, ("READ_ONLY",), "after this many cuts it refuses writes", {"after": (40, 0, 1 << 30)}),
    Fault(
        "lost_identity",
        1.0,
        ("IDENTITY", "CAPACITY"),
        "after this many cuts it is 8 MiB large and has the name of a boot loader",
        {"after": (40, 0, 1 << 30)},
    ),
    Fault(
        "smart_rollback",
        0.3,
        ("SMART_REGRESS",),
        "all counters are those of an earlier save, this many power-ons ago",
        {"back": (5, 3, 1000)},
    ),
    Fault("uncounted_shutdown", 0.3, ("SMART_MISCOUNT",), "an unsafe shutdown is not counted"),
    Fault(
        "unstable_read",
        0.3,
        ("UNSTABLE",),
        "a page at rest shows its present content and an older one in turn, each time that it is read",
    ),
    Fault(
        "brownout",
        1.0,
        AT_REST,
        "pages at rest are corrupt where the rail only dips: where it is back within this many ms",
        {"within_ms": (50.0, 0.0, 1e6), "pages": (4, 1, 256)},
    ),
)
USE = 'write e.g. {"lying_flush": 1}; the table is in host/docs/use/virtual.md'
BY_NAME = {fault.name: fault for fault in FAULTS}
SEED = "seed"


def parsed(text: str) -> dict:
    """--drive-faults as an object that settings() takes. Raises UsageError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError("the drive's faults as JSON", f"{text[:200]}: {error}", USE) from error
    settings(document)
    return document


def settings(given: Any) -> tuple[dict[str, dict[str, float]], int]:
    """Faults as given -> (name -> all its parameters, p among them; in the order of the table), seed. Raises
    UsageError."""
    if not isinstance(given, dict):
        raise UsageError("the drive's faults as a JSON object", repr(given), USE)
    given = dict(given)
    seed = given.pop(SEED, 1)
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise UsageError("a whole number from 0 on as the faults' seed", repr(seed), "correct it")
    unknown = sorted(given.keys() - BY_NAME.keys())
    if unknown:
        raise UsageError(f"faults among {', '.join(BY_NAME)}", ", ".join(unknown), "correct the name")
    return {fault.name: _parameters(fault, given[fault.name]) for fault in FAULTS if fault.name in given}, seed


def _parameters(fault: Fault, given: Any) -> dict[str, float]:
    given = given if isinstance(given, dict) else {"p": given}
    ranges: dict[str, Range] = {"p": (fault.p, 0.0, 1.0)} | fault.parameters
    unknown = sorted(given.keys() - ranges.keys())
    if unknown:
        expected = f"parameters of {fault.name} among {', '.join(ranges)}"
        raise UsageError(expected, ", ".join(map(str, unknown)), "correct the name")
    out = {}
    for name, (usual, least, most) in ranges.items():
        value, whole = given.get(name, usual), isinstance(usual, int)
        number = isinstance(value, int) or (isinstance(value, float) and not whole)
        if not number or isinstance(value, bool) or not least <= value <= most:
            kind = "a whole number" if whole else "a number"
            raise UsageError(f"{kind} from {least} to {most} as {fault.name}'s {name}", repr(value), "correct it")
        out[name] = value
    if out.get("least", 0) > out.get("most", 0):
        seen = f"{out['least']} and {out['most']}"
        raise UsageError(f"a least of {fault.name} that is not above its most", seen, "swap them")
    return out
