"""`virtual` leaves files that are not its own as they are: no path given by mistake costs anybody a file."""

import json
import os
import signal
import socket
import stat
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from serving import Serving, refused, run

from ssdrig.base.errors import DriveError, UsageError
from ssdrig.virtual import bench, server
from ssdrig.virtual.device import admin, store, truth
from ssdrig.virtual.flash import feed

THESIS = b"my thesis\n" * 400
MIB = 1 << 20


def thesis(path):
    path.write_bytes(THESIS)
    return path


# --- the sockets


@pytest.mark.parametrize("kind", ["file", "empty file", "folder", "link to a file", "dead link", "fifo"])
def test_what_is_no_socket_stays_and_is_refused(tmp_path, kind):
    path, other = tmp_path / "x", thesis(tmp_path / "other")
    {
        "file": lambda: thesis(path),
        "empty file": path.touch,
        "folder": path.mkdir,
        "link to a file": lambda: path.symlink_to(other),
        "dead link": lambda: path.symlink_to("nowhere"),
        "fifo": lambda: os.mkfifo(path),
    }[kind]()
    before = path.lstat()
    with pytest.raises(UsageError, match="not a socket"):
        server.listen(str(path))
    assert path.lstat() == before and other.read_bytes() == THESIS


def test_a_socket_of_a_dead_server_is_replaced(tmp_path):
    path = str(tmp_path / "x")
    server.listen(path).close()
    listener = server.listen(path)
    assert stat.S_ISSOCK(os.stat(path).st_mode)
    with pytest.raises(UsageError, match="a server that answers there"):
        server.listen(path)
    server.shut(listener, path)
    assert not os.path.exists(path)


def test_a_file_that_took_the_place_of_the_socket_stays(tmp_path):
    path = tmp_path / "x"
    listener = server.listen(str(path))
    path.unlink()
    server.shut(listener, str(thesis(path)))
    assert path.read_bytes() == THESIS


# --- the drive's data


@pytest.mark.parametrize("length", [1, 4 * MIB - 1, 4 * MIB + 1, 8 * MIB])
def test_a_data_file_of_another_size_stays_and_is_refused(tmp_path, length):
    path = tmp_path / "big.img"
    path.write_bytes(os.urandom(length))
    before = path.read_bytes()
    with pytest.raises(UsageError, match=f"seen a file of {length} bytes"):
        store.open_store(str(path), 4 * MIB)
    assert path.read_bytes() == before


def test_a_data_file_of_this_drive_is_used_again_but_not_by_two_at_once(tmp_path):
    path = str(tmp_path / "data")
    first = store.open_store(path, 4 * MIB)
    first.bytes[:3] = (1, 2, 3)
    with pytest.raises(UsageError, match="another virtual drive uses"):
        store.open_store(path, 4 * MIB)
    first.close()
    again = store.open_store(path, 4 * MIB)
    assert again.bytes[:4].tolist() == [1, 2, 3, 0]
    again.close()


