"""Files that no instrument should write, and some do: damaged, endless, impossible, changing, with markup in names."""

import copy
import gzip
import json
import os
import random
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from ssdrig import cli
from ssdrig.base import table_file, temporary
from ssdrig.base.errors import JournalError, SsdrigError, UsageError
from ssdrig.commands import import_run
from ssdrig.load import foreign
from ssdrig.meter import recordings
from ssdrig.reading import table
from ssdrig.runs import imported, integrity, parts

UTC_S = 1_795_177_500
SOUND = {
    "fio version": "fio-3.33",
    "timestamp_ms": UTC_S * 1000 + 4000,
    "jobs": [
        {
            "jobname": "mix",
            "groupid": 0,
            "job_start": UTC_S * 1000,
            "job_runtime": 4000,
            "job options": {"numjobs": "1"},
            "usr_cpu": 1.5,
            "sys_cpu": 2.5,
            "read": {
                "io_bytes": 4096 * 1000,
                "total_ios": 1000,
                "runtime": 4000,
                "lat_ns": {"mean": 90_000.0, "N": 1000, "percentile": {"50.000000": 80_000}, "bins": {"80000": 1000}},
                "clat_ns": {"mean": 80_000.0, "N": 1000, "percentile": {"50.000000": 80_000}, "bins": {"80000": 1000}},
            },
        }
    ],
    "disk_util": [{"name": "nvme0n1"}],
}
ODD = [
    None,
    True,
    -1,
    0,
    1 << 70,
    1e300,
    float("nan"),
    "",
    "x" * 300,
    "\ud800",
    "\x1b]0;t\x07",
    [],
    [[]],
    {},
    {"a": []},
]


def csv_of(path, rows=4000, heading="Power (W)", watts=2.5, begin_s=UTC_S):
    text = "".join(f"{begin_s + n / 1000:.3f},{watts}\n" for n in range(rows))
    path.write_text(f"Time (s),{heading}\n{text}")
    return path


def given(tmp_path, *words):
    return cli.main(["import", *map(str, words), "--runs", str(tmp_path / "runs")])


def refused(tmp_path, *words):
    """An import that fails with one error leaves nothing, not even hidden."""
    assert given(tmp_path, *words) in (UsageError.exit_code, JournalError.exit_code)
    return not list((tmp_path / "runs").glob("*")) and not list((tmp_path / "runs").glob(".*"))


@pytest.mark.parametrize("name", ["p.csv.gz", "Main power - Ace.csv", "out_iops.1.log", "out.json"])
def test_a_damaged_gz_is_one_error(tmp_path, name):
    rows = b"Time (s),Power (W)\n" + os.urandom(40_000).hex().encode()
    packed = gzip.compress(rows)
    for broken in (packed[:-9], packed[:2000] + bytes(200) + packed[2200:], packed[:12], b"\x1f\x8b"):
        (tmp_path / name).write_bytes(broken)
        assert refused(tmp_path, tmp_path / name, "--voltage", "5")


