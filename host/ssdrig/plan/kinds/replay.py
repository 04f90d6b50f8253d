"""replay: play a trace on the drive at the trace's own times, or as fast as it can."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ssdrig.base.errors import UsageError
from ssdrig.base.words import exact_size
from ssdrig.load.trace_published import BENCHES, ONE_PASS
from ssdrig.plan.kinds.keys import RANGE, SMART, Key

KEYS = {
    "bench": Key("word", words=(*BENCHES, ONE_PASS)),
    "file": Key("file"),
    "seed": Key("index"),
    "ios": Key("count"),
    "range": RANGE,
    "idle_cap": Key("pause"),
    "speed": Key("count", 1),
    "timing": Key("word", "recorded", words=("recorded", "closed")),
    "over": Key("over"),
    "resume": Key("word", words=("restart", "plan")),
    "smart": SMART,
}
ENDS = ("bench", "file")  # exactly one of these
NEEDS = {"player"}
SEED = 1


def how(keys: Mapping, dilation: int):
    """As the player takes it."""
    from ssdrig.load.trace_player import How

    cap_s = keys.get("idle_cap")
    cap_ns = None if cap_s is None else round(cap_s * 1e9)
    return How(keys["timing"] == "closed", float(keys["speed"]), cap_ns, dilation)


def asked(act, drive: Mapping):
    """The request to generate a bench: all of its I/Os, or a number of them; or one pass. The player shortens pauses,
    not this. Raises UsageError for one pass on a drive whose raw NAND is unknown."""
    if act.keys["bench"] == ONE_PASS:
        from ssdrig.load import one_pass

        if not drive.get("raw_nand_bytes"):
            do = "give --raw-nand, or leave the step out"
            raise UsageError(f"a drive whose raw NAND is known, for {act.path}", "none", do)
        return one_pass.Asked(act.range_bytes, drive["raw_nand_bytes"], act.keys.get("seed", SEED))
    from ssdrig.load.trace_generate import Asked

    bench, keys = BENCHES[act.keys["bench"]], act.keys
    scale = keys.get("ios", bench.ios) / bench.ios
    block_bytes = 4096 if (drive.get("logical_block_bytes") or 512) > 512 else 512
    return Asked(keys["bench"], keys.get("seed", SEED), scale, act.range_bytes, None, block_bytes)


def measured(act, drive: Mapping, exact: bool = True):
    """The act with the totals of its trace, from its rows (`exact`) or, for a bench, as published; unchanged if it is
    not a replay. Raises UsageError if the trace cannot be played on the drive."""
    if act.do != "replay" or act.not_run:
        return act
    from ssdrig.load import trace_facts

    plays = how(act.keys, drive["time_dilation"])
    if "file" in act.keys:
        trace = trace_facts.of_file(Path(act.keys["file"]), plays)
    elif act.keys["bench"] == ONE_PASS:
        trace = trace_facts.of_one_pass(asked(act, drive), plays)
    else:
        trace = (trace_facts.of_bench if exact else trace_facts.guessed)(asked(act, drive), plays)
    if trace.reach_bytes > act.range_bytes:
        raise UsageError(
            f"a trace within the {exact_size(act.range_bytes)} of {act.path}",
            f"an I/O that ends at byte {trace.reach_bytes}",
            "allow a larger range, or convert the trace with --range",
        )
    if (drive.get("logical_block_bytes") or 512) > trace.block_bytes:
        do = "make or convert the trace with --block 4096"
        raise UsageError(f"I/Os in blocks of {drive['logical_block_bytes']} bytes for {act.path}", "smaller ones", do)
    return replace(act, amount_bytes=trace.written_bytes, trace=trace)


def covers(act) -> bool:
    """Whether it writes each block of its range."""
    return act.keys.get("bench") == ONE_PASS


def reads(act) -> bool:
    """Whether the trace reads; assumed until the trace is read."""
    return not covers(act) if act.trace is None else act.trace.reads > 0


def writes(act) -> bool:
    return act.trace is None or act.trace.written_bytes > 0


def trims(act) -> bool:
    return act.trace is not None and act.trace.trimmed_bytes > 0
