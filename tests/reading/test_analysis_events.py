"""Events in words, notes on what the rig's data lack, and SMART polls, of runs made by hand."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import synthetic_run

from ssdrig.base.errors import TO_ITS_END, PowerCut
from ssdrig.drive.wear import wa
from ssdrig.plan.rules.windows import Window
from ssdrig.reading import RunData, event_words, table, why_ended
from ssdrig.reading.events import load_events
from ssdrig.reading.power import _count
from ssdrig.reading.rundata import OwnWork, Rail
from ssdrig.reading.smart import _done, _past, _shares, window_wa

SECOND = 10**9
AT_REST = OwnWork("nand_written_bytes", 0.0, 0.0, 0.0)  # of a drive that does nothing on its own
CUT = PowerCut(TO_ITS_END, "cut from the web in load", "./ssdrig resume goes on with the run")


def run(events, *, k=1, t0_ns=SECOND, **method) -> RunData:
    data = RunData({"method": method, "started": {"t_ns": 0}}, events, "complete", None, k)
    data.t0_ns = t0_ns
    return data


def event(t_s: float, kind: str, **more) -> dict:
    return {"t_ns": round((t_s + 1) * SECOND), "kind": kind, **more}


@pytest.mark.parametrize(
    ("event_", "log", "mark"),
    [
        (event(2, "step.start", step="load"), "load begins", None),
        (event(2, "step.end", step="load", ok=True), "load ends", None),
        (event(2, "step.end", step="load", ok=False, why="dead"), "load FAILS: dead", "load failed"),
        (event(2, "step.end", step="load", ok=False, why="KeyboardInterrupt: "), "load is cut short", "load cut short"),
        (event(2, "step.end", step="load", ok=False, why=str(CUT)), "load is cut short", "load cut short"),
        (event(2, "rig.hello", hello={"boot": 7, "firmware": "1"}), "rig answers (boot 7, firmware 1)", None),
        (event(2, "rig.lost", why="pulled"), "rig lost: pulled", "rig lost"),
        (event(2, "note", text="fan on"), "fan on", "fan on"),
        (event(2, "run.end", state="failed", why="full"), "run ends: failed, full", None),
        (event(2, "run.end", state="complete", why=""), "run ends: complete", None),
        (event(2, "other.kind", of=1, line=3, crc="aa"), "other kind: of 1", None),
        (event(2, "step.start", step="x", point={"read": 65}, round=2), "x read=65 begins, round 2", None),
        (event(2, "not_run", step="x", label="x qd=1", why="no trim"), "x qd=1 is not run: no trim", None),
        (event(2, "round", step="x", round=3, steady=False, tracked={}), "x: round 3 ends, not yet steady", None),
        (event(2, "steady", step="x", passed=True, why=None, rounds=[1]), "x: steady", None),
        (event(2, "laid", written_bytes=64 * 10**9), "written since the purge: 64.0 GB", None),
        (event(2, "quiet", step="x", reached=True, after_s=4.0, floor_W=0.9), "x: quiet after 4.0 s, at 0.9 W", None),
        (event(2, "quiet", step="x", reached=False, why="too short"), "x: not quiet: too short", None),
        (event(2, "telemetry", bytes=None, why="gone"), "the drive's telemetry log is not saved: gone", None),
        (event(2, "set", key="hmb", value="off", before=["on"]), "hmb is set to off", None),
        (event(2, "witness", step="x", drive={}), None, None),
        (event(2, "clock.anchor", utc_ns=1), None, None),
        (event(2, "sums", files={}), None, None),
    ],
)
def test_an_event_in_words(event_, log, mark):
    data = run([event_])
    load_events(data)
    assert data.log == ([(2.0, log)] if log else [])
    assert data.marks == ([(2.0, mark)] if mark else [])
    assert data.notes == [] and data.polls == []
    if mark == "load cut short":  # nothing failed: a signal, or a cut of the power, that someone asked for
        assert event_words.words(event_) == log


SHAPE = {"blocks": [[4096, 100]], "queue_depth": 32, "threads": 1, "engine": "libaio", "compressible": 0, "cpus": "any"}


@pytest.mark.parametrize(
    ("more", "figures"),
    [
        ({"rows": [SHAPE | {"word": "write", "random": False, "iops": 5285.0, "bytes_per_s": 692.7e6}]}, "693 MB/s"),
        ({"rows": [SHAPE | {"word": "read", "random": True, "iops": 131_616.0, "bytes_per_s": 539e6}]}, "131616 IOPS"),
        ({"rows": [], "why": "fio does not start"}, "fio does not start"),
        ({"rows": [{"word": 7}, None], "why": None}, "not known"),
    ],
)
def test_a_ceiling_is_told_by_its_figures(more, figures):
    words = event_words.words(event(2, "ceiling", **more))
    assert figures in words and "queue depth" not in words


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"effect": {"blocks_read": 3, "zero": 3}, "ok": True, "why": None}, "effect blocks read 3, zero 3, ok yes"),
        ({"id": None, "why": "a SIMULATED rig"}, "why a SIMULATED rig"),
        ({"of": [1, None, {"a_b": False}]}, "of 1 – a b no"),
    ],
)
def test_an_event_without_words_of_its_own_is_no_python(more, words):
    assert event_words.words(event(2, "other.kind", step="load", **more)) == f"other kind load: {words}"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("before", "before the load"),
        ("poll", "under load"),
        (None, "under load"),
        ("edge", "at a window's edge"),
        ("after", "after the load"),
        ("settled", "when settled"),
        ("new", "new"),
    ],
)
def test_a_poll_in_words(reason, words):
    data = run([event(2, "smart.start", n=3), event(2.5, "smart.end", n=3, ok=True, reason=reason)])
    load_events(data)
    assert data.polls == [(2.0, 2.5, reason or "poll")] and data.marks == [] and data.notes == []
    assert data.log == [(2.5, f"SMART {words}, 500 ms")]


def test_a_failed_poll_is_marked_and_a_dilated_one_took_host_time():
    data = run([event(2, "smart.start", n=3), event(4, "smart.end", n=3, ok=False, why="no answer")], k=2)
    load_events(data)
    assert data.polls == [(1.0, 2.0, "poll")]
    assert data.log == [(2.0, "SMART under load, 2000 ms: FAILED, no answer")]
    assert data.marks == [(2.0, "SMART poll failed")] and data.notes == ["SMART poll 3 failed: no answer"]


def test_an_end_without_a_start_took_no_time():
    data = run([event(2, "smart.end", n=3, ok=True)])
    load_events(data)
    assert data.polls == [(2.0, 2.0, "poll")]


def test_only_a_second_hello_is_a_reset_and_the_log_is_in_order():
    hello = {"hello": {"boot": 1, "firmware": "1"}}
    data = run([event(5, "rig.hello", **hello), event(2, "rig.hello", **hello), event(3, "other")])
    load_events(data)
    assert data.marks == [(2.0, "rig was reset")]
    assert [t for t, _ in data.log] == [2.0, 3.0, 5.0]


@pytest.mark.parametrize(
    ("state", "events", "why"),
    [
        ("complete", [event(0, "run.end", why="")], None),
        ("failed", [event(0, "run.end", why="full")], "full"),
        ("running", [event(0, "note")], None),
        (
            "died",
            [event(0, "smart.end", step="x", reason="poll")],
            "the process of the run ended without closing it; its last event is smart.end x poll",
        ),
        ("died", [], "the process of the run ended without closing it; its last event is nothing"),
    ],
)
def test_why_a_run_ended(state, events, why):
    assert why_ended(state, events) == why


@pytest.mark.parametrize(
    ("value", "asked"),
    [
        *((1, 1), (0.5, 0.5), (1 << 62, 1 << 62)),
        *((value, None) for value in (0, -1, (1 << 62) + 1, float("inf"), True, "1", None)),
    ],
)
def test_a_number_that_was_asked_for(value, asked):
    assert run([], zoom_s=value).asked("zoom_s") == asked


def test_a_run_of_which_nothing_is_known_has_no_values():
    data, rail = run([]), Rail(0, "5V", np.empty(0), np.empty(0))
    arrays = [value for made in (data, rail) for value in vars(made).values() if isinstance(value, np.ndarray)]
    assert len(arrays) == 38 and all(value.size == 0 for value in arrays)
    assert data.hist.shape == data.lat_hist.shape == (0, 3)


def test_the_axis_of_a_run_without_a_load_begins_with_the_run():
    data = run([], t0_ns=None, k=2)
    data.header["started"]["t_ns"] = 4 * SECOND
    assert data.axis_s(10 * SECOND) == 3.0


# ---- SMART polls and a window


def polled(*polls, load_s=10.0) -> RunData:
    """A load of 100 I/Os of 4096 bytes in each of 10 s; polls of (s, reason, host bytes, NAND bytes)."""
    data = run([])
    data.iops, data.load_s, data.own_work = np.full(10, 100.0), load_s, AT_REST
    keys = ("reason", "host_written_bytes", "nand_written_bytes")
    for t_s, *values in polls:
        t_ns = round((t_s + 1) * SECOND)
        times = {"t_ns": t_ns, "t_start_ns": t_ns, "t_end_ns": t_ns}
        data.snapshots.append(dict(zip(keys, values, strict=True)) | times)
    return data


def shares(data: RunData, window: Window, at_s: list[float], edge_s: int) -> list[float]:
    times = np.array(at_s)
    return (_shares(data, window, edge_s, _done(data, [], times)) + _past(data, window, times)).tolist()


def test_a_poll_is_as_far_from_an_edge_as_the_io_between():
    data, window = polled(), Window("some", 2, 6, {})
    assert shares(data, window, [2.0, 3.0, 0.0, -5.0, 10.0], 2) == [0, 0.25, 0.5, 0.5, 2.0]
    # after the load the time counts too, in parts of the window's
    assert shares(data, window, [12.0], 6) == [1.5]
    assert shares(polled(load_s=11.0), window, [12.0], 6) == [1.25]
    idle = polled()
    idle.iops = np.zeros(10)
    assert shares(idle, window, [2.0, 11.0], 6) == [0.0, 0.25]


@pytest.mark.parametrize(("late_s", "there"), [(1.5, True), (1.6, False)])
def test_fifteen_percent_of_the_io_may_lie_between(late_s, there):
    GB = 10**9
    data = polled((0, "before", 0, 0), (late_s, "poll", GB, 2 * GB), (10, "edge", 100 * GB, 200 * GB))
    data.snapshots = data.snapshots[1:]
    amplification, times, why = window_wa(data, Window("some", 0, 10, {}))
    assert times == [late_s, 10.0]
    if there:
        assert amplification is not None
    else:
        assert amplification is None and "16 %" in why and f"start, at {late_s} s" in why
    late_end = polled((0, "before", 0, 0), (10 - late_s, "edge", 100 * GB, 200 * GB))
    amplification, times, why = window_wa(late_end, Window("some", 0, 10, {}))
    assert times == [0.0, 10 - late_s] and (amplification is not None) == there
    assert there or "its end, at" in why


def test_without_polls_that_count_there_is_none():
    assert window_wa(run([], t0_ns=None), Window("some", 0, 10, {})) == (None, None, "no SMART reading belongs to it")
    only = polled((12, "settled", 0, 0))
    why = "the run has no SMART reading before, under or right after the load"
    assert window_wa(only, Window("some", 0, 10, {})) == (None, None, why)


# ---- the rig's data and the polls when settled


def test_samples_of_each_second_are_counted():
    """Three seconds with samples in the first and the last; the gap behind sample 2 lies before it."""
    edges = np.array([10, 11, 12, 13]) * SECOND
    t_ns = (np.array([9.5, 10.0, 10.9, 12.0, 12.5, 13.0]) * SECOND).astype(np.int64)
    at, none = np.array([0, 2, 3, 3, 5]), np.zeros(5, np.int64)
    gaps = SimpleNamespace(at=at, lost=np.array([1, 2, 4, 8, 16]), ns=none, J=none, from_ns=t_ns[at], to_ns=t_ns[at])
    gaps.bound_J = none
    power = SimpleNamespace(gaps=gaps, facts={}, span_ns=(t_ns[0], t_ns[-1]), mean_V=5.0)
    power.samples_before = lambda edges_ns: np.searchsorted(t_ns, edges_ns)
    power.clipped_before = lambda edges_ns: np.searchsorted(t_ns[[0, 2, 5]], edges_ns)
    power.largest_error_ns = lambda edges_ns: np.array([4.0, 0, 2])
    power.edges = lambda edges_ns: edges_ns
    power.scatters_W = lambda edges_ns: np.array([[3.0, 0, 4], [5.0, 0, 8]])
    power.lows = lambda edges_ns: np.array([[1.0, 0, 0], [0.5, 0, 0]])
    rail = Rail(0, "5V", np.empty(3), np.empty(3))
    _count(rail, power, edges)
    assert (rail.samples.tolist(), rail.samples_lost.tolist()) == ([2, 0, 2], [2, 0, 12])
    assert (rail.clipped.tolist(), rail.clock_error_ns.tolist()) == ([1, 0, 0], [4, 0, 2])
    assert (rail.facts, rail.volts_V, rail.scatters_W.tolist()) == ({}, 5.0, [[3, 0, 4], [5, 0, 8]])
    assert rail.low.tolist() == [[1, 0, 0], [0.5, 0, 0]]
    _count(rail, power, edges + 100 * SECOND)
    assert rail.samples.tolist() == rail.samples_lost.tolist() == [0, 0, 0]


def test_the_polls_when_settled_give_their_own_figure(tmp_path):
    written = synthetic_run.write(tmp_path, [10_000] * 20, power=False)
    last = sorted((written / "smart").glob("*.json"))[-1]
    document = json.loads(last.read_text())
    page = bytearray.fromhex(document["log_c0h"])
    for n, more in ((90, 10**8), (91, 10**8)):
        page[:16] = (int.from_bytes(page[:16], "little") + more).to_bytes(16, "little")
        late = {key: document[key] + (n - 80) * 10**9 for key in ("t_start_ns", "t_end_ns")}
        text = json.dumps({**document, **late, "n": n, "reason": "settled", "log_c0h": page.hex()})
        (written / "smart" / f"{n:03d}.json").write_text(text)
    data, figures, _ = table.in_full(written)
    assert figures["wa_settled"] > data.wa_value[-1] + 0.1
    flagged = [note for note in figures["notes"] if note.startswith("wa_settled: ")]
    settled = wa.settled(
        *(next(s for s in data.snapshots[::-1] if s["reason"] == r) for r in ("before", "after")),
        [s for s in data.snapshots if s["reason"] in ("after", "settled")],
    )
    assert flagged == [f"wa_settled: {wa.FLAGS[flag]}" for flag in settled.flags]