@pytest.mark.parametrize("name", ["p.csv", "Main power - Ace.csv"])
def test_a_line_without_an_end_fills_no_memory(tmp_path, name):
    with gzip.open(tmp_path / name, "wb", 9) as file:
        for _ in range(300):
            file.write(b"7" * (1 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(UsageError):
            recordings.read(tmp_path / name, {})
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()
    assert refused(tmp_path, tmp_path / name, "--voltage", "5")


def test_a_log_or_a_document_of_gigabytes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(foreign, "MOST_LOG_BYTES", 1000)
    monkeypatch.setattr(foreign, "MOST_JSON_BYTES", 1000)
    (tmp_path / "a_iops.1.log").write_bytes(gzip.compress(b"1000, 5, 0, 0\n" * 100))
    (tmp_path / "out.json").write_text(json.dumps(SOUND | {"more": "x" * 2000}, indent=1))
    for name in ("a_iops.1.log", "out.json"):
        assert refused(tmp_path, tmp_path / name)


def test_an_overflow_of_the_instrument_is_no_number(tmp_path):
    path = csv_of(tmp_path / "p.csv", 3000)
    lines = path.read_text().splitlines()
    for at, value in ((100, "9.9e37"), (200, "-9.9e37"), (300, "9.91E+37"), (400, "inf"), (500, "nan")):
        lines[at] = f"{lines[at].split(',')[0]},{value}"
    path.write_text("\n".join(lines) + "\n")
    recording = recordings.read(path, {}, 5.0)
    (rail,) = recording.rails
    assert len(rail.W) == 2995 and set(rail.W.tolist()) == {2.5}
    assert any("5 lines without a number" in note for note in recording.notes)


@pytest.mark.parametrize(("volts", "amperes"), [("5000", "1"), ("-5000", "1"), ("12", "1e5"), ("1e300", "1e300")])
def test_a_drive_on_5_kV_is_another_unit(tmp_path, volts, amperes):
    rows = "".join(f"{UTC_S + n / 1000:.3f},{volts},{amperes}\n" for n in range(2000))
    (tmp_path / "p.csv").write_text(f"Time (s),Voltage (V),Current (A)\n{rows}")
    assert refused(tmp_path, tmp_path / "p.csv")


@pytest.mark.parametrize("begins", ["9998-01-01", "0001-01-01", "1970-01-01", "1969-12-31", "2200-01-01"])
def test_a_clock_that_is_not_set_is_refused(tmp_path, begins):
    rows = "".join(f"{begins}T00:00:0{n // 100}.{n % 100:02d}Z,2.5\n" for n in range(400))
    (tmp_path / "p.csv").write_text(f"Time,Power (W)\n{rows}")
    assert refused(tmp_path, tmp_path / "p.csv", "--voltage", "5")


@pytest.mark.parametrize(("zone", "noted"), [("", True), ("Z", False), ("+02:00", False), ("-05:30", False)])
def test_times_without_a_zone_are_noted(tmp_path, zone, noted):
    rows = "".join(f"2026-11-28T10:00:0{n}{zone},5,2.5\n" for n in range(4))
    (tmp_path / "p.csv").write_text(f"Time,Voltage (V),Power (W)\n{rows}")
    notes = recordings.read(tmp_path / "p.csv", {}).notes
    assert any("no zone" in note for note in notes) is noted


@pytest.mark.parametrize("text", ["\ufeff{}", "{}"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_marks_and_line_ends_of_windows(tmp_path, text, end):
    lines = csv_of(tmp_path / "p.csv").read_text().replace("\n", end)
    (tmp_path / "p.csv").write_bytes(text.format(lines).encode())
    assert recordings.read(tmp_path / "p.csv", {}, 5.0).rails[0].W.mean() == 2.5


def test_an_empty_file_a_pipe_and_a_device_are_one_error(tmp_path):
    (tmp_path / "empty.csv").touch()
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    (tmp_path / "folder.csv").mkdir()
    for name in ("empty.csv", "pipe.csv", "zero.csv", "folder.csv"):
        assert refused(tmp_path, tmp_path / name)


def test_a_name_that_is_no_text_is_imported(tmp_path, capsys):
    name = os.fsdecode(b"pow\xe4r \x1b[31m.csv")
    csv_of(tmp_path / name)
    assert given(tmp_path, tmp_path / name, "--voltage", "5", "--model", os.fsdecode(b"\xff<script>")) == 0
    (run,) = parts.all_runs(tmp_path / "runs")
    assert not integrity.damage(run) and "\x1b" not in capsys.readouterr().out
    assert cli.main(["report", str(run), "--out", str(tmp_path / "r.html")]) == 0
    assert "<script>?" not in (tmp_path / "r.html").read_text()


def test_markup_in_headings_and_jobs_stays_text(tmp_path, capsys):
    csv_of(tmp_path / "p.csv", heading='<img src=x onerror=alert(1)> \x1b[2J "a" (W)')
    document = copy.deepcopy(SOUND)
    document["jobs"][0]["jobname"] = "<script>alert(1)</script>\x1b]0;x\x07"
    document["disk_util"][0]["name"] = "<b onclick=x>"
    document["fio version"] = "fio-<i>"
    (tmp_path / "out.json").write_text(json.dumps(document, indent=1))
    assert given(tmp_path, tmp_path / "p.csv", tmp_path / "out.json", "--voltage", "5", "--clock-error", "1ms") == 0
    assert "\x1b" not in capsys.readouterr().out
    (run,) = parts.all_runs(tmp_path / "runs")
    assert cli.main(["report", str(run), "--out", str(tmp_path / "r.html")]) == 0
    page = (tmp_path / "r.html").read_text()
    for markup in ("<img src=x", "<script>alert", "<b onclick", "fio-<i>"):
        assert markup not in page


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path, read = csv_of(tmp_path / "p.csv"), recordings.read

    def growing(*words):
        with open(path, "a") as file:
            file.write("\n")
        return read(*words)

    monkeypatch.setattr(recordings, "read", growing)
    assert refused(tmp_path, path, "--voltage", "5")


def test_marks_within_quotes_move_no_column(tmp_path):
    """The voltage of a row was once what stood after the comma of its name."""
    rows = "".join(f'{n / 10},"A, 7",3.3,2\n' for n in range(20))
    (tmp_path / "p.csv").write_text(f'"time (s)","rail","voltage (V)","current (A)"\n{rows}')
    (rail,) = recordings.read(tmp_path / "p.csv", {}, None).rails
    assert set(rail.V) == {3.3} and rail.W == pytest.approx(6.6)
    (tmp_path / "p.csv").write_text('time (s),voltage (V),current (mA)\n0,3.3,5\n1,3.3,"1,234"\n')
    with pytest.raises(UsageError):
        recordings.read(tmp_path / "p.csv", {}, None)


def test_utf16_is_refused_in_words(tmp_path):
    (tmp_path / "p.csv").write_bytes("time (s),voltage (V),current (A)\n0,3.3,5\n1,3.3,5\n".encode("utf-16"))
    with pytest.raises(UsageError) as refusal:
        recordings.read(tmp_path / "p.csv", {}, None)
    assert refusal.value.seen == "UTF-16"


def test_an_import_that_is_killed_leaves_no_run(tmp_path, monkeypatch):
    csv_of(tmp_path / "p.csv")

    def killed(*_, **__):
        raise SystemExit(9)

    with monkeypatch.context() as patch:
        patch.setattr(imported, "document", killed)
        patch.setattr(temporary.shutil, "rmtree", lambda *_, **__: None)  # as SIGKILL leaves it
        with pytest.raises(SystemExit):
            given(tmp_path, tmp_path / "p.csv", "--voltage", "5")
    (left,) = (tmp_path / "runs").iterdir()
    assert not parts.all_runs(tmp_path / "runs")
    assert cli.main(["runs", "--runs", str(tmp_path / "runs"), "--json"]) == 0
    with import_run.hidden(str(tmp_path / "runs")) as used:  # by an import that goes on
        assert not left.exists() and used.exists()
        given(tmp_path, tmp_path / "p.csv", "--voltage", "5")
        assert used.exists() and len(parts.all_runs(tmp_path / "runs")) == 1
    assert not [*(tmp_path / "runs").glob(".*")]


@pytest.mark.parametrize("room", [20_000, 60_000, 150_000])
def test_a_full_disk_is_one_error_and_leaves_nothing(tmp_path, room):
    csv_of(tmp_path / "p.csv", 20_000)
    words = ["import", str(tmp_path / "p.csv"), "--voltage", "5", "--runs", str(tmp_path / "runs")]
    code = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    code += f"resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))\n"
    code += f"from ssdrig import cli; raise SystemExit(cli.main({words!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == JournalError.exit_code and "Traceback" not in done.stderr
    assert not [*(tmp_path / "runs").glob("*"), *(tmp_path / "runs").glob(".*")]


def mutated(document, rng):
    """The document with some of its values exchanged for odd ones."""
    document = copy.deepcopy(document)
    for _ in range(rng.randint(1, 3)):
        at = document
        while True:
            key = rng.choice(list(at) if isinstance(at, dict) else range(len(at)))
            if isinstance(at[key], dict | list) and at[key] and rng.random() < 0.8:
                at = at[key]
                continue
            at[key] = copy.deepcopy(rng.choice(ODD))
            break
    return document


def test_documents_with_odd_values_are_read_or_refused(tmp_path):
    rng, taken = random.Random(7), 0
    for number in range(400):
        (tmp_path / "out.json").write_text(json.dumps(mutated(SOUND, rng), indent=1))
        try:
            jobs = foreign.read(tmp_path / "out.json", [])
        except SsdrigError:
            continue
        taken += 1
        assert all(job.utc_ms is None or 0 < job.utc_ms < foreign.MOST_MS for job in jobs), number
        if number % 8 == 0 and given(tmp_path, tmp_path / "out.json") == 0:
            run = parts.all_runs(tmp_path / "runs")[0]
            table.load(run, by_second=True)
    assert taken > 40


@pytest.mark.parametrize(
    "changed",
    [
        {"job_runtime": 1 << 50, "read": {"runtime": 1 << 50, "total_ios": 5, "io_bytes": 5}},
        {"job_start": 1 << 60},
        {"job_start": 10**400},
        {"job_start": 1},
    ],
)
def test_jobs_that_no_fio_has_run_are_refused(tmp_path, changed):
    document = copy.deepcopy(SOUND)
    document["jobs"][0] |= changed
    (tmp_path / "out.json").write_text(json.dumps(document, indent=1))
    assert refused(tmp_path, tmp_path / "out.json")


@pytest.mark.parametrize(
    "row", ["999999999999999999, 5, 0, 0", "100, 999999999999999999, 0, 0", "1795177500000, 5, 7, 0"]
)
def test_logs_with_impossible_rows_are_refused(tmp_path, row):
    begin = 1000 * UTC_S
    (tmp_path / "a_iops.1.log").write_text(f"{begin}, 5, 0, 0\n{begin + 500}, 5, 0, 0\n{row}\n")
    assert refused(tmp_path, tmp_path / "a_iops.1.log")


def test_a_folder_that_takes_nothing_is_one_error(tmp_path):
    csv_of(tmp_path / "p.csv")
    (tmp_path / "runs").write_text("a file of mine")
    assert given(tmp_path, tmp_path / "p.csv", "--voltage", "5") == JournalError.exit_code
    assert (tmp_path / "runs").read_text() == "a file of mine"


def test_memory_of_a_long_recording_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(table_file, "MOST_SAMPLES", 3000)
    monkeypatch.setattr(table_file, "LINES_AT_ONCE", 1000)
    csv_of(tmp_path / "p.csv", 4000)
    assert refused(tmp_path, tmp_path / "p.csv", "--voltage", "5")


def test_otii_channels_become_a_run(tmp_path, capsys):
    for name, value in (("Main current", 0.5), ("Main voltage", 5)):
        rows = "".join(f"{n / 1000:.6f},{value}\n" for n in range(4000))
        (tmp_path / f"{name} - Arc.csv").write_text(f'"Timestamp","Value"\n{rows}')
    files = sorted(tmp_path.glob("*.csv"))
    begins = "{}Z".format(np.datetime64(UTC_S, "s"))
    assert given(tmp_path, *files, "--begins", begins, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["rails"], answer["source"]) == (["Main"], "Otii CSV (Arc)")
    assert answer["file"] == "Main current - Arc.csv, Main voltage - Arc.csv" and len(answer["sha256"]) == 64
    (row,) = table.load(parts.all_runs(tmp_path / "runs")[0]).rows
    assert row.windows["all"]["power_mean_W"] == pytest.approx(2.5)
    assert refused(tmp_path / "no", *files, "--begins", begins, "--column", "t=1:s,A=2:A")