@pytest.mark.parametrize("path", ["/dev/null", "fifo", "folder"])
def test_data_in_what_is_no_regular_file_is_refused(tmp_path, path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo")
    os.mkdir("folder")
    with pytest.raises((UsageError, DriveError), match="no regular file|Is a directory"):
        store.open_store(path, 4 * MIB)


# --- the feed and the truth folder


def test_a_feed_where_a_file_lies_is_refused(tmp_path):
    path = thesis(tmp_path / "notes.txt")
    with pytest.raises(UsageError, match="a new file .* for the power feed; seen File exists"):
        feed.create(str(path), 0)
    feed.unlink(str(path))
    assert path.read_bytes() == THESIS
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(UsageError):
        feed.create(str(link), 0)
    assert path.read_bytes() == THESIS and link.is_symlink()


def test_a_feed_that_a_killed_server_left_is_replaced_and_removed(tmp_path):
    path = str(tmp_path / "feed")
    feed.create(path, 7)[0] = 1, 2
    assert np.all(feed.create(path, 8)[0] == (0xFFFFFFFF, 0))
    feed.unlink(path)
    assert not os.path.exists(path)


@pytest.mark.parametrize("name", ["energy.bin", "ledger.json", ".ledger.json.part", "counts.jsonl", "marks.jsonl"])
def test_files_of_another_kind_in_the_truth_folder_stay(tmp_path, name):
    path = thesis(tmp_path / name)
    with pytest.raises(UsageError, match="files of another kind"):
        truth.TruthFolder(str(tmp_path), None)
    assert path.read_bytes() == THESIS and list(tmp_path.iterdir()) == [path]


# --- the command


def taken(tmp_path, option) -> tuple[Path, list[str], Path]:
    """What the option names, the words of a server, and a file of somebody's in its way."""
    name, _, end = option.partition(" ")
    path = tmp_path / "x"
    if name == "--truth":
        path.mkdir()
        mine = thesis(path / "ledger.json")
    else:
        mine = thesis(tmp_path / f"x{end}")
    words = ["--preset", "sata-tlc", "--capacity", "512MiB", name, str(path)]
    return path, words + ([] if name == "--socket" else ["--socket", str(tmp_path / "nbd")]), mine


@pytest.mark.parametrize("option", ["--socket .admin", "--socket .truth", "--data", "--feed", "--truth"])
def test_the_command_names_the_file(tmp_path, option):
    path, words, mine = taken(tmp_path, option)
    error = refused(*words)
    assert error.exit_code == 2 and str(path) in str(error)
    assert mine.read_bytes() == THESIS


@pytest.mark.slow
def test_the_command_says_one_line_with_exit_code_2(tmp_path):
    path, words, mine = taken(tmp_path, "--socket")
    done = run(*words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert str(path) in done.stderr and "Traceback" not in done.stderr
    assert mine.read_bytes() == THESIS


# --- numbers that are none, at the truth and admin sockets

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from([10**400, -(10**400), float("inf"), "", "1e999", "\ud800", [], {}, [[]]]),
    st.text(max_size=5),
)


class NoDevice:
    """What the answers ask of a device, whose clock has just begun."""

    t0_ns, powered = 0, True

    def health(self):
        return {"power_log": False}

    def energy_J(self, t0_ns, t1_ns):
        return 0.0


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        ODD,
        st.fixed_dictionaries(
            {"op": st.one_of(ODD, st.sampled_from(["energy", "log"]))},
            optional={"t0_ns": ODD, "t1_ns": ODD, "lid": ODD},
        ),
        st.fixed_dictionaries({"op": st.just("energy"), "t0_ns": ODD, "t1_ns": ODD}),
    )
)
def test_no_request_ends_the_server(request_):
    for answer in (admin.answer_truth, admin.answer_admin):
        near_end, there = socket.socketpair()
        connection = admin.LineConnection(near_end, NoDevice(), answer)
        there.sendall(json.dumps(request_).replace("Infinity", "1e999").encode() + b"\n")
        connection.receive()
        connection.reply(1 << 62)
        assert isinstance(json.loads(there.recv(1 << 16)), dict)
        there.close()
        connection.close()


def test_an_infinite_time_is_answered_and_the_server_lives(tmp_path):
    served = Serving(tmp_path, "--preset", "sata-tlc", "--capacity", "512MiB", "--no-latency", "--data", "crc")
    try:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(served.socket + ".truth")
            asking.sendall(b'{"op": "energy", "t0_ns": 1e999, "t1_ns": -1e999}\n')
            assert "OverflowError" in json.loads(asking.recv(4096))["error"]
        assert served.truth(op="ledger")["simulated"] is True
    finally:
        assert served.end(signal.SIGTERM) == 0


# --- the folders that killed benches left


@pytest.fixture
def short():
    """A folder whose path leaves room for the name of a socket."""
    with tempfile.TemporaryDirectory(prefix="t", dir="/tmp") as folder:
        yield Path(folder)


def test_only_folders_that_a_dead_bench_left_are_swept(short, monkeypatch):
    monkeypatch.setattr(bench, "_bases", lambda: [short])
    mine = short / f"{bench.PREFIX}2026-results"
    mine.mkdir()
    thesis(mine / "thesis.txt")
    (running, lock), (_, its_lock) = bench._folder(), bench._folder()
    os.close(its_lock)  # as the kernel does when the owner ends
    bench._sweep()
    assert sorted(short.iterdir()) == sorted([mine, running]) and (mine / "thesis.txt").read_bytes() == THESIS
    os.close(lock)


def test_a_bench_of_another_pid_namespace_is_not_swept(short, monkeypatch):
    """A container that shares /tmp does not see the process that owns the folder."""
    monkeypatch.setattr(bench, "_bases", lambda: [short])
    monkeypatch.setattr(os, "getpid", lambda: 4_000_000)  # no such process here
    running, lock = bench._folder()
    bench._sweep()
    assert running.exists()
    os.close(lock)


def test_the_sockets_lie_elsewhere_where_their_paths_would_be_too_long(tmp_path, short, monkeypatch):
    long = tmp_path / ("x" * 90)
    long.mkdir()
    monkeypatch.setattr(bench, "_bases", lambda: [long, short])
    folder, lock = bench._folder()
    assert folder.parent == short and not list(long.iterdir())
    os.close(lock)
    monkeypatch.setattr(bench, "_bases", lambda: [long])
    with pytest.raises(DriveError, match="a path too long for a socket"):
        bench._folder()
