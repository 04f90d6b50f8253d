import fcntl
import json
import math
import os
import statistics

import numpy as np
import pytest
import synthetic_run
from synthetic_run import IOPS, WINDOW, run_of, whole

from ssdrig.base.errors import JournalError
from ssdrig.reading import table
from ssdrig.runs import journal

BLOCK = 4096
SLOW_FILL_S = 40  # as fast as the load: little can have been written between a reading and the load


def test_constant_power(tmp_path):
    data, f = run_of(tmp_path, watts=((-100, 4.0), (0, 2.5)))
    f = whole(f)
    assert f["power_mean_W"] == pytest.approx(2.5, rel=1e-6)
    assert f["energy_J"] == pytest.approx(2.5 * 31, rel=1e-6)
    assert f["energy_uJ_per_io"] == pytest.approx(1e6 * 2.5 * 31 / sum(IOPS), rel=1e-6)
    assert f["energy_J_per_GB"] == pytest.approx(1e9 * 2.5 * 31 / (sum(IOPS) * BLOCK), rel=1e-6)
    assert f["iops_per_W"] == pytest.approx(sum(IOPS) / (2.5 * 31), rel=1e-6)
    assert f["fill_energy_J"] == pytest.approx(4.0 * 2, rel=1e-6)
    assert data.power_mean_W == pytest.approx(np.full(31, 2.5), rel=1e-6)
    assert data.energy_J == pytest.approx(np.full(31, 2.5), rel=1e-6)


def test_stepped_power_lies_in_the_right_seconds(tmp_path):
    data, f = run_of(tmp_path, watts=((-100, 1.0), (0, 4.0), (10, 2.0), (20.5, 3.0)))
    expected = np.array([4.0] * 10 + [2.0] * 10 + [2.5] + [3.0] * 10)
    f = whole(f)
    sample_J = 2.0 * 1e-3  # a step may fall within one conversion
    assert data.energy_J == pytest.approx(expected, abs=sample_J)
    assert f["energy_J"] == pytest.approx(expected.sum(), abs=3 * sample_J)
    assert f["power_max_W"] == 4.0
    assert (data.power_min_W[5], data.power_max_W[5]) == (4.0, 4.0)
    assert (data.power_min_W[20], data.power_max_W[20]) == (2.0, 3.0)


@pytest.mark.parametrize("drift_ppm", [-200.0, 0.0, 80.0])
def test_the_rigs_clock_does_not_change_the_figures(tmp_path, drift_ppm):
    data, f = run_of(tmp_path, watts=((-100, 1.0), (0, 4.0), (15, 2.0)), drift_ppm=drift_ppm)
    f = whole(f)
    assert f["energy_J"] == pytest.approx(15 * 4 + 16 * 2, abs=0.006)
    assert data.power_mean_W[14:16] == pytest.approx([4.0, 2.0], abs=0.003)
    assert 0 < f["clock_error_us"] < 200
    assert f["chip_clock_ppm"] == pytest.approx(synthetic_run.OSCILLATOR_PPM, abs=1)
    assert abs(f["closure_percent"]) < 0.01


def test_samples_are_counted_and_lost_ones_are_said(tmp_path):
    clean = whole(run_of(tmp_path / "clean")[1])
    assert clean["samples"] == pytest.approx(31 * 1005, abs=1) and clean["samples_lost"] == 0
    f = whole(run_of(tmp_path / "lossy", lose_frames=range(300, 303))[1])
    assert 0 < f["samples_lost"] <= 150 and f["samples_lost"] % 50 == 0
    assert f["samples"] == clean["samples"] - f["samples_lost"]
    assert f["energy_J"] == pytest.approx(clean["energy_J"], rel=1e-6)  # constant power: what is filled in is right
    notes = run_of(tmp_path / "again", lose_frames=range(300, 303))[1]["notes"]
    assert any("3 frames from the rig lost" in n for n in notes)
    assert any("lie in gaps" in n for n in notes)


def test_write_amplification(tmp_path):
    data, f = run_of(tmp_path, wa=3.0, fill_s=SLOW_FILL_S)
    for window, host, widest in ((f["windows"]["all"], sum(IOPS), 0.2), (f, sum(WINDOW), 0.2)):
        host *= BLOCK
        assert window["host_written_bytes"] == pytest.approx(host, abs=512_000 + 500 * BLOCK)  # to 0.1 s before the end
        assert window["nand_written_bytes"] == pytest.approx(3 * host, abs=3 * 500 * BLOCK)
        assert abs(window["wa"] - 3.0) <= window["wa_error"] < widest
    assert f["wa_polls_s"] == pytest.approx([12.005, 30.905], abs=0.001)
    assert data.wa_value == pytest.approx(np.full(len(data.wa_value), 3.0), rel=0.01)
    assert len(data.wa_value) == 9 and data.wa_t_s[0] == pytest.approx(5.005)
    assert data.wa_t_s[-1] == pytest.approx(31.7, abs=0.02)
    assert (abs(data.wa_value - 3.0) <= data.wa_error).all()
    assert f["temperature_max_C"] == 42


