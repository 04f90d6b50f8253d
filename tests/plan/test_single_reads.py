"""A single I/O after a pause, and reads beside writes: the loads that are asked for, and pages of runs whose numbers
are known."""

from types import SimpleNamespace

import page_reader
import pytest
from page_reader import value
from synthetic_plan import DRIVE
from synthetic_pts import Run
from two_sided import left_by_fio

from ssdrig.base.errors import UsageError
from ssdrig.base.uncertain import Uncertain
from ssdrig.load import fio, fiojob
from ssdrig.plan import cost, expand, grammar, state
from ssdrig.plan.kinds import load
from ssdrig.reading import table
from ssdrig.reading.row import Table
from ssdrig.run.stage import Stage
from ssdrig.views.context import Context
from ssdrig.views.under import html as under_html
from ssdrig.views.wakes import facts as wakes_facts
from ssdrig.views.wakes import html as wakes_html

FLOOR_W = 0.05


def of(name: str, variant: str | None = None) -> dict:
    plan = grammar.read(*grammar.find(name), variant)
    return {act.label: act for act in expand.expand(plan, DRIVE, frozenset(grammar.CAPABILITIES))}


def job_of(act, dilation: int = 1) -> str:
    return fiojob.job_file(load.job(act, "/dev/null", 7, dilation, "nvme"))


def test_one_read_after_each_pause_is_asked_of_fio():
    acts = of("idle-wake")
    lines = job_of(acts["wake every=300ms"], 10).splitlines()
    assert {"thinktime=3000000us", "thinktime_blocks=1", "iodepth=1", f"io_size={200 * 4096}"} <= set(lines)
    assert not any(line.startswith("write_") for line in lines), "no log by the second of a load with a few I/Os"
    assert fiojob.stall_s(load.job(acts["wake every=100s"], "/dev/null", 7, 1, "nvme")) > 130
    low_s, high_s = cost.of(acts["wake every=300ms"], DRIVE).time_s
    assert 60 <= low_s <= high_s < 66 and cost.of(acts["wake every=100s"], DRIVE).time_s[1] < 602
    text = grammar.find("idle-wake")[0].replace('range   = "$range"\nover', 'range   = "$range"\nqd = 2\nover')
    with pytest.raises(UsageError, match="`every` of one I/O at a time"):
        grammar.read(text, "x")


def test_two_threads_are_asked_of_fio_whose_reads_and_writes_are_told_apart():
    acts = of("read-under-write")
    act = acts["under rate=2kIOPS"]
    writes, reads = job_of(act).split("[under-reads]\n")
    assert {"rw=randwrite", "iodepth=32", "rate_iops=,2000", "group_reporting=1"} <= set(writes.splitlines())
    assert {"rw=randread", "iodepth=4", "group_reporting=1"} <= set(reads.splitlines()) and "rate_iops" not in reads
    assert cost.of(act, DRIVE).written_bytes[1] == 2000 * 4096 * 120 <= cost.of(act, DRIVE).most_bytes
    with pytest.raises(UsageError, match="data in all"):
        state.prove([act])  # it reads, though it is a load that writes
    for wrong in ("read    = 50", 'read = 0\ndetail = "second"', "read = 0\nthreads = 2"):
        text, where = grammar.find("read-under-write")
        head, _, tail = text.rpartition("read    = 0\n")
        with pytest.raises(UsageError, match="read_qd"):
            grammar.read(f"{head}{wrong}\n{tail}", where)


def test_the_line_of_a_load_with_reads_beside_it_counts_its_writes(tmp_path, monkeypatch):
    """The reads were among what it had written, by then more than the dry run had said."""
    sides = {
        name: {"io_bytes": n * 4096, "total_ios": n, "runtime": 1000} for name, n in (("read", 900), ("write", 100))
    }

    def run(job, folder, on_second, should_stop):
        watch = fio._Watch(job, 30, 30, on_second)
        watch.pending = [({"jobs": [{"jobname": "x", "job_runtime": 1000} | sides]}, 5)]
        watch.take()
        return SimpleNamespace(seconds=None)

    monkeypatch.setattr(fio, "run", run)
    monkeypatch.setattr("ssdrig.drive.witness.between", lambda before, after: {})
    seconds: list[dict] = []
    live = SimpleNamespace(begin=lambda pace: None, second=seconds.append)
    stop = SimpleNamespace(check=lambda: None, asked=lambda: False)
    bench = SimpleNamespace(drive={"time_dilation": 1}, witness=lambda since: None)
    stage = Stage(bench, SimpleNamespace(path=tmp_path, event=lambda *_, **__: None), live, stop, None, None, 1)
    acts = of("read-under-write")
    for label in ("under rate=2kIOPS", "precondition"):
        stage.fio(acts[label], load.job(acts[label], "/dev/null", 7, 1, "nvme"), None)
    assert [now["total_bytes"] for now in seconds] == [100 * 4096, 1000 * 4096]


