"""Power of another instrument, imported into a run: time within its bound, energy as the run's own rig has it."""

import gzip
import json
import shutil
import struct
import zipfile

import numpy as np
import pytest
import recorded
import synthetic_run

from ssdrig import cli
from ssdrig.base import table_file
from ssdrig.base.errors import UsageError
from ssdrig.meter import recordings, samples, tape
from ssdrig.reading import table
from ssdrig.runs import imported, integrity, journal

T, FIRST_NS = synthetic_run.T_RUN_NS, synthetic_run.T_RUN_NS + 3_750_000_000
MARKS = (recorded.mark(FIRST_NS + 10**9, 1), recorded.mark(FIRST_NS + 21 * 10**9, 2))
IOPS = [20_000] * 20


def watts(t_s):
    """Of the drive, by seconds since the first I/O: a level that changes each second, and the bursts of both marks."""
    host = FIRST_NS + np.rint(t_s * 1e9).astype(np.int64)
    order = np.argsort(host, kind="stable")
    bursts = np.empty(len(host))
    bursts[order] = recorded.active(MARKS, host[order])
    return 2.0 + 0.3 * np.sin(np.floor(t_s)) + 0.9 * bursts


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """(a run with a rig, the same run without one)"""
    folder = tmp_path_factory.mktemp("runs")
    more = {"zoom_s": 10, "watts": watts, "idle_s": 8}
    own = synthetic_run.write(folder / "own", IOPS, **more)
    bare = synthetic_run.write(folder / "bare", IOPS, power=False, **more)
    header = json.loads((bare / "run.json").read_text())
    (bare / "run.json").write_text(json.dumps({**header, "rig": None}))
    events = [{k: v for k, v in e.items() if k not in ("line", "crc")} for e in journal.events(bare)]
    marks = [{"t_ns": mark.begin_ns + 5 * 10**9, **recorded.event(mark)} for mark in MARKS]
    synthetic_run.seal(bare, sorted([*events[:-2], *marks], key=lambda e: e["t_ns"]) + events[-1:])
    return own, bare


@pytest.fixture
def bare(runs, tmp_path):
    run = tmp_path / "runs" / runs[1].name
    shutil.copytree(runs[1], run)
    return run


def exported(run, path, clock, utc=False, digits=9):
    """The samples of the rig as the CSV of an instrument with such a clock."""
    power = samples.load(run)
    own = clock.own(power.t_ns)
    if utc:
        own = own + synthetic_run.UTC_RUN_NS
    rows = zip(own.tolist(), power.V.tolist(), power.I.tolist())
    text = "".join(f"{t // 10**9}.{t % 10**9:09d},{v:.6f},{i:.8f}\n" for t, v, i in rows)
    path.write_text("Time (s),Voltage (V),Current (A)\n" + text)
    return path


def figures(run):
    return table.in_full(run)[:2]


def test_a_recording_with_drift_and_offset_gives_the_energy_of_the_runs_own_rig(runs, bare, tmp_path, capsys):
    clock = recorded.Clock(T, 3.0, 80.0)
    csv = exported(runs[0], tmp_path / "p.csv", clock)
    words = ["import", str(csv), "--run", str(bare), "--sync", "--accuracy", "0.5% + 2 mA", "--json"]
    assert cli.main(words) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["bound_ns"] <= 5_000_000
    assert abs(document["drift_ppm"] - 80.0) <= document["drift_error_ppm"]
    own, seen = figures(runs[0])[1], figures(bare)[1]
    names = [name for name, window in own["windows"].items() if window]
    assert {"all", "steady"} <= {*names}
    for name in names:
        window = seen["windows"][name]
        assert window["energy_J"] == pytest.approx(own["windows"][name]["energy_J"], rel=2e-3)
    assert 0 < seen["windows"]["steady"]["clock_error_us"] <= document["bound_ns"] / 1000 + 2  # it is between the marks
    power, truth = samples.load(bare), samples.load(runs[0])
    n = len(power.t_ns)
    assert n == len(truth.t_ns)
    between = (truth.t_ns > MARKS[0].begin_ns) & (truth.t_ns < MARKS[1].begin_ns + 4 * 10**9)
    assert np.abs(power.t_ns - truth.t_ns)[between].max() <= document["bound_ns"]
    assert (np.abs(power.t_ns - truth.t_ns) <= power.err_ns + truth.err_ns).all()
    assert seen["windows"]["all"]["power_uncertainty_percent"] > 0.5
    assert not integrity.damage(bare)


