"""Runs that are made of others' files alone: fio's JSON and logs, by the real fio, and recordings of power."""

import json
import struct
import subprocess
import sys
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest
from fake_influx import FakeInflux

from ssdrig import cli
from ssdrig.base.errors import ToolMissing, UsageError
from ssdrig.commands import import_run
from ssdrig.load import fiotext, foreign
from ssdrig.meter import recordings
from ssdrig.reading import table
from ssdrig.runs import integrity, journal, parts

UTC_S = 1_795_177_500
RATES = {"read": 900, "write": 300}
SECONDS = 4


def fio(folder, *more, name="mix"):
    """Run fio, paced, on a file of its own. Returns its JSON."""
    folder.mkdir(exist_ok=True)
    words = [f"--name={name}", "--filename=data", "--size=8M", "--rw=randrw", "--bs=4k", "--ioengine=psync"]
    words += ["--time_based", f"--runtime={SECONDS}", f"--rate_iops={RATES['read']},{RATES['write']}"]
    words += ["--output-format=json+", "--output=out.json", "--rwmixread=75", *more]
    subprocess.run(["fio", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return fiotext.documents((folder / "out.json").read_text())[0][-1]


def logs(prefix, *more):
    return [f"--write_{kind}_log={prefix}" for kind in ("iops", "bw", "lat")] + list(more)


@pytest.fixture(scope="module")
def averaged(tmp_path_factory):
    """(folder, document) of a job with rows of a tenth of a second, in Unix time."""
    folder = tmp_path_factory.mktemp("averaged")
    return folder, fio(folder, *logs("mix", "--log_avg_msec=100", "--log_unix_epoch=1", "--lat_percentiles=1"))


def imported(capsys, tmp_path, *words):
    """(run folder, the answer) of an import that succeeds."""
    capsys.readouterr()
    assert cli.main(["import", *map(str, words), "--runs", str(tmp_path / "runs"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    return parts.shown(answer["run"])[0], answer


def refused(capsys, tmp_path, *words):
    """What an import that fails advises; it leaves no run."""
    capsys.readouterr()
    code = cli.main(["import", *map(str, words), "--runs", str(tmp_path / "none")])
    assert code == UsageError.exit_code and not list((tmp_path / "none").glob("*"))
    return capsys.readouterr().err


def power_csv(path, begin_s, seconds, rate=1000, watts=lambda t_s: 2.0 + (t_s >= 0) * 1.0):
    """A recording with Unix times, of means of the time since the row before; 0 s is UTC_S or `begin_s` of it."""
    t = np.arange(round(-2 * rate), round(seconds * rate)) / rate
    rows = zip((t + begin_s).tolist(), np.array([watts(t_s) for t_s in t - 0.5 / rate]).tolist())
    path.write_text("Time (s),Voltage (V),Current (A)\n" + "".join(f"{at:.6f},5.0,{W / 5:.6f}\n" for at, W in rows))
    return path


def test_fio_with_averaged_logs_has_its_seconds_totals_and_percentiles(averaged, tmp_path, capsys):
    folder, document = averaged
    run, answer = imported(capsys, tmp_path, folder / "out.json", *sorted(folder.glob("*.log")))
    assert not integrity.damage(run) and answer["jobs"] == ["mix"]
    (row,) = table.load(run, by_second=True).rows
    whole, job = row.windows["all"], document["jobs"][0]
    assert whole["ios"] == sum(job[side]["total_ios"] for side in RATES)
    moved = sum(job[side]["io_bytes"] for side in RATES)
    assert whole["bw_mean_MBps"] == pytest.approx(moved / row.data.load_s / 1e6)
    lat = sum(job[side]["total_ios"] * job[side]["lat_ns"]["mean"] for side in RATES) / whole["ios"]
    assert whole["lat_mean_us"] == pytest.approx(lat / 1000)
    for side in RATES:
        ios, latency = job[side]["total_ios"], job[side]["lat_ns"]
        assert whole[f"{side}_iops"] == pytest.approx(ios / row.data.load_s)
        if ios >= 1000:  # fewer, on a busy host, have no 99th percentile
            assert whole[f"{side}_lat_p99_us"] == pytest.approx(latency["percentile"]["99.000000"] / 1000, rel=0.02)
        assert whole[f"{side}_lat_p50_us"] == pytest.approx(latency["percentile"]["50.000000"] / 1000, rel=0.02)
    assert abs(row.data.iops.sum() + 0.0 - whole["ios"]) <= 1.1 * sum(RATES.values())  # a last part of a second
    assert row.data.iops.max() <= 2 * sum(RATES.values())
    assert np.isfinite(row.data.lat_mean_us[:3]).all()


def test_logs_with_a_row_for_each_io_count_each_of_them(tmp_path, capsys):
    document = fio(tmp_path / "each", *logs("each"))
    log_files = sorted((tmp_path / "each").glob("*.log"))
    run, _ = imported(capsys, tmp_path, tmp_path / "each" / "out.json", *log_files)
    content = foreign.content(run / "recorded" / "mix")
    for side in RATES:
        job = document["jobs"][0][side]
        by_second = content["sides"][side]["by_second"]
        assert sum(by_second["ios"]) == job["total_ios"] and sum(by_second["bytes"]) == job["io_bytes"]
        assert sum(by_second["lat_sum_ns"]) == pytest.approx(job["lat_ns"]["mean"] * job["total_ios"], rel=1e-3)


def test_a_document_alone_has_totals_and_no_seconds(tmp_path, capsys):
    document = fio(tmp_path / "alone")
    run, answer = imported(capsys, tmp_path, tmp_path / "alone" / "out.json", "--model", "SSD of the test")
    (row,) = table.load(run, by_second=True).rows
    assert row.windows["all"]["ios"] == sum(document["jobs"][0][side]["total_ios"] for side in RATES)
    assert np.isnan(row.data.iops).all() and any("logs are missing" in note for note in row.notes)
    percentiles = document["jobs"][0]["read"]["clat_ns"]["percentile"]
    assert row.windows["all"]["lat_p99_us"] is None and row.result["percentiles_of"] == "clat"
    assert row.result["read_lat_p50_us"] == pytest.approx(percentiles["50.000000"] / 1000, rel=0.02)
    assert journal.run_header(run)["drive"]["model"] == "SSD of the test"
    assert cli.main(["report", str(run), "--out", str(tmp_path / "r.html")]) == 0
    assert "median of clat" in (tmp_path / "r.html").read_text()


def test_groups_that_ran_one_after_the_other_are_a_step_each(tmp_path, capsys):
    two = ["--name=second", "--stonewall", "--filename=data", "--size=8M", "--rw=read", "--bs=64k", "--runtime=1"]
    document = fio(tmp_path / "two", *two, "--time_based", "--rate_iops=200")
    assert [job["groupid"] for job in document["jobs"]] == [0, 1]
    run, answer = imported(capsys, tmp_path, tmp_path / "two" / "out.json")
    rows = table.load(run).rows
    assert sorted(row.act.path for row in rows) == ["mix", "second"]
    begins_s = {row.act.path: row.t0_s for row in rows}
    second_s = begins_s["second"] - begins_s["mix"]
    starts_ms = [job.get("job_start") for job in document["jobs"]]
    if None in starts_ms:  # fio before 3.36 does not say when: at its earliest, once the first group has ended
        assert second_s > SECONDS - 0.1
    else:
        assert second_s == pytest.approx((starts_ms[1] - starts_ms[0]) / 1000, abs=0.1)
    counted = {row.act.path: row.windows["all"]["ios"] for row in rows}
    assert counted["second"] == document["jobs"][1]["read"]["total_ios"]


def test_logs_alone_need_a_time_of_day(averaged, tmp_path, capsys):
    folder, document = averaged
    run, _ = imported(capsys, tmp_path, *sorted(folder.glob("*.log")))
    (row,) = table.load(run).rows
    total = sum(document["jobs"][0][side]["total_ios"] for side in RATES)
    assert 0.7 * total <= row.windows["all"]["ios"] <= 1.02 * total  # fio does not log its last stretch
    fio(tmp_path / "relative", *logs("relative", "--log_avg_msec=500"))
    assert "log_unix_epoch" in refused(capsys, tmp_path, *sorted((tmp_path / "relative").glob("*.log")))


def test_power_beside_fio_gives_energy_per_io(averaged, tmp_path, capsys):
    folder, document = averaged
    begin_s = foreign.read(folder / "out.json", sorted(folder.glob("*.log")))[0].utc_ms / 1000
    csv = power_csv(tmp_path / "p.csv", begin_s, SECONDS + 2)
    files = [folder / "out.json", *sorted(folder.glob("*.log")), csv]
    assert "--clock-error" in refused(capsys, tmp_path, *files)
    run, answer = imported(capsys, tmp_path, *files, "--clock-error", "5ms", "--accuracy", "0.5%")
    (row,) = table.load(run).rows
    whole = row.windows["all"]
    assert answer["bound_ns"] >= 5_000_000
    assert whole["clock_error_us"] >= 5000 and whole["power_uncertainty_percent"] > 0.5
    assert whole["energy_J"] == pytest.approx(3.0 * row.data.load_s, rel=whole["power_uncertainty_percent"] / 100)
    assert whole["energy_uJ_per_io"] == pytest.approx(whole["energy_J"] / whole["ios"] * 1e6)


def test_an_uncertain_start_of_fio_leaves_energy_out(tmp_path, capsys):
    document = fio(tmp_path / "stamped", *logs("stamped", "--log_avg_msec=500"))
    if document["jobs"][0].get("job_start"):
        pytest.skip("this fio states when its job began")
    begin_s = document["timestamp_ms"] / 1000 - SECONDS
    csv = power_csv(tmp_path / "p.csv", begin_s, SECONDS + 3, watts=lambda t_s: 0.2 + 5 * (0 <= t_s < SECONDS))
    files = [tmp_path / "stamped" / "out.json", *sorted((tmp_path / "stamped").glob("*.log")), csv]
    run, _ = imported(capsys, tmp_path, *files, "--clock-error", "5ms")
    (row,) = table.load(run).rows
    assert row.windows["all"]["energy_J"] is None and row.windows["all"]["ios"]
    assert any(note.startswith("power_mean_W, energy_J") for note in row.notes)


# ---- power alone


def written(tmp_path, kind):
    """(file, more words, J of it) of a recording of 2 W, and 3 W from UTC_S on, for 3 s."""
    path = tmp_path / f"p.{kind}"
    if kind == "csv":
        return power_csv(path, UTC_S, 3), []
    if kind == "ppk2":
        amperes = [*([0.4] * 200_000), *([0.6] * 300_000)]
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("session.raw", b"".join(struct.pack("<fH", 1e6 * amps, 0) for amps in amperes))
            about = {"metadata": {"samplesPerSecond": 100_000, "startSystemTime": (UTC_S - 2) * 1000}}
            archive.writestr("metadata.json", json.dumps(about))
        return path, ["--voltage", "5V"]
    begins = ["--begins", "{}Z".format(np.datetime64(UTC_S - 2, "s"))]
    if kind == "quarch":
        lines = (f"{1000 * n},5000,{400_000 if n < 2000 else 600_000},0,0\n" for n in range(5000))
        path.write_text("Time us,5V voltage mV,5V current uA,12V voltage mV,12V current uA\n" + "".join(lines))
        return path, begins
    if kind == "jls":
        pyjls = pytest.importorskip("pyjls", reason="no pyjls (extra lake-test)")
        with pyjls.Writer(str(path)) as writer:
            writer.source_def(source_id=1, name="JS220-000001", vendor="Jetperch")
            for signal, (name, unit, values) in enumerate(
                (("current", "A", [0.4] * 2000 + [0.6] * 3000), ("voltage", "V", [5.0] * 5000)), 1
            ):
                writer.signal_def(signal, source_id=1, sample_rate=1000, name=name, units=unit)
                writer.fsr_f32(signal, 0, np.array(values, np.float32))
                for sample in (0, 4999):
                    writer.utc(signal, sample, pyjls.utc_to_jls(UTC_S - 2 + (sample + 1) / 1000))
        return path, []
    if kind == "ppk2a":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("manifest.json", "{}")
        return path, []
    rows = [(n, [(5000, 400 if n < 2000 else 600), *[(0, 0)] * 12]) for n in range(5000)]
    path.write_bytes(b"".join(recordings.powenetics_packet(*row) for row in rows))
    return path, begins


class Samples(list):
    """A block of ppk2lab, here its currents in uA, from sample `start` on."""

    def __init__(self, currents, start):
        super().__init__(currents)
        self.end_index = start + len(currents)


def capture(**changed):
    """ppk2lab, as far as recordings.py uses it: one archive of 2 W, and 3 W from UTC_S on, at 5 V."""
    blocks = [Samples([400_000.0] * 150_000, 70), Samples([400_000.0] * 50_000, 150_070)]
    blocks.append(Samples([600_000.0] * 300_000, 200_070))
    began = f"{np.datetime64(UTC_S - 2, 's')}Z"
    what = {
        "calibration": SimpleNamespace(convert_block=lambda block, mV: list(block)),
        "meta": SimpleNamespace(configuration={"mode": "source"}),
        **{"source_voltage_mv": 5000, "sample_rate_hz": 100_000, "start_index": 70, "timeline_degraded": False},
        **{"timing": {"first_sample_utc": began, "anchor_uncertainty_s": 0.02}, "gaps": []},
        "iter_events": lambda: iter(blocks),
    }
    loads = SimpleNamespace(load=lambda path, max_samples: SimpleNamespace(**what | changed))
    return SimpleNamespace(Capture=loads, Ppk2labError=RuntimeError)


@pytest.mark.parametrize("kind", ["csv", "ppk2", "ppk2a", "powenetics", "quarch", "jls"])
def test_a_recording_alone_is_a_run_with_its_energy_and_its_clocks_claim(tmp_path, capsys, monkeypatch, kind):
    monkeypatch.setitem(sys.modules, "ppk2lab", capture())
    path, more = written(tmp_path, kind)
    run, answer = imported(capsys, tmp_path, path, *more, "--accuracy", "0.5% + 2 mA", "--serial", "S1")
    assert not integrity.damage(run)
    (row,) = table.load(run, by_second=True).rows
    whole = row.windows["all"]
    assert whole["energy_J"] == pytest.approx(2 * 2.0 + 3 * 3.0, abs=0.01) and whole["ios"] is None
    assert row.data.power_mean_W.tolist() == pytest.approx([2, 2, 3, 3, 3], abs=0.01)
    assert answer["bound_ns"] >= 10**9 // 10_000 and whole["clock_error_us"] >= answer["bound_ns"] / 1000 - 1
    header = journal.run_header(run)
    assert abs(header["started"]["utc_ns"] / 1e9 - (UTC_S - 3)) < 0.01 and header["drive"]["serial"] == "S1"
    assert cli.main(["report", str(run), "--out", str(tmp_path / "r.html")]) == 0
    assert "not checked" in (tmp_path / "r.html").read_text()


def test_missing_samples_of_a_ppk2a_stay_missing(tmp_path, monkeypatch):
    path, _ = written(tmp_path, "ppk2a")
    gap = SimpleNamespace(missing=1000)
    events = [Samples([1e5] * 205, 0), gap, Samples([3e5] * 100, 1205)]
    monkeypatch.setitem(sys.modules, "ppk2lab", capture(iter_events=lambda: iter(events), gaps=[gap], start_index=0))
    (rail,) = recordings.read(path, {}).rails
    assert ((rail.t_ns - rail.t_ns[0]) // 10_000).tolist() == [*range(0, 200, 10), *range(1205, 1305, 10)]
    assert rail.W.tolist() == pytest.approx([0.5] * 20 + [1.5] * 10)


@pytest.mark.parametrize(
    "changed", [{"calibration": None}, {"timeline_degraded": True}, {"meta": SimpleNamespace(configuration={})}]
)
def test_a_ppk2a_without_times_amperes_or_volts_is_refused(tmp_path, monkeypatch, changed):
    path, _ = written(tmp_path, "ppk2a")
    monkeypatch.setitem(sys.modules, "ppk2lab", capture(**changed))
    with pytest.raises(UsageError):
        recordings.read(path, {})


def test_a_ppk2a_without_ppk2lab_advises_it(tmp_path, monkeypatch):
    path, _ = written(tmp_path, "ppk2a")
    monkeypatch.setitem(sys.modules, "ppk2lab", None)
    with pytest.raises(ToolMissing):
        recordings.read(path, {})


def test_the_bound_of_a_slow_recording_is_a_sample_and_its_claim(tmp_path, capsys):
    csv = power_csv(tmp_path / "p.csv", UTC_S, 3, rate=10)
    assert imported(capsys, tmp_path, csv)[1]["bound_ns"] == pytest.approx(100_000_000, rel=1e-3)
    assert imported(capsys, tmp_path, csv, "--clock-error", "2s")[1]["bound_ns"] == pytest.approx(2.1e9, rel=1e-3)


def test_an_imported_run_is_sent_to_influxdb(tmp_path, capsys):
    run, _ = imported(capsys, tmp_path, power_csv(tmp_path / "p.csv", UTC_S, 3))
    with FakeInflux() as fake:
        assert cli.main(["push", str(run), "--influx", fake.url]) == 0
        assert fake.count("power") >= 4


@pytest.mark.parametrize(
    "words, way",
    [
        (["p.csv"], "--begins"),
        (["u.csv", "--sync"], "--run"),
        (["u.csv", "--replace"], "--run"),
        (["u.csv", "--run", "x", "--clock-error", "1ms", "--model", "m"], "--model"),
        (["u.csv", "u.csv"], "one by one"),
        (["out.json"], "json+"),
        (["j_iops.1.log"], "--write_iops_log"),
        (["no.csv"], "path"),
    ],
)
def test_files_that_do_not_fit_are_one_error(tmp_path, capsys, monkeypatch, words, way):
    monkeypatch.chdir(tmp_path)
    power_csv(tmp_path / "u.csv", UTC_S, 1)
    (tmp_path / "p.csv").write_text("Time (s),Voltage (V),Current (A)\n0,5,1\n0.1,5,1\n0.2,5,1\n1.4,5,1\n")
    (tmp_path / "out.json").write_text('{"fio version": "fio-3.33", "jobs": []}\n')
    (tmp_path / "j_iops.1.log").write_text("")
    assert way in refused(capsys, tmp_path, *words)


@pytest.mark.parametrize(
    ("names", "steps"),
    [
        (["a-2", "a", "a"], ["a-2", "a", "a-3"]),
        (["a", "a", "a-2"], ["a", "a-2", "a-2-2"]),
        (["7", "!"], ["fio-7", "fio"]),
    ],
)
def test_each_job_has_a_step_of_its_own(names, steps):
    jobs = [foreign.Job(name, "fio-3.33", 1000, 1000.0 * i, 1.0, {}) for i, name in enumerate(names)]
    made = import_run._steps(import_run.Axis(0), None, jobs)
    assert [step.name for step in made] == steps