def does(w: Run, label: str, watts: float, lasts_s: float, sides: dict) -> None:
    """Carry out a load of which only fio's documents are left."""
    act = w.acts[label]
    group = [planned for planned in w.acts.values() if planned.repeat == act.repeat]
    folder = act.folder(None, group.index(act) + 1)
    more = {"fio": folder} | ({"point": dict(act.point)} if act.point else {})
    w.event("step.start", step=act.path, **more)
    w.t_ns += 100_000_000
    w._power(watts)
    left_by_fio(w.path / "fio" / folder, w.t_ns, lasts_s, sides)
    w.t_ns += round(lasts_s * 1e9)
    w.event("step.end", step=act.path, ok=True, bytes=0, **more)


def short(name: str) -> str:
    """ "Above the floor mJ" -> "Above"; "Energy of an I/O mJ" -> "Energy"."""
    return name.split(" ")[0]


PUT = {"100ms": (1.2, 3, {80_000: 29, 900_000: 1}), "1s": (0.9, 30, {1_300_000: 30}), "5s": (0.4, 150, {9_000_000: 30})}


def woken(runs) -> Table:
    w = Run(runs, "idle-wake", pauses=["100 ms", "1 s", "5 s"], ios=30)
    w.event("step.start", step="asleep")
    w.t_ns += 4_000_000_000
    w.event("step.end", step="asleep", ok=True)
    written = {"nand_written_bytes": None, "host_written_bytes": None, "nand_why": "not counted"}
    w.event(
        "quiet", step="asleep", reached=False, floor_W=FLOOR_W, lasted_s=4, why="too short", above_J=None, **written
    )
    for every, (watts, lasts_s, held) in PUT.items():
        does(w, f"wake every={every}", watts, lasts_s, {"read": held})
    return table.load(w.end())


def test_every_cell_of_the_wakes_is_the_number_put_in(tmp_path):
    table_ = woken(tmp_path)
    (panel,) = page_reader.panels(wakes_html.wakes(Context([table_], ["run"], table_.plan.shows[0])))
    head, *lines = panel.tables[0]
    assert [line[0] for line in lines] == ["100 ms", "1 s", "5 s"]
    for line, (watts, lasts_s, held) in zip(lines, PUT.values(), strict=True):
        cells = dict(zip(map(short, head), line, strict=True))
        assert value(cells["I/Os"]) == 30 and value(cells["Median"]) == pytest.approx(min(held) / 1000, rel=0.02)
        assert value(cells["Longest"]) == pytest.approx(max(held) / 1000, rel=0.02) and cells["P99"] == "–"
        assert value(cells["Mean"]) == pytest.approx(watts, rel=0.01)
        assert value(cells["Energy"]) == pytest.approx(1000 * watts * lasts_s / 30, rel=0.01)
        assert value(cells["Above"]) == pytest.approx(1000 * (watts - FLOOR_W) * lasts_s / 30, rel=0.01)
    assert [len(plot.marks) for plot in panel.plots] == [6, 3]


def far_apart(runs, sides: dict, watts: list[float], ends: bool = True) -> Table:
    """Reads 5 s apart, with this power in each pause, then one after 10 s, whose step does not end without `ends`."""
    w = Run(runs, "idle-wake", pauses=["5 s", "10 s"], ios=30)
    w.event("step.start", step="asleep")
    w.t_ns += 4_000_000_000
    w.event("step.end", step="asleep", ok=True)
    written = {"nand_written_bytes": None, "host_written_bytes": None, "nand_why": "not counted"}
    floor = {"floor_W": FLOOR_W, "floor_error_W": 0.001, "lasted_s": 4, "why": None, "above_J": None}
    w.event("quiet", step="asleep", reached=True, **floor, **written)
    for every in ("5s", "10s"):
        act = w.acts[f"wake every={every}"]
        folder = act.folder(None, list(w.acts.values()).index(act) + 1)
        w.event("step.start", step=act.path, fio=folder, point=dict(act.point))
        w.t_ns += 100_000_000
        left_by_fio(w.path / "fio" / folder, w.t_ns, 5 * len(watts), sides)
        for mean_W in watts:
            w._power(mean_W)
            w.t_ns += 5_000_000_000
        if every == "5s" or ends:
            w.event("step.end", step=act.path, ok=True, bytes=0, fio=folder, point=dict(act.point))
    return table.load(w.end())


