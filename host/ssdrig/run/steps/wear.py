"""wear: write in slices until the drive is worn, with sample blocks that are read back after each."""

from ssdrig.plan.kinds.wear import job, layout, smallest_bytes
from ssdrig.plan.rules import stamps, worn
from ssdrig.plan.rules.worn import Slice
from ssdrig.run.pace import Pace

FIELDS = {  # of a SMART snapshot -> of worn.Slice
    "nand_bytes": "nand_written_bytes",
    "lifetime_bytes": "host_written_bytes",
    "percentage_used": "percentage_used",
    "spare_percent": "available_spare_percent",
    "spare_threshold_percent": "available_spare_threshold_percent",
    "media_errors": "media_errors",
    "temperature_C": "temperature_C",
}


def carry_out(act, stage, number: int) -> dict:
    """Slices until one of worn.stop's reasons. Each: its group of sample blocks is written again, then fio writes, then
    all samples are read back and SMART is read. An event for each."""
    stage.bench.check()
    keys = act.keys
    at = layout(act, stage.seed)
    begun: int = keys.get("done_bytes", 0)  # in earlier parts of the run
    done, slice_bytes, total, least = begun, keys["slice_bytes"], keys["total_bytes"], smallest_bytes(act)
    first = now = _slice(done // slice_bytes, done, _counted(act, stage, done), {})
    stage.book.event("wear.begin", step=act.path, **_fields(first))
    rated_bytes = stage.bench.drive.get("rated_write_bytes")
    why = worn.stop(first, first, total - least + 1, rated_bytes, keys["to"])  # it may be worn so far already
    while why is None:
        n = (done + least - 1) // slice_bytes + 1  # less than a block per thread is not a separate slice
        size = max(least, min(total, n * slice_bytes) - done)
        if why := stage.over_budget(done - begun, size):
            break
        stage.stop.check()
        stage.bench.check()  # a slice may take hours
        _stamp(act, stage, at, n)
        stage.book.event("slice.start", step=act.path, slice=n)
        made = job(act, stage.bench.fio_target, stage.next_seed(), size_bytes=size, number=n)
        result = stage.fio(act, made, _pace(act, done), n, within=f"s{n:04}")
        done += result.bytes
        mismatches = _read_back(stage, at, n)
        now = _slice(n, done, _counted(act, stage, done), mismatches)
        did = {"ios": result.ios, "bytes": result.bytes, "io_s": result.runtime_s / stage.dilation}
        stage.book.event("slice", step=act.path, **_fields(now), verdicts=mismatches, **did)
        why = worn.stop(first, now, total - least + 1, rated_bytes, keys["to"])
    with stage.stop.second_raises():
        stage.bench.flush()
    return {"bytes": done - begun, "stop": why}


def _pace(act, done: int):
    return Pace(act.path, act.keys["total_bytes"], begun_bytes=done)


def _counted(act, stage, done: int) -> dict:
    """What the drive has counted by now."""
    with stage.stop.second_raises():
        stage.live.begin(_pace(act, done))
        return stage.live.poll_smart("poll") or {}


def _slice(number: int, done: int, counted: dict, mismatches: dict):
    counts, read = {name: counted.get(key) for name, key in FIELDS.items()}, sum(mismatches.values())
    return Slice(number, done, **counts, samples=read, bad=read - mismatches.get("good", 0))


def _fields(now) -> dict:
    return {"slice" if key == "number" else key: value for key, value in now._asdict().items()}


def _stamp(act, stage, at, n: int) -> None:
    blocks = dict(stamps.stamped(at, n))
    stage.book.event("stamp", step=act.path, slice=n, bytes=len(blocks) * stamps.BLOCK_BYTES)
    with stage.stop.second_raises():
        stage.bench.write_blocks(blocks)


def _read_back(stage, at, n: int) -> dict[str, int]:
    with stage.stop.second_raises():
        blocks = stage.bench.read_blocks([at.offset(i) for i in range(at.blocks)])
    return stamps.tally(at, n, dict(enumerate(blocks)), stage.bench.reads_as)