def test_utc_with_a_claim_is_never_better_than_the_claim(runs, bare, tmp_path, capsys):
    csv = exported(runs[0], tmp_path / "p.csv", recorded.Clock(T, 0.0, 0.0), utc=True)
    assert cli.main(["import", str(csv), "--run", str(bare), "--clock-error", "20ms", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["bound_ns"] >= 20_000_000 and document["accuracy"] is None
    seen = figures(bare)[1]
    window = seen["windows"]["all"]
    assert window["clock_error_us"] >= 20_000
    assert window["power_uncertainty_percent"] is None
    assert any(note.startswith("power_uncertainty_percent:") for note in seen["notes"])
    assert window["energy_J"] == pytest.approx(figures(runs[0])[1]["windows"]["all"]["energy_J"], rel=2e-3)


def test_relative_times_begin_where_the_user_says(runs, bare, tmp_path, capsys):
    csv = exported(runs[0], tmp_path / "p.csv", recorded.Clock(T, 0.0, 0.0))
    plain = ["import", str(csv), "--run", str(bare), "--clock-error", "5ms"]
    assert cli.main(plain) == UsageError.exit_code
    assert "--begins" in capsys.readouterr().err
    ns = synthetic_run.UTC_RUN_NS
    begins = f"{np.datetime64(ns // 10**9, 's')}.{ns % 10**9:09d}Z"
    assert cli.main([*plain, "--begins", begins]) == 0
    energies = [figures(run)[1]["windows"]["all"]["energy_J"] for run in (bare, runs[0])]
    assert energies[0] == pytest.approx(energies[1], rel=2e-3)


@pytest.mark.parametrize(
    "more, way",
    [
        ([], "--sync"),
        (["--sync", "--clock-error", "1ms"], "leave one out"),
        (["--sync", "--accuracy", "good"], "--accuracy"),
        (["--sync", "--accuracy", "V: 1%"], "--accuracy"),
        (["--sync", "--voltage", "much"], "--voltage"),
        (["--sync", "--column", "what"], "--column"),
        (["--clock-error", "1ms", "--begins", "2020-01-01T00:00:00Z"], "time zone"),
    ],
)
def test_words_that_do_not_fit_are_one_error_and_change_nothing(runs, bare, tmp_path, capsys, more, way):
    csv = exported(runs[0], tmp_path / "p.csv", recorded.Clock(T, 0.0, 0.0))
    assert cli.main(["import", str(csv), "--run", str(bare), *more]) == UsageError.exit_code
    assert way in capsys.readouterr().err
    assert not (bare / imported.NAME).exists() and (bare / "rig.bin").stat().st_size == 0


def test_a_run_takes_one_recording_and_a_rigs_power_stays(runs, bare, tmp_path, capsys):
    csv = exported(runs[0], tmp_path / "p.csv", recorded.Clock(T, 3.0, 80.0))
    words = ["import", str(csv), "--sync", "--run"]
    assert cli.main([*words, str(runs[0])]) == UsageError.exit_code
    assert cli.main([*words, str(bare)]) == 0
    assert cli.main([*words, str(bare)]) == UsageError.exit_code
    capsys.readouterr()
    assert cli.main([*words, str(bare), "--replace"]) == 0
    assert "offset" in capsys.readouterr().out
    (bare / "rig.bin").write_bytes((bare / "rig.bin").read_bytes()[:-3])
    assert [words for words in integrity.damage(bare) if words.startswith("rig.bin")]


def test_the_page_names_the_instrument_and_not_a_board(runs, bare, tmp_path, capsys):
    csv = exported(runs[0], tmp_path / "p.csv", recorded.Clock(T, 3.0, 80.0))
    assert cli.main(["import", str(csv), "--run", str(bare), "--sync"]) == 0
    assert cli.main(["report", str(bare), "--out", str(tmp_path / "r.html")]) == 0
    page = (tmp_path / "r.html").read_text()
    assert "imported from p.csv" in page and "not calibrated" not in page


# ---- files


def test_quarch_ppk_and_generic_csv_are_read_to_their_watts(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(
        "Time us,5V voltage mV,5V current uA,12V voltage mV,12V current uA\n0,5000,1000000,12000,500000\n"
        "4,5010,1000000,12000,0\n8,5000,2000000,12000,0\n"
    )
    seen = recordings.read(path, {})
    assert seen.source == "Quarch CSV" and not seen.utc and [rail.name for rail in seen.rails] == ["5V", "12V"]
    path.write_text("Timestamp(ms),Current(uA),D0-D7\n0,50000,0\n1,60000,0\n2,0,0\n")
    with pytest.raises(UsageError, match="--voltage"):
        recordings.read(path, {})
    seen = recordings.read(path, {}, 3.3)
    assert seen.rails[0].W.tolist() == pytest.approx([0.165, 0.198, 0.0]) and seen.notes
    path.write_text(
        "# made by x\nmodel;y\nDate;Leistung (W);Spannung (V)\n2026-11-28T10:00:00,5Z;1,5;5\n"
        "2026-11-28T10:00:01,5Z;2,5;5\n"
    )
    chosen = recordings.columns.chosen(["t=Date:utc,W=Leistung,V=Spannung"], recordings.ROLES)
    seen = recordings.read(path, chosen)
    assert seen.utc and seen.rails[0].W.tolist() == [1.5, 2.5] and np.diff(seen.rails[0].t_ns).tolist() == [10**9]
    path.write_text("1000,5.0,20\n1001,5.0,30\n1002,5.0,30\n")
    chosen = recordings.columns.chosen(["t=1:ms,V=2:V,A=3:mA"], recordings.ROLES)
    assert recordings.read(path, chosen).rails[0].W.tolist() == pytest.approx([0.1, 0.15, 0.15])


@pytest.mark.parametrize("end", ["3,5,3.30", "3,5,3.3\r", "3", "3,5,3.301 "])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_last_line_that_may_be_cut_is_left_out_with_a_note(tmp_path, end, pack):
    """3.30 may be of 3.301."""
    text = f"Time (s),Voltage (V),Current (A)\n1,5,1\n2,5,1\n{end}"
    (tmp_path / "a.csv").write_bytes(pack(text.encode()))
    seen = recordings.read(tmp_path / "a.csv", {})
    assert seen.rails[0].W.tolist() == [5, 5] and seen.notes == (table_file.NO_LINE_END,)
    (tmp_path / "a.csv").write_bytes(pack(f"{text}\n".encode()))
    if "3,5" in end:
        assert len(recordings.read(tmp_path / "a.csv", {}).rails[0].W) == 3
    (tmp_path / "a.csv").write_bytes(pack(text[: text.rindex("\n")].encode()))
    with pytest.raises(UsageError):  # one sample is left
        recordings.read(tmp_path / "a.csv", {})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello\n",
        "a,b\n1,2\n",
        "Time (s),Current\n1,2\n2,3\n",
        "Time,Current (A)\n1,2\n2,3\n",
        "Time (s),Power (W),Voltage (V)\n1,2,5\n1,3,5\n",
        "Time (s),Power (W),Voltage (V)\n1,2,5\nx,3,5\n",
    ],
)
def test_a_file_that_is_no_recording_is_one_error(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(UsageError):
        recordings.read(tmp_path / "a.csv", {})


def test_a_ppk2_file_and_powenetics_packets(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.ppk2", "w") as archive:
        archive.writestr("session.raw", b"".join(struct.pack("<fH", 1000.0 * (n % 2), 0) for n in range(100_000)))
        about = {"metadata": {"samplesPerSecond": 100_000, "startSystemTime": 1_795_000_000_000}, "formatVersion": 2}
        archive.writestr("metadata.json", json.dumps(about))
    seen = recordings.read(tmp_path / "a.ppk2", {}, 5.0)
    rail = seen.rails[0]
    assert seen.utc and len(rail.t_ns) == 10_000 and rail.W == pytest.approx(0.0025)
    assert rail.t_ns[-1] == 1_795_000_000_000 * 10**6 + 10**9
    (tmp_path / "b.ppk2").write_bytes((tmp_path / "a.ppk2").read_bytes()[:-300])
    with pytest.raises(UsageError, match="ppk2"):
        recordings.read(tmp_path / "b.ppk2", {}, 5.0)
    rows = [(number, [(3300, 100), (0, 0), (12_000, 2000), *[(0, 0)] * 10]) for number in (65534, 65535, 1, 2)]
    (tmp_path / "p.bin").write_bytes(b"".join(recordings.powenetics_packet(*row) for row in rows))
    seen = recordings.read(tmp_path / "p.bin", {})
    assert [rail.name for rail in seen.rails] == ["ATX 3.3V", "ATX 12V"]
    assert [rail.W[0] for rail in seen.rails] == pytest.approx([0.33, 24.0])
    assert np.diff(seen.rails[0].t_ns).tolist() == [10**6, 2 * 10**6, 10**6] and "1 packets" in seen.notes[0]


def test_a_fast_recording_is_averaged_and_keeps_its_energy():
    t = np.arange(100_000, dtype=np.int64) * 1000
    W = np.random.default_rng(1).uniform(0, 10, len(t))
    thin_t, _, thin_W = recordings.thinned(t, np.full(len(t), 5.0), W)
    assert len(thin_t) == 1000 and thin_W.mean() == pytest.approx(W.mean())


def test_an_accuracy_is_read_as_a_manual_states_it():
    assert tape.accuracy("0.5% + 2 mA") == [{"of": "W", "percent": 0.5, "V": 0.0, "A": 0.002, "W": 0.0}]
    stated = tape.accuracy("V: 0.1% + 5 mV, A: 200 ppm + 1 mA")
    assert [(row["of"], row["percent"], row["V"] or row["A"]) for row in stated] == [
        ("V", 0.1, 0.005),
        ("A", 0.02, 0.001),
    ]
