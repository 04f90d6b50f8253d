"""replay: play a trace on the drive."""

from pathlib import Path

from ssdrig.base.errors import LoadError
from ssdrig.drive import witness
from ssdrig.load import one_pass, playedlog, trace_generate, trace_process, traceform
from ssdrig.plan.kinds.replay import asked, how
from ssdrig.run.pace import Pace, polled


def before(act, stage) -> None:
    """The trace is made, or copied, into the run folder, once for all steps that play it."""
    path = _trace(act, stage)
    if path.exists():
        return
    path.parent.mkdir(exist_ok=True)
    stage.progress.show(f"{act.path}: the trace, {act.trace.ios} I/Os")
    if "file" in act.keys:
        header, rows = traceform.read(Path(act.keys["file"]))
        made, words = traceform.windows(rows), lambda: header
    else:
        what = asked(act, stage.bench.drive)
        generator = one_pass if isinstance(what, one_pass.Asked) else trace_generate
        made, words = generator.generate(what), what.words
    facts = traceform.write(path, made, words)
    if facts["sha256"] != act.trace.sha256:
        raise LoadError(f"the trace of {act.path} as it was when the run was prepared", "other rows", "run it again")


def carry_out(act, stage, number: int) -> dict:
    """Play it; done when every I/O has ended."""
    stage.bench.check()
    keys = act.keys
    reads_smart = polled(keys, stage)
    every_s = keys["smart"] if isinstance(keys["smart"], float) else None
    closed = keys["timing"] == "closed"
    stage.live.begin(
        Pace(act.path, act.amount_bytes if closed else None, act.trace.lasts_s or None, reads_smart, (), every_s)
    )
    stage.means.pop(act.label, None)
    folder = stage.book.path / "played" / act.folder(stage.round, number)
    counted = stage.bench.witness(witness.NOW)
    ended = trace_process.run(
        stage.bench.fio_target, _trace(act, stage), how(keys, stage.dilation), folder, stage.second, stage.asked
    )
    if reads_smart and not ended.stopped:
        with stage.stop.second_raises():
            stage.live.poll_smart("edge")
    more = {"round": stage.round} if stage.round else {}
    stage.book.event(
        "witness", step=act.path, label=act.label, **more, **witness.between(counted, stage.bench.witness(witness.NOW))
    )
    if not ended.stopped:
        seconds = playedlog.load(folder)
        stage.book.event("load.first_io", t_ns=int(seconds.t_ns[0]), step=act.path)
        total, host_s = seconds.totals, seconds.totals["runtime_ms"] / 1000
        if total["ios"] and host_s:
            stage.means[act.label] = {
                "iops": stage.dilation * total["ios"] / host_s,
                "MB/s": stage.dilation * total["bytes"] / host_s / 1e6,
                "lat_mean": total["lat_sum_ns"] / total["ios"] / 1000 / stage.dilation,
            }
    stage.check()
    return {"bytes": act.amount_bytes}


def _trace(act, stage) -> Path:
    return stage.book.path / "traces" / f"{act.trace.sha256[:16]}.trace"
