"""Run folders with what no run writes: files without an end, bombs, pipes, devices, links. Each command ends with one
error or a page, in bounded memory and CPU time."""

import functools
import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import folder_fuzz
import numpy as np
import pytest

from ssdrig.base.errors import JournalError
from ssdrig.powerloss import sessions
from ssdrig.reading import cuts
from ssdrig.runs import integrity

HUGE = 10 << 30
MEMORY_BYTES, CPU_S = 3 << 30, 120  # addresses, most of which nothing uses; of all commands of a case
RESIDENT_BYTES = 700 << 20
FILES = (
    *("events.jsonl", "run.json", "rig.bin", "notes.jsonl", "labels.json", "figures.json", "smart/001.json"),
    *("points.cursor", "points.made", "rejected.jsonl", "summary.bin", "fio/load/out.json", "fio/fill/start.json"),
)
# One process has imported what the commands need, and forks a copy a case: imports were two thirds of a case's CPU time
IMPORTED = (
    *(
        "ssdrig.report",
        "ssdrig.publish.lake.export",
        "ssdrig.publish.lake.query",
        "ssdrig.run.review.resume",
        "ssdrig.commands.runs",
    ),
    *("ssdrig.publish.influx.points", "ssdrig.base.kernels", "duckdb", "pyarrow.parquet", "pandas"),
)
SERVER = """if 1:
    import contextlib, importlib, json, os, resource, sys
    sys.path[:0] = {path!r}
    for name in {imported!r}:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    from ssdrig import cli
    for line in sys.stdin:
        case = json.loads(line)
        if (pid := os.fork()) == 0:
            os.chdir(case["out"])
            for fd, name in ((0, "/dev/null"), (1, "stdout"), (2, "stderr")):
                os.dup2(os.open(name, os.O_RDWR | os.O_CREAT, 0o600), fd)
            os.environ.update(case["environ"])
            resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))
            resource.setrlimit(resource.RLIMIT_CPU, ({cpu}, {cpu}))
            codes = []
            try:
                for words in case["words"]:
                    codes.append(cli.main(words))
            except BaseException:
                import traceback
                traceback.print_exc()
            sys.stdout.flush()
            most = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
            print("\\nCODES", codes, int(most.split()[1]) << 10, flush=True)
            os._exit(0)
        print(os.waitpid(pid, 0)[1], flush=True)
"""


def few(values, count: int) -> list:
    """The first of them for daily work; the others too, in a whole run of the tests."""
    return [*values[:count], *(pytest.param(value, marks=pytest.mark.slow) for value in values[count:])]


def commands_of(run: Path, out: Path) -> list[list[str]]:
    url = ["--influx", folder_fuzz.INFLUX, "--timeout", "0"]
    return [
        ["report", str(run), "--json", "--quiet"],
        ["report", str(run), "--out", str(out / "page.html"), "--csv", str(out / "csv"), "--quiet"],
        ["export", str(run), "--parquet", str(out / "lake"), "--quiet"],
        ["query", "SELECT count(*) FROM event", str(run)],
        ["push", str(run), *url, "--quiet"],
        ["runs", "--runs", str(run.parent), "--figures"],
        ["note", str(run), "typed", "--at", "1"],
        ["resume", str(run), "--dry-run", "--quiet"],
        ["review", "--resume", str(run), "--dry-run", "--quiet"],
        ["label", str(run), "--title", "typed"],
    ]


@functools.cache
def server() -> subprocess.Popen:
    code = SERVER.format(memory=MEMORY_BYTES, cpu=CPU_S, path=sys.path, imported=IMPORTED)
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.fixture(scope="module", autouse=True)
def ended():
    yield
    if server.cache_info().currsize:
        server().communicate()
        server.cache_clear()


def carried_out(run: Path, out: Path) -> list[int]:
    """The exit codes of all commands, in one process of little memory and time."""
    out.mkdir()
    environ = {f"XDG_{name}_HOME": str(out) for name in ("CACHE", "STATE", "DATA", "CONFIG")}
    case = {"out": str(out), "words": commands_of(run, out), "environ": environ}
    asked, answer = server().stdin, server().stdout
    print(json.dumps(case), file=asked, flush=True)
    status, stderr = answer.readline(), (out / "stderr").read_text()
    assert status == "0\n" and "Traceback" not in stderr, (status, stderr[-3000:])
    _, _, last = (out / "stdout").read_text().rpartition("CODES ")
    codes, _, resident = last.partition("]")
    assert int(resident) < RESIDENT_BYTES, f"{int(resident) >> 20} MiB"
    return json.loads(codes + "]")


@pytest.fixture
def run(tmp_path) -> Path:
    run = folder_fuzz.folder_of("virtual", tmp_path)
    for name in FILES:
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        if not (run / name).exists():
            (run / name).write_text("{}")
    return run


def assert_all_refused(codes: list[int]) -> None:
    *reads, runs, note, resume, review, label = codes
    assert {*reads, note, resume, review} == {JournalError.exit_code} and runs == 0 and label in (0, 8)