def test_a_temperature_that_is_not_known_is_explained(tmp_path):
    _, f = run_of(tmp_path, smart_every_s=1000, edges=False)
    steady = f["windows"]["steady"]
    unknown = [key for key in ("temperature_start_C", "temperature_max_C", "temperature_end_C") if steady[key] is None]
    assert unknown and all(any(key in note for note in steady["notes"]) for key in unknown)


def test_latency_and_completion(tmp_path):
    data, f = run_of(tmp_path, lat_ns=640_000)
    assert f["lat_mean_us"] == pytest.approx(640, rel=0.01) and f["clat_p99_us"] == pytest.approx(640, rel=0.01)
    assert np.isnan(data.lat_p99_us).tolist() == [x < 1000 for x in IOPS]  # from 1000 I/Os on
    few = sum(0 < x < 1000 for x in IOPS)
    words = f"P99 by the second: the I/Os of {few} s are too few for this percentile, which needs 1000"
    assert few and words in data.notes
    assert np.nanmax(data.lat_p99_us) == pytest.approx(640, rel=0.01)
    assert f["fill_MBps"] == pytest.approx(synthetic_run.TESTED_BYTES // 131072 * 131072 / 2 / 1e6)
    # purge starts 3.64 s before the load's first I/O, its last one is at 31 s
    assert f["time_to_complete_s"] == pytest.approx(3.64 + 31)


def test_time_dilation_is_undone(tmp_path):
    """The same drive, run ten times slower: 30 s of its time are 300 of the host's."""
    plain_data, plain = run_of(
        tmp_path / "plain", [2000] * 10 + [500, 700] * 10, zoom_s=10, watts=((-100, 1.0), (0, 3.0), (10, 2.0))
    )
    slow = [200] * 100 + ([50] * 10 + [70] * 10) * 10
    data, f = run_of(
        tmp_path / "slow",
        slow,
        zoom_s=10,
        dilation=10,
        watts=((-100, 1.0), (0, 3.0), (100, 2.0)),
        lat_ns=8_000_000,
        fill_s=20,
    )
    assert data.iops.tolist() == plain_data.iops.tolist()
    for key in (
        "iops_mean",
        "iops_sd",
        "consistency",
        "iops_all_mean",
        "ios",
        "lat_mean_us",
        "zero_seconds",
        "window_s",
        "duration_s",
    ):
        assert f[key] == pytest.approx(plain[key]), key
    for key in (
        "energy_J",
        "energy_uJ_per_io",
        "energy_J_per_GB",
        "power_mean_W",
        "power_max_W",
        "fill_energy_J",
        "fill_MBps",
    ):
        assert f[key] == pytest.approx(plain[key], rel=1e-3), key
    assert f["clat_p99_us"] == pytest.approx(plain["clat_p99_us"], rel=0.02)
    assert (f["time_dilation"], plain["time_dilation"]) == (10, 1)
    assert data.power_mean_W == pytest.approx(plain_data.power_mean_W, rel=1e-3)
    assert data.polls[2][0] == pytest.approx(plain_data.polls[2][0])


def test_events_are_on_the_axis(tmp_path):
    run = synthetic_run.write(tmp_path, IOPS, zoom_s=12)
    first = synthetic_run.T_RUN_NS + 3_750_000_000
    events = journal.events(run)
    for t_s, more in ((7.5, {"kind": "rig.lost", "why": "unplugged"}), (9.0, {"kind": "note", "text": "fan on"})):
        events.insert(-1, {"t_ns": first + int(t_s * 1e9), **more})
    synthetic_run.seal(run, events)
    data = table.in_full(run).data
    assert (7.5, "rig lost") in data.marks and (9.0, "fan on") in data.marks and (12.0, "window starts") in data.marks
    assert (7.5, "rig lost: unplugged") in data.log
    polls = [p for p in data.polls if p[2] == "poll"]
    assert polls[0][0] == 5.0 and polls[0][1] == pytest.approx(5.01)
    reasons = ["before", "before", "poll", "poll", "edge", "poll", "poll", "poll", "poll", "edge", "after"]
    assert [p[2] for p in data.polls] == reasons


def test_a_poll_has_the_reason_that_its_event_says(tmp_path):
    """The last poll under load ended 0.3 s before the one after the load: each keeps its own reason."""
    run = synthetic_run.write(tmp_path, IOPS, zoom_s=12, smart_every_s=10)
    events = journal.events(run)
    first = synthetic_run.T_RUN_NS + 3_750_000_000
    late = [first + 31_300_000_000, first + 31_310_000_000]
    for t_ns, kind in zip(late, ("smart.start", "smart.end"), strict=True):
        events.insert(-2, {"t_ns": t_ns, "kind": kind, "n": 77, "reason": "poll", "ok": True})
    synthetic_run.seal(run, events)
    for path in (run / "smart").iterdir():
        document = json.loads(path.read_text())
        if document["reason"] == "after":
            path.write_text(json.dumps({**document, "t_start_ns": late[1] - 500_000_000, "t_end_ns": late[1]}))
    assert [p[2] for p in sorted(table.in_full(run).data.polls) if p[0] > 31] == ["poll", "after"]


# ---- what is missing


def test_a_failed_run_says_why(tmp_path):
    _, f = run_of(tmp_path, state="failed")
    assert (f["state"], f["why"]) == ("failed", "synthetic failure")
    assert f["iops_mean"] is not None and f["energy_J"] is not None


def test_a_died_run_gives_what_is_there(tmp_path):
    """The host was killed under load: no end of the load, no fio logs, no last SMART reading, torn ends everywhere."""
    run = synthetic_run.write(tmp_path, IOPS, zoom_s=12, state=None)
    load_ended = synthetic_run.T_RUN_NS + 3_750_000_000 + 31_000_000_000
    lines = [line for line in (run / "events.jsonl").read_text().splitlines() if json.loads(line)["t_ns"] < load_ended]
    (run / "events.jsonl").write_text("\n".join(lines) + '\n{"t_ns": 12')
    for path in (run / "fio" / "load").glob("*.log"):
        path.unlink()
    for path in sorted((run / "smart").glob("*.json"))[-1:]:
        path.unlink()
    rig = (run / "rig.bin").read_bytes()
    (run / "rig.bin").write_bytes(rig[: len(rig) * 2 // 3 + 5])
    data, f, _ = table.in_full(run)
    assert f["state"] == "died" and "its last event is smart.end" in f["why"]
    assert f["iops_mean"] == pytest.approx(statistics.mean(WINDOW))
    f = whole(f) | {"notes": f["notes"]}
    assert f["ios"] == sum(IOPS) and f["energy_J"] is None and f["time_to_complete_s"] is None
    assert f["power_mean_W"] == pytest.approx(2.5, rel=1e-4)
    seen = np.isfinite(data.power_mean_W)
    assert 15 < seen.sum() < 25 and seen[: seen.sum()].all()
    assert f["energy_uJ_per_io"] == pytest.approx(1e6 * data.energy_J[seen].sum() / data.iops[seen].sum())
    assert f["windows"]["steady"]["wa"] == pytest.approx(3.0, rel=0.02)
    for words in ("once-a-second documents", "energy_J: ", "the load was not completed"):
        assert any(words in n for n in f["notes"]), words


def test_a_run_without_load_or_power(tmp_path):
    run = synthetic_run.write(tmp_path, IOPS, state=None, power=False)
    for path in (run / "fio" / "load").iterdir():
        path.unlink()
    f = table.in_full(run).figures
    assert f["state"] == "died" and f["tested_bytes"] == synthetic_run.TESTED_BYTES and f["fill_MBps"] is not None
    assert [
        f[k]
        for k in (
            "ios",
            "iops_mean",
            "iops_all_mean",
            "lat_mean_us",
            "energy_J",
            "power_mean_W",
            "samples",
            "wa",
            "closure_percent",
        )
    ] == [None] * 9
    assert any(n.startswith("load: ") for n in f["notes"]) and any(n.startswith("power: ") for n in f["notes"])


def test_a_smart_file_that_cannot_be_read_is_said(tmp_path):
    run = synthetic_run.write(tmp_path, IOPS)
    (run / "smart" / "003.json").write_text('{"n": 3')
    data, f, _ = table.in_full(run)
    assert len(data.snapshots) == len(list((run / "smart").glob("*.json"))) - 1
    assert any("003.json cannot be read" in n for n in f["notes"])


def test_a_counter_that_went_back_gives_no_write_amplification(tmp_path):
    run = synthetic_run.write(tmp_path, IOPS)
    last = sorted((run / "smart").glob("*.json"))[-2]  # at the end of the load
    document = json.loads(last.read_text())
    page = bytearray.fromhex(document["log_c0h"])
    page[:16] = (1).to_bytes(16, "little")
    last.write_text(json.dumps({**document, "log_c0h": page.hex()}))
    f = table.in_full(run).figures
    assert f["wa"] is None and any("NAND counter went back" in n for n in f["notes"])


def test_a_run_that_is_still_written_is_running(tmp_path):
    run = synthetic_run.write(tmp_path, IOPS, state=None)
    lock = os.open(run / "lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        f = table.in_full(run).figures
    finally:
        os.close(lock)
    assert (f["state"], f["why"]) == ("running", None)


@pytest.mark.parametrize("schema", [0, 2, "1"])
def test_another_schema_is_refused(tmp_path, schema):
    run = synthetic_run.write(tmp_path, [100] * 4, power=False)
    header = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**header, "schema": schema}))
    with pytest.raises(JournalError, match="schema"):
        table.in_full(run)


def test_no_run_folder_is_refused(tmp_path):
    with pytest.raises(JournalError):
        table.in_full(tmp_path / "nothing")


def test_the_axis_begins_at_the_first_io(tmp_path):
    data, _ = run_of(tmp_path)
    assert data.t0_ns == synthetic_run.T_RUN_NS + 3_750_000_000
    assert data.axis_s([data.t0_ns, data.t0_ns + 1_500_000_000]).tolist() == [0.0, 1.5]
    assert not math.isnan(data.load_s) and data.load_s == 31.0