def test_the_error_of_a_mean_latency_is_of_its_reads_not_of_the_seconds_between(tmp_path):
    """11 and 31 ms: 12.7 x 14.1 ms / sqrt(2). fio reports nothing in a pause, so no second is that of a read."""
    row = far_apart(tmp_path, {"read": {11_000_000: 1, 31_000_000: 1}}, [0.4, 0.4]).of("wake")[0]
    whole = row.windows["all"]
    assert whole["lat_mean_us"] == pytest.approx(21_000, rel=0.02)
    assert whole["errors"]["lat_mean_us"] == pytest.approx(127_000, rel=0.03)


def test_the_error_of_the_energy_of_a_wake_has_how_the_wakes_differ(tmp_path):
    alike, apart = (
        wakes_html.above_mJ(run.of("wake")[0], wakes_html.floor(run, "asleep"))
        for run in (
            far_apart(tmp_path / name, {"read": {11_000_000: 6}}, watts)
            for name, watts in (("alike", [0.4] * 6), ("apart", [0.3, 0.5, 0.3, 0.5, 0.3, 0.5]))
        )
    )
    assert alike.value == pytest.approx(1750, rel=0.01) and alike.error < 0.05 * alike.value
    assert apart.value == pytest.approx(1750, rel=0.01) and 0.2 * apart.value < apart.error < apart.value


def test_the_energy_of_wakes_in_a_few_seconds_has_no_error(tmp_path):
    """Pauses of 100 ms cannot be separated, and 3 s do not show how the drive wanders."""
    row = woken(tmp_path).of("wake")[0]
    above = wakes_html.above_mJ(row, Uncertain(FLOOR_W, 0.001))
    assert row.act.keys["every"] < 1 and above.value and above.error is None


@pytest.mark.parametrize("ends", [True, False])
def test_the_longest_pause_is_that_of_the_plan(tmp_path, ends):
    """One that was cut short has no figure, and the pause before it does not stand for it."""
    run = far_apart(tmp_path, {"read": {11_000_000: 6}}, [0.4] * 6, ends)
    made = wakes_facts.wakes(run, run.plan.shows[0], "wake")
    assert [made[key].of.value is not None for key in ("latency", "energy")] == [ends, ends]
    assert ends or "10s" in made["latency"].of.why


BESIDE = {
    "500 IOPS": (1.9, {120_000: 19_800, 2_000_000: 200}, {50_000: 2000}),
    "5 kIOPS": (2.4, {300_000: 7_900, 7_000_000: 100}, {60_000: 18_000}),
}


def read_beside(runs) -> Table:
    w = Run(runs, "read-under-write", rates=["500 IOPS", "5 kIOPS"], time="4 s")
    does(w, "precondition", 2.0, 10, {"write": {3_000_000: 100_000}})
    does(w, "alone", 1.5, 4, {"read": {90_000: 39_990, 400_000: 10}})
    for rate, (watts, reads, writes) in BESIDE.items():
        does(w, f"under rate={rate.replace(' ', '')}", watts, 4, {"read": reads, "write": writes})
    return table.load(w.end())


@pytest.mark.usefixtures("short_loads_have_errors")
def test_every_cell_of_reads_beside_writes_is_the_number_put_in(tmp_path):
    table_ = read_beside(tmp_path)
    show = table_.plan.shows[0]
    html = under_html.under(Context([table_], ["run"], show))
    (panel,) = page_reader.panels(html)
    head, alone, *lines = panel.tables[0]
    assert value(alone[3].partition(" ±")[0]) == pytest.approx(10_000, rel=0.01) and alone[1] == "0"
    assert [value(cell.partition(" ±")[0]) for cell in alone[4:7]] == pytest.approx([90, 90, 90], rel=0.02) and alone[
        7
    ] == "–"
    for line, (rate, (watts, reads, writes)) in zip(lines, BESIDE.items(), strict=True):
        assert line[0] == rate and value(line[1].partition(" ±")[0]) == pytest.approx(
            sum(writes.values()) / 4, rel=0.01
        )
        assert value(line[2].partition(" ±")[0]) == pytest.approx(sum(writes.values()) / 4 / 10_000 * 100, rel=0.01)
        assert value(line[3].partition(" ±")[0]) == pytest.approx(sum(reads.values()) / 4, rel=0.01)
        assert value(line[4].partition(" ±")[0]) == pytest.approx(min(reads) / 1000, rel=0.02)
        assert value(line[8].partition(" ±")[0]) == pytest.approx(max(reads) / 1000, rel=0.02)
        assert value(line[9].partition(" ±")[0]) == pytest.approx(min(writes) / 1000, rel=0.02)
        assert value(line[10]) == pytest.approx(watts, rel=0.01)
    assert "told apart" not in html and len(panel.plots) == 1