@pytest.mark.parametrize("name", few(FILES, 2))
def test_a_file_without_an_end_is_refused(run, tmp_path, name):
    """Of 10 GiB, of which nothing is on the disk."""
    os.truncate(run / name, HUGE)
    assert_all_refused(carried_out(run, tmp_path / "out"))


@pytest.mark.parametrize("name", few(["events.jsonl", "run.json", "smart/001.json", "labels.json", "notes.jsonl"], 1))
@pytest.mark.parametrize("what", ["nested", "one line", "UTF-16", "latin-1", "NUL", "digits", "nan", "empty"])
def test_a_document_that_is_none_ends_no_command_otherwise_than_with_an_error(run, tmp_path, name, what):
    limit = min(integrity.most_bytes(name), 16 << 20)
    text = (run / name).read_bytes()
    content = {
        "nested": b"[" * (limit - 1),
        "one line": b'{"kind": "' + b"x" * (limit - 20) + b'"}',
        "UTF-16": text.decode().encode("utf-16"),
        "latin-1": b'{"\xe4": "\xff"}\n',
        "NUL": b"\0" * 4096,
        "digits": b'{"t_ns": ' + b"9" * 100_000 + b"}\n",
        "nan": text.replace(b"1", b"NaN"),
        "empty": b"",
    }
    (run / name).write_bytes(content[what])
    codes = carried_out(run, tmp_path / "out")
    assert {*codes} <= {0, 2, 3, 6, JournalError.exit_code}
    assert name != "run.json" or what == "UTF-16" or codes[0] == JournalError.exit_code


@pytest.mark.parametrize("name", few(FILES, 1))
@pytest.mark.parametrize("what", ["pipe", "device", "link out", "folder", "link in a circle"])
def test_what_is_no_file_is_refused(run, tmp_path, name, what):
    (run / name).unlink()
    if what == "pipe":
        os.mkfifo(run / name)
    elif what == "device":
        try:
            os.mknod(run / name, 0o20666, os.makedev(1, 5))  # /dev/zero
        except PermissionError:
            pytest.skip("needs root: makes a device")
    elif what == "link out":
        (tmp_path / "outside").write_text("{}")
        (run / name).symlink_to(tmp_path / "outside")
    elif what == "folder":
        (run / name).mkdir()
    else:
        (run / name).symlink_to(Path(name).name)
    codes = carried_out(run, tmp_path / "out")
    assert {*codes} <= {0, 2, 3, 6, JournalError.exit_code}
    if what in ("pipe", "device", "link out"):
        assert_all_refused(codes)


def test_folders_in_folders_without_an_end_are_refused(run, tmp_path):
    folder = os.open(run, os.O_RDONLY)
    for _ in range(3000):  # deeper than a path may be long
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    assert_all_refused(carried_out(run, tmp_path / "out"))
    subprocess.run(["rm", "-rf", run / "d"], check=True)


def test_what_unpacks_without_an_end_is_read_as_damaged(tmp_path, monkeypatch):
    monkeypatch.setitem(integrity.MOST_BYTES, "history.bin", 1 << 20)
    (tmp_path / "history.bin.z").write_bytes(zlib.compress(bytes(64 << 20)))
    tracemalloc.start()
    try:
        with pytest.raises(zlib.error):
            sessions.rows_of(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def bomb(kind: str) -> bytes:
    """A small .npz whose array `volts` has 48 MiB, or has 512 GiB by its head alone."""
    made = io.BytesIO()
    shape = (12 << 20,) if kind == "unpacks" else (1 << 37,)
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"shape": shape, "fortran_order": False, "descr": "<f4"})
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as members, members.open("volts.npy", "w") as file:
        file.write(head.getvalue())
        for _ in range(48 if kind == "unpacks" else 0):
            file.write(bytes(1 << 20))
    return made.getvalue()


@pytest.mark.parametrize("kind", ["unpacks", "head"])
def test_arrays_without_an_end_are_read_as_damaged(tmp_path, kind):
    (tmp_path / "waveform.npz").write_bytes(bomb(kind))
    (tmp_path / "seen.npz").write_bytes(bomb(kind))
    tracemalloc.start()
    try:
        assert cuts.evidence(tmp_path, 1).volts is None
        with pytest.raises(ValueError):
            integrity.arrays(integrity.content(tmp_path / "seen.npz"), 16 << 20)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("packed", [b"", b"PK", bytes(100), pickle.dumps([1])])
def test_what_is_no_array_is_read_as_damaged(packed):
    with pytest.raises(ValueError):
        integrity.arrays(packed)


def test_objects_are_no_arrays():
    made = io.BytesIO()
    np.savez(made, volts=np.array([{"a": 1}], object))
    with pytest.raises(ValueError):
        integrity.arrays(made.getvalue())


def test_a_review_without_an_end_is_refused(tmp_path):
    review = folder_fuzz.review_of(tmp_path)
    os.truncate(review / "review.json", HUGE)
    codes = carried_out(review, tmp_path / "out")
    assert codes[1] == codes[7] == codes[8] == JournalError.exit_code
    shutil.rmtree(review)
