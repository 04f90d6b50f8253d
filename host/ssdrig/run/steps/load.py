"""load: I/O by fio until its end has come."""

from contextlib import nullcontext

from ssdrig.load import fioclock, fiotext
from ssdrig.plan.kinds.load import begins_s, handles, job, longest_s
from ssdrig.plan.rules import ends, laid
from ssdrig.run.pace import Pace, polled


def carry_out(act, stage, number: int) -> dict:
    """I/O; done when its end has come, which is recorded."""
    stage.bench.check()
    keys, time_s = act.keys, longest_s(act)
    reads_smart = polled(keys, stage)
    edges_s = ends.edges_s(keys.get("windows", {}), time_s)
    if begin_s := begins_s(keys):
        edges_s = tuple(sorted({begin_s, *edges_s}))
    every_s = keys["smart"] if isinstance(keys["smart"], float) else None
    drive = stage.bench.drive
    spare = laid.spare(stage.laid, drive)
    watch = ends.Watch(
        keys.get("until", ()), drive["capacity_bytes"], spare, reads_only=keys["read"] == 100, cold_s=stage.live.cold_s
    )
    pace = Pace(act.path, act.amount_bytes, time_s, reads_smart, edges_s, every_s, watch.words)
    writes = 1 - keys["read"] / 100

    def met(iops, moved_bytes: int) -> bool:
        return bool(watch.rules) and watch.met(iops, int(moved_bytes * writes))

    with stage.bench.placed() if handles(keys) else nullcontext(stage.bench.fio_target) as target:
        made = job(act, target, stage.next_seed(), stage.dilation, stage.bench.drive["interface"])
        result = stage.fio(act, made, pace, number, met)
    lasted_s = result.seconds.totals["runtime_ms"] / 1000 / stage.dilation if result.seconds else 0.0
    if reads_smart and (
        time_s is None or lasted_s < time_s - 1
    ):  # no reading was timed for an end that it did not know
        with stage.stop.second_raises():
            stage.live.poll_smart("edge")
    moved = result.bytes
    if "read_qd" in keys and result.seconds:  # only writes count, as for a load that only writes
        moved = fiotext.totals(fioclock.ends(stage.folder(act, number) / "out.json")[1][-1], "write")["bytes"]
    shown: dict = {"bytes": moved}
    if result.seconds and (spans := keys.get("windows")):
        stage.book.event("windows", step=act.path, windows=ends.spans_s(spans, lasted_s))
    if watch.rules:
        drive_writes = laid.drive_writes(laid.after(stage.laid, act, moved), act.range_bytes)
        verdict = watch.verdict | {"drive_writes": drive_writes}
        stage.book.event("steady", step=act.path, ended_by=watch.ended_by or "time", **verdict)
        shown["ended_by"] = watch.ended_by or "time"
    return shown
