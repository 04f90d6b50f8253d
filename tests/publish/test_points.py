"""Points for InfluxDB from a run folder: which, when, and that each is made once."""

import json
import os
import random
import shutil
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import synthetic_plan
import synthetic_run
from point_runs import IOPS, POINTS, as_printed, emit, grow, made, read, run  # noqa: F401  fixtures

from ssdrig.base.errors import JournalError
from ssdrig.base.utc import Utc
from ssdrig.load import fiolog
from ssdrig.publish.influx import line_protocol, points
from ssdrig.runs import journal

pytestmark = pytest.mark.keeps_time


def test_a_run_comes_to_these_points(run):
    lines = read(emit(run))
    seconds = synthetic_run.T_RUN_NS // 10**9, journal.events(run)[-2]["t_ns"] // 10**9
    got = Counter(m for m, *_ in lines)
    assert got == points.counts(run)
    assert (
        got["fio_interval"] == 2 + len(IOPS)
        and got["ssd_wear"] == got["smart_device"] == 6  # two before, two by the clock, the window's end, after
        and got["rig_event"] == len(journal.events(run))
    )
    assert seconds[1] - seconds[0] <= got["power"] <= seconds[1] - seconds[0] + 1
    assert len({(m, tags, t) for m, tags, _, t in lines}) == len(lines), "two points share series and time"
    drive, name = "SIMULATED SATA TLC SIM0001", run.name
    by = {m: [(dict(tags), fields, t) for k, tags, fields, t in lines if k == m] for m in got}
    load = [
        (f, t)
        for tags, f, t in by["fio_interval"]
        if tags == {"dir": "write", "drive": drive, "run": name} and f["step"] == "load"
    ]
    assert [f["iops"] for f, _ in load] == IOPS
    assert load[0][0]["lat_mean_ns"] == 800_000 and load[2][0] == {"step": "load", "iops": 0, "bw_bytes": 0}
    first_row_ms = int((run / "fio" / "load" / "load_iops.1.log").read_text().split(",")[0])
    first_ns = (first_row_ms - 1000) * 1_000_000
    assert abs(load[0][1] - (first_ns - synthetic_run.T_RUN_NS + synthetic_run.UTC_RUN_NS)) < 10_000_000
    assert {t - load[0][1] for _, t in load} == {i * 10**9 for i in range(len(IOPS))}
    power = [(f, t) for tags, f, t in by["power"] if tags == {"drive": drive, "rail": "5V", "run": name}]
    assert len(power) == got["power"]
    busy = [f for f, t in power if load[0][1] < t < load[-1][1]]
    assert all(
        f["p_mean_W"] == pytest.approx(2.5, rel=1e-3) and f["energy_J"] == pytest.approx(2.5, rel=1e-3) for f in busy
    )
    assert all(f["lost"] == 0 and 1000 <= f["samples"] <= 1007 and 0 < f["t_err_ns"] < 300_000 for f in busy)
    wear = by["ssd_wear"]
    assert "wa" not in wear[0][1] and "wa" not in wear[1][1], (
        "before the load nothing was written that could be amplified"
    )
    assert [f["wa"] for _, f, _ in wear[2:]] == pytest.approx([3.0] * (len(wear) - 2), rel=0.02)
    assert {"host_written_bytes", "nand_written_bytes", "temperature_C", "media_errors"} <= set(wear[0][1])
    texts = {(f["kind"], f["text"]) for _, f, _ in by["rig_event"]}
    assert {
        ("step.start", "step: fill"),
        ("run.end", "state: complete, why: , exit_code: 0"),
        ("run.start", "pid: 1"),
    } <= texts


@pytest.fixture
def as_it_came(run):
    return as_printed(run)


def live(lines, step="load"):
    return [(fields, t) for m, _, fields, t in lines if m == "fio_live" and fields["step"] == step]


def test_the_running_second_comes_while_the_load_runs_and_is_that_of_fios_logs(as_it_came):
    """Half of the documents are there, the last one torn, and the step has not ended: nothing of fio_interval is."""
    run = as_it_came
    whole, log = (run / "fio/load/out.json").read_bytes(), (run / "events.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    (run / "fio/load/out.json").write_bytes(b"".join(lines[:5]) + lines[5][:100])
    ends = [i for i, line in enumerate(log.splitlines()) if b'"step.end"' in line and b'"load"' in line]
    (run / "events.jsonl").write_bytes(b"".join(log.splitlines(keepends=True)[: ends[0]]))
    with points.Emitter(run) as emitter:
        emitter.step()
        early = read((run / POINTS).read_bytes())
        assert [fields.get("iops") for fields, _ in live(early)] == IOPS[:5]
        assert not [1 for m, _, fields, _ in early if m == "fio_interval" and fields["step"] == "load"]
        (run / "fio/load/out.json").write_bytes(whole)
        (run / "events.jsonl").write_bytes(log)
        emitter.step(final=True)
    late = read((run / POINTS).read_bytes())
    exact = {t: fields for m, _, fields, t in late if m == "fio_interval" and fields.pop("step") == "load"}
    for fields, t in live(late):  # lat_mean_ns of fio_interval is of a histogram
        assert (fields.pop("step"), fields.pop("run")) == ("load", run.name)
        assert fields == pytest.approx({key: exact[t][key] for key in fields}, rel=0.01)
    late = read((run / POINTS).read_bytes())
    assert len(live(late)) == len(IOPS) and late[: len(early)] == early


def test_a_line_of_another_shape_gives_no_second(as_it_came):
    run = as_it_came
    path = run / "fio/load/out.json"
    lines = path.read_text().splitlines()
    broken = ['{"t_ns": 1', '{"t_ns":1,"jobs":5}', "fio: something", '{"t_ns":"x","jobs":[]}', lines[3]]
    far = json.loads(lines[3])
    far["jobs"][0]["write"]["runtime"] = 1 << 62  # it would have begun before the clock
    odd = json.loads(lines[3])
    odd["jobs"][0]["job options"] = "none"
    broken += [json.dumps(far), json.dumps(odd)]
    path.write_text("\n".join([*lines[:4], *broken, *lines[4:]]) + "\n")
    assert [fields["iops"] for fields, _ in live(read(emit(run)))] == IOPS


def test_the_points_of_a_repeat_are_sent_too(tmp_path):
    """Each has a folder of its own, which the events name."""
    folder = synthetic_plan.grid(tmp_path, rounds=2)
    lines = read(emit(folder))
    sent = [fields["step"] for m, _, fields, _ in lines if m == "fio_interval"]
    assert len(sent) == 2 * 4 * 2 and set(sent) == {"rounds/point"}
    assert Counter(m for m, *_ in lines)["fio_interval"] == points.counts(folder)["fio_interval"]


def test_every_field_of_the_schema_is_written_by_a_run(as_it_came):
    """All but those of other drives and tests: test_smart_points.py, test_cut_points.py, test_kept_points.py,
    test_host_points.py."""
    run = as_it_came
    for path in (run / "smart").iterdir():
        poll = json.loads(path.read_bytes())
        page = bytearray.fromhex(poll["log_c0h"])
        page[88:92], page[224:232], page[494:496] = (
            (70).to_bytes(4, "little"),
            (60).to_bytes(8, "little"),
            (5).to_bytes(2, "little"),
        )
        path.write_text(json.dumps(poll | {"log_c0h": page.hex()}))
    written = {}
    for m, _, fields, _ in read(emit(run)):
        written.setdefault(m, set()).update(fields)
    schema = {m.name: set(m.fields) for m in line_protocol.read_schema().values()}
    schema["fio_interval"] -= {"lat_p99_ns", "lat_p999_ns"}  # see below
    schema["ssd_wear"] -= {"health_reasons"}  # of a drive whose health is not ok: test_smart_points_wear.py
    for name in ("run_result", "run_figure", "run_value", "host_power", "application"):  # see test_points_results.py
        schema.pop(name), written.pop(name, None)
    schema["load_second"] -= {"round", "point", "part"}  # of repeats and resumed runs
    assert {name: fields for name, fields in written.items() if not name.startswith("smart_")} == {
        name: fields for name, fields in schema.items() if not name.startswith(("smart_", "powerloss_", "retention_"))
    }


@pytest.mark.parametrize("kind", ["clat", "lat"])
def test_percentiles_say_of_which_latency_and_are_only_of_enough_ios(tmp_path, kind):
    seconds = fiolog.load(synthetic_run.write(tmp_path, [12000, 9000, 0, 500, 500]) / "fio" / "load")
    made = [points.second_fields(replace(seconds, hist_of=kind), i) for i in range(4)]
    assert [set(f) - {"iops", "bw_bytes"} for f in made] == [
        {"lat_mean_ns", f"{kind}_p99_ns", f"{kind}_p999_ns"},
        {"lat_mean_ns", f"{kind}_p99_ns"},
        set(),
        {"lat_mean_ns"},
    ]
    assert set(made[0]) <= set(line_protocol.read_schema()["fio_interval"].fields)


def test_smart_as_telegraf_names_it(run):
    header = json.loads((run / "run.json").read_bytes())
    header["host"]["name"] = "bench 1"
    (run / "run.json").write_text(json.dumps(header))
    first = json.loads((run / "smart" / "000.json").read_bytes())
    first["smartctl"]["device"]["name"], first["smartctl"]["serial_number"] = "/dev/nvme0", "SIM0001"
    (run / "smart" / "000.json").write_text(json.dumps(first))  # the later ones tell less, as light polls do
    lines = read(emit(run))
    device = [(dict(tags), fields, t) for m, tags, fields, t in lines if m == "smart_device"]
    wear = [t for m, _, _, t in lines if m == "ssd_wear"]
    assert [tags for tags, _, _ in device] == [
        {
            "device": "nvme0",
            "drive": "SIMULATED SATA TLC SIM0001",
            "host": "bench 1",
            "model": "SIMULATED",
            "serial_no": "SIM0001",
        }
    ] * len(wear), "one series, whatever a later poll leaves unsaid"
    assert [t for *_, t in device] == wear
    assert device[0][1]["temp_c"] == 40 and device[0][1]["power_on_hours"] == 12 and device[0][1]["exit_status"] == 0
    used = [fields for m, tags, fields, _ in lines if m == "smart_attribute" and ("name", "Percentage_Used") in tags]
    assert used == [{"raw_value": 1}] * len(wear)
    hours = [tags for m, tags, _, _ in lines if m == "smart_attribute" and ("name", "Power_On_Hours") in tags]
    assert all(dict(tags)["id"] == "9" and dict(tags)["host"] == "bench 1" for tags in hours) and len(hours) == len(
        wear
    )


@pytest.mark.parametrize("keep", [0, 1, 0.3, 0.7, 0.999])
def test_a_torn_file_is_taken_up_where_it_was(run, keep):
    whole = emit(run)
    size = int(len(whole) * keep) if keep != 1 else len(whole)
    (run / POINTS).write_bytes(whole[:size])
    assert emit(run) == whole, "what was cut off came back as other bytes"


def test_followed_in_pieces_and_restarted_it_is_the_same_points(made, tmp_path):
    at_once = Counter(emit(shutil.copytree(made, tmp_path / "whole" / made.name)).splitlines())
    for seed in range(3):
        rng = random.Random(seed)
        run = shutil.copytree(made, tmp_path / f"pieces{seed}" / made.name)
        for name in ("events.jsonl", "rig.bin"):
            (run / name).write_bytes(b"")
        emitter = points.Emitter(run)
        for step in range(1, 31):
            grow(made, run, step / 30, rng)
            emitter.step(final=step == 30)
            if rng.random() < 0.3 and step < 30:  # it died and was started again, perhaps in mid-write
                emitter.close()
                with (run / POINTS).open("r+b") as f:
                    f.truncate(rng.randrange(emitter.size - min(200, emitter.size), emitter.size + 1))
                emitter = points.Emitter(run)
        emitter.close()
        pieces = (run / POINTS).read_bytes().splitlines()
        assert Counter(pieces) == at_once


def test_power_waits_until_its_second_is_settled(made, tmp_path):
    run = shutil.copytree(made, tmp_path / made.name)
    data = (made / "rig.bin").read_bytes()
    (run / "rig.bin").write_bytes(data[: len(data) // 2])
    newest = int(journal.records(run).t_ns[-1])
    live = [t for m, _, _, t in read(emit(run, final=False)) if m == "power"]
    offset = synthetic_run.UTC_RUN_NS - synthetic_run.T_RUN_NS
    assert live and newest - 4 * 10**9 < max(live) - offset <= newest - 3 * 10**9


def test_a_run_that_died_gives_what_is_there(tmp_path):
    run = synthetic_run.write(tmp_path, IOPS, state=None, name="died")
    events = (run / "events.jsonl").read_bytes()
    at = events.index(b'"kind": "step.end", "step": "load"')
    (run / "events.jsonl").write_bytes(events[:at])
    shutil.rmtree(run / "fio" / "load")
    assert journal.state(run) == "died"
    got = Counter(m for m, *_ in read(emit(run)))
    assert got == points.counts(run) and (got["fio_interval"], got["ssd_wear"]) == (2, 5)


def test_seconds_of_a_step_that_never_ended(tmp_path):
    """The run died in its load: fio's seconds are there, and count from the step's start where fio's own is not
    known."""
    run = synthetic_run.write(tmp_path, IOPS, state=None, name="died")
    events = (run / "events.jsonl").read_bytes()
    (run / "events.jsonl").write_bytes(events[: events.index(b'"kind": "step.end", "step": "load"')])
    for log in (run / "fio" / "load").glob("*.log"):
        log.unlink()
    (run / "fio" / "load" / "start.json").unlink(missing_ok=True)
    assert [m for m, *_ in read(emit(run, final=False))].count("fio_interval") == 2
    lines = read(emit(run))
    assert Counter(m for m, *_ in lines) == points.counts(run)
    load = [(fields["iops"], t) for m, _, fields, t in lines if m == "fio_interval" and fields["step"] == "load"]
    assert sum(iops for iops, _ in load) == sum(IOPS)
    start_ns = next(e["t_ns"] for e in journal.events(run) if e.get("step") == "load")
    assert load[0][1] == start_ns - synthetic_run.T_RUN_NS + synthetic_run.UTC_RUN_NS


def test_lost_frames_are_counted_in_their_second(tmp_path):
    run = synthetic_run.write(tmp_path, IOPS, lose_frames=range(200, 206), name="lossy")
    lines = read(emit(run))
    lost = sum(fields["lost"] for m, _, fields, _ in lines if m == "power")
    assert 100 < lost <= 300 and Counter(m for m, *_ in lines) == points.counts(run)


def test_a_run_without_power_or_fio(tmp_path):
    run = synthetic_run.write(tmp_path, IOPS, power=False, name="bare")
    shutil.rmtree(run / "fio")
    got = Counter(m for m, *_ in read(emit(run)))
    assert got == points.counts(run) and got["rig_event"] > 10


def test_events_of_one_kind_and_time_stay_two_points(tmp_path):
    book = journal.create(tmp_path, {"drive": {"model": "m", "serial": "s"}, "run": "r"})
    t_ns = journal.open_run(book.path)["started"]["t_ns"] + 10**9
    for text in ("one", "two", 'a\nb "c" \\'):
        book.event("note", t_ns=t_ns, text=text)
    book.close("complete")
    notes = [(t, fields["text"]) for _, _, fields, t in read(emit(tmp_path / "r")) if fields.get("kind") == "note"]
    assert [text for _, text in notes] == ["one", "two", 'a b "c" \\']
    assert [t - notes[0][0] for t, _ in notes] == [0, 1, 2]


def test_utc_follows_a_clock_that_is_set():
    utc = Utc(1000, 5_000_000_000_000)
    distance = 5_000_000_000_000 - 1000
    utc.anchor(10**9, 10**9 + distance + 40_000_000)  # reading noise
    assert utc.at(2 * 10**9) == 2 * 10**9 + distance
    utc.anchor(3 * 10**9, 3 * 10**9 + distance + 7 * 10**9 + 3)  # set forward
    utc.anchor(5 * 10**9, 5 * 10**9 + distance - 9 * 10**9 + 5)  # set back
    assert utc.at(2 * 10**9) == 2 * 10**9 + distance, "an anchor must not change what was said of earlier times"
    assert utc.at(3 * 10**9) == utc.at(3 * 10**9 - 1) + 7 * 10**9 + 1 + 3
    assert utc.at(6 * 10**9) == -3 * 10**9 + distance + 5
    assert utc.at(500) == 500 + distance


def test_seconds_of_two_settings_of_the_clock_never_coincide():
    """Seconds lie on whole milliseconds of CLOCK_MONOTONIC: a clock set back by an hour exactly would repeat them."""
    utc = Utc(0, 10**18)
    utc.anchor(10**12, 10**18 + 10**12 - 3600 * 10**9)
    utc.anchor(2 * 10**12, 10**18 + 2 * 10**12)
    times = {utc.at(t_ns) % 10**6 for t_ns in (0, 10**12, 2 * 10**12)}
    assert len(times) == 3 and max(times) < 10


@pytest.mark.parametrize("by_s", [-3600, -10, 30])
def test_points_behind_a_set_clock_have_its_utc_and_are_made_once(run, by_s):
    """Set back by 10 s, the run passes through the same UTC twice."""
    events = journal.events(run)
    first_ns = next(event["t_ns"] for event in events if event.get("step") == "load")
    set_ns = first_ns + 13_000_000_000
    utc_ns = synthetic_run.UTC_RUN_NS + set_ns - synthetic_run.T_RUN_NS + by_s * 10**9 + 77
    anchors = [{"t_ns": set_ns, "kind": "clock.anchor", "utc_ns": utc_ns}]
    anchored = [event for event in events if event["kind"] != "clock.anchor" or event["t_ns"] < set_ns]
    synthetic_run.seal(run, sorted(anchored + anchors, key=lambda event: event["t_ns"]))
    text = emit(run)
    power = [t for m, _, _, t in read(text) if m == "power"]
    jumps = np.diff(power)
    assert sorted(jumps.tolist())[0 if by_s < 0 else -1] == (1 + by_s) * 10**9 + 77
    assert (jumps == 10**9).sum() == len(jumps) - 1
    got = read(text)
    assert Counter(m for m, *_ in got) == points.counts(run)
    assert len({(m, tags, t) for m, tags, _, t in got}) == len(got), "two points share series and time"
    (run / POINTS).write_bytes(b"".join(line for line in text.splitlines(keepends=True)[: len(got) // 2]))
    assert sorted(emit(run).splitlines()) == sorted(text.splitlines()), "after a crash each is made once"


def test_what_cannot_be_held_is_counted_and_the_rest_is_sent(run):
    poll = json.loads((run / "smart" / "000.json").read_text())
    page = bytearray.fromhex(poll["log_02h"])
    page[160:176] = (2**63).to_bytes(16, "little")  # media errors: NVMe has 128 bits, a database 63
    poll["log_02h"] = page.hex()
    (run / "smart" / "000.json").write_text(json.dumps(poll))
    with points.Emitter(run) as emitter:
        emitter.step(final=True)
        assert emitter.left_out == 3  # in each of the three measurements
    wear = [fields for m, _, fields, _ in read((run / POINTS).read_bytes()) if m == "ssd_wear"]
    assert "media_errors" not in wear[0] and "host_written_bytes" in wear[0] and "media_errors" in wear[1]


def test_two_at_once_are_refused(run):
    with points.Emitter(run), pytest.raises(JournalError, match="in use by another"):
        points.Emitter(run)
    points.Emitter(run).close()


def test_a_full_disk_leaves_whole_lines(run, monkeypatch):
    emitter = points.Emitter(run)
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:1000]) if os.fstat(fd).st_size == 0 else full())

    def full():
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        emitter.step(final=True)
    assert (run / POINTS).stat().st_size == 0
    emitter.close()
    monkeypatch.undo()
    assert Counter(m for m, *_ in read(emit(run))) == points.counts(run)


def test_a_missing_smart_file_is_named(run):
    (run / "smart" / "001.json").unlink()
    with pytest.raises(JournalError, match="SMART poll 1"):
        emit(run)
