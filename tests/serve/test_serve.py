"""The virtual drive's server as a process: its words, admin and truth sockets, power cut, its end."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
from serving import PATIENCE_S, TRIES, forked, refused, run, serving, shared  # noqa: F401  fixtures
from simboard import until

from ssdrig.base.errors import DriveError, JournalError
from ssdrig.virtual.device import truth
from ssdrig.virtual.flash import feed

pytestmark = pytest.mark.keeps_time


# --- counters


def test_smart_and_ledger_agree_with_what_was_done(serving, tmp_path):
    server = serving("--preset", "sata-tlc", "--capacity", "1GiB", "--no-latency")
    with server.client() as client:
        for i in range(100):
            client.write(i << 17, b"x" * 131072)
        client.flush()
        assert client.read(0, 65536) == b"x" * 65536
    ledger = server.truth(op="ledger")
    assert ledger["host_write_bytes"] == 100 * 131072 and ledger["host_read_bytes"] == 65536
    assert ledger["host_write_commands"] == 100 and ledger["mapped_pages"] == 3200
    c0 = bytes.fromhex(server.admin(op="log", lid=192)["hex"])
    h2 = bytes.fromhex(server.admin(op="log", lid=2)["hex"])
    assert int.from_bytes(c0[:16], "little") == ledger["nand_write_bytes"] >= ledger["host_write_bytes"]
    assert int.from_bytes(h2[48:64], "little") == 26  # 13 107 200 bytes in units of 512 000, rounded up
    assert len(bytes.fromhex(server.admin(op="log", lid=9)["hex"])) == 512
    document = server.admin(op="smartctl")
    assert document["nvme_smart_health_information_log"]["data_units_written"] == 26
    assert document["model_name"].startswith("SIMULATED") and document["serial_number"] == server.ready["serial"]
    assert sum(server.truth(op="pe")["pe_cycles"]) == ledger["erases"]
    shown = forked(tmp_path, "ledger", "--socket", server.socket)
    assert shown.returncode == 0 and json.loads(shown.stdout)["host_write_bytes"] == 100 * 131072


def test_format_purges(serving):
    server = serving("--preset", "sata-tlc", "--capacity", "1GiB", "--no-latency")
    with server.client() as client:
        client.write(0, b"x" * (1 << 20))
        server.admin(op="format")
        assert client.read(0, 1 << 20) == bytes(1 << 20)
    assert server.truth(op="ledger")["mapped_pages"] == 0


def test_admin_refuses_nonsense_and_stays(shared):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(PATIENCE_S)
        sock.connect(shared.ready["admin"])
        for line in (
            b"no json",
            b"[]",
            b"{}",
            b'{"op": "explode"}',
            b'{"op": "log", "lid": 7}',
            b'{"op":"log","lid":[]}',
            b"\xff\xfe",
            b"[" * 5000,
        ):
            sock.sendall(line + b"\n")
            assert "error" in json.loads(sock.makefile("rb").readline()), line
        sock.sendall(b'{"op": "identify"}\n{"op": "power_on"}\n')
        answers = sock.makefile("rb")
        assert json.loads(answers.readline())["preset"] == "sata-tlc"
        assert "power already" in json.loads(answers.readline())["error"]
    with pytest.raises(DriveError, match="unknown op"):
        shared.admin(op="ledger")  # truth is not for those who measure


def test_truth_folder_outlives_the_server(serving, tmp_path):
    server = serving("--preset", "sata-tlc", "--capacity", "1GiB", "--data", "crc", "--truth", str(tmp_path / "truth"))
    start = time.monotonic_ns()
    with server.client() as client:
        for i in range(300):
            client.write(i << 17, bytes(131072))
        client.flush()
    end = time.monotonic_ns()
    time.sleep(0.02)  # a millisecond counts once it is over
    asked = server.truth(op="energy", t0_ns=start, t1_ns=end)["energy_J"]
    assert server.end() == 0
    energy = truth.energy_between(tmp_path / "truth", start, end)
    assert energy == pytest.approx(asked, rel=1e-3) and energy > 0
    ledger = truth.read_ledger(tmp_path / "truth")
    assert ledger["host_write_bytes"] == 300 * 131072
    whole = truth.energy_between(tmp_path / "truth", ledger["t_ns"] - ledger["model_t_ns"], ledger["t_ns"] - 1_000_000)
    # the ledger also has what is laid down up to 250 ms ahead
    assert 0 <= ledger["energy_J"] - whole < 0.26 * 3
    with pytest.raises(JournalError, match="within the record"):
        truth.energy_between(tmp_path / "truth", start, end + 10**12)
    counted = truth.counts_between(tmp_path / "truth", ledger["t_ns"] - ledger["model_t_ns"], ledger["t_ns"])
    assert {key: ledger[key] for key in truth.COUNTS} == counted
    assert ledger["host_write_commands"] == 300 and 0 < ledger["host_latency_ns"] / 300 < 1e9
    with pytest.raises(JournalError, match="within the record"):
        truth.counts_between(tmp_path / "truth", start, end + 10**12)
    assert json.loads(forked(tmp_path, "ledger", "--truth", str(tmp_path / "truth")).stdout) == ledger


def test_a_load_that_ends_between_two_lines_of_the_ledger_is_counted_to_its_end(tmp_path):
    """100 commands a second to 2.3 s: what came by then is not spread over the rest of the second."""
    came = [(0, 0, 0), (1, 1, 100), (2, 2, 200), (3, 2.3, 230), (4, 2.3, 230)]
    lines = [
        {"t_ns": int(t * 1e9), "last_command_t_ns": int(last * 1e9)} | dict.fromkeys(truth.COUNTS, n)
        for t, last, n in came
    ]
    (tmp_path / "counts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    counted = [
        truth.counts_between(tmp_path, 1_000_000_000, t1)["host_write_commands"] for t1 in (2_300_000_000, 10**9 * 4)
    ]
    assert counted == pytest.approx([130, 130])
    assert truth.counts_between(tmp_path, 1_000_000_000, 2_150_000_000)["host_write_bytes"] == pytest.approx(115)


def test_a_load_that_begins_between_two_lines_of_the_ledger_is_counted_from_its_start(tmp_path):
    """100 commands a second from 1.8 s on: none came in the first part of that second."""
    came = [(0, None, 0), (1, None, 0), (2, 1.8, 20), (3, 2.0, 120)]
    lines = [
        {"t_ns": int(t * 1e9), "first_command_t_ns": first and int(first * 1e9)} | dict.fromkeys(truth.COUNTS, n)
        for t, first, n in came
    ]
    (tmp_path / "counts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    edges = ((10**9, 1_800_000_000), (1_800_000_000, 3 * 10**9), (1_900_000_000, 2_500_000_000))
    counted = [truth.counts_between(tmp_path, *edge)["host_write_commands"] for edge in edges]
    assert counted == pytest.approx([0, 120, 60])


def test_first_command_since_the_last_line_of_the_ledger_is_in_its_line(serving, tmp_path):
    server = serving("--preset", "sata-tlc", "--capacity", "1GiB", "--truth", str(tmp_path / "truth"))
    start_ns = time.monotonic_ns()
    with server.client() as client:
        client.write(0, bytes(4096))
    end_ns = time.monotonic_ns()
    assert server.end() == 0
    lines = [json.loads(line) for line in (tmp_path / "truth/counts.jsonl").read_text().splitlines()]
    (first_ns,) = [line["first_command_t_ns"] for line in lines if line["first_command_t_ns"]]
    assert start_ns <= first_ns <= end_ns


def test_killed_server_leaves_truth_and_a_new_one_takes_its_place(serving, tmp_path):
    server = serving("--preset", "sata-tlc", "--capacity", "1GiB", "--truth", str(tmp_path / "truth"))
    deadline = time.monotonic() + PATIENCE_S
    while not (tmp_path / "truth" / "ledger.json").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    server.end(signal.SIGKILL)
    assert truth.read_ledger(tmp_path / "truth")["preset"] == "sata-tlc"
    assert os.path.exists(server.socket)  # left behind
    again = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "ssdrig.virtual.serve",
            "--socket",
            server.socket,
            "--preset",
            "sata-tlc",
            "--capacity",
            "1GiB",
        ],
        stdout=subprocess.PIPE,
    )
    try:
        assert json.loads(again.stdout.readline())["socket"] == server.socket
        taken = forked(tmp_path, "--socket", server.socket, "--preset", "sata-tlc", "--capacity", "1GiB")
        assert taken.returncode == 2 and "a server that answers there" in taken.stderr
    finally:
        again.terminate()
        assert again.wait(PATIENCE_S) == 0
        again.stdout.close()
    assert not any(os.path.exists(server.socket + end) for end in ("", ".admin", ".truth"))


# --- the supply


def fed_J(path, start_ns: int, end_ns: int) -> float:
    """Energy in the feed between two host times, read as the sensor reads it."""
    raw = path.read_bytes()
    _, bins, bin_ns, t0_ns, dilation, _ = feed.HEADER.unpack_from(raw)
    ring = np.frombuffer(raw, "<u4", offset=feed.HEADER.size).reshape(bins, 2)
    wanted = np.arange((start_ns - t0_ns) // dilation // bin_ns, (end_ns - t0_ns) // dilation // bin_ns)
    rows = ring[wanted % bins]
    return float(rows[rows[:, 0] == wanted, 1].sum()) * 1e-9


def test_power_cut_without_plp_takes_back_what_was_not_flushed(serving, tmp_path):
    server = serving("--preset", "sata-mlc", "--capacity", "1GiB", "--feed", str(tmp_path / "feed"))
    durable, lost = b"k" * 65536, b"l" * 4096

    def drawn() -> bool:
        now = time.monotonic_ns()
        return fed_J(tmp_path / "feed", now - 20_000_000, now) > 0

    until(drawn)
    cuts, answer = 0, {"pages_lost": 0}
    while not answer["pages_lost"] and cuts < TRIES:  # it waits for 50 ms, and the cut of a busy machine comes later
        if cuts:
            server.admin(op="power_on")
        client = server.client()
        client.write(0, durable)
        client.flush()
        client.write(0, lost)  # acknowledged from the volatile cache; less than one program, so it waits there
        answer, cuts = server.admin(op="power_cut"), cuts + 1
    cut = time.monotonic_ns()
    assert answer == {"pages_lost": 1}
    with pytest.raises(DriveError):
        client.read(0, 4096)  # the connection is gone
    with pytest.raises(DriveError):
        server.client()  # and no new one is taken
    with pytest.raises(DriveError, match="no power"):
        server.admin(op="smartctl")
    time.sleep(0.4)
    assert fed_J(tmp_path / "feed", cut + 1_000_000, cut + 390_000_000) == 0
    server.admin(op="power_on")
    with server.client() as client:
        assert client.read(0, 65536) == durable
    log = server.admin(op="smartctl")["nvme_smart_health_information_log"]
    assert (log["power_cycles"], log["unsafe_shutdowns"]) == (1 + cuts, cuts)
    now = time.monotonic_ns()
    until(lambda: fed_J(tmp_path / "feed", now, now + 50_000_000) > 0.3 * 0.05)  # it draws power again
    ledger = server.truth(op="ledger")
    assert ledger["pages_lost"] == 1 and ledger["powered"] and ledger["energy_cut_J"] < 0
    assert server.truth(op="energy", t0_ns=cut + 1_000_000, t1_ns=cut + 390_000_000)["energy_J"] == 0


def test_power_cut_with_plp_or_after_fua_loses_nothing(serving):
    for preset, fua in (("enterprise-plp", False), ("sata-mlc", True)):
        server = serving("--preset", preset, "--capacity", "1GiB")
        with server.client() as client:
            client.write(4096, b"n" * 4096, fua=fua)
            assert server.admin(op="power_cut")["pages_lost"] == 0
        server.admin(op="power_on")
        with server.client() as client:
            assert client.read(4096, 4096) == b"n" * 4096
        server.end()


# --- start and end


def test_dies_with_its_parent(tmp_path):
    script = (
        "import subprocess, sys\np = subprocess.Popen([sys.executable, '-m', 'ssdrig.virtual.serve', '--preset',"
        f" 'sata-tlc', '--capacity', '1GiB', '--socket', {str(tmp_path / 'nbd')!r}, '--die-with-parent'],"
        " stdout=subprocess.PIPE)\np.stdout.readline(); print(p.pid, flush=True); sys.stdin.read()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child = int(parent.stdout.readline())
    try:
        assert os.path.exists(f"/proc/{child}")
        parent.kill()
        parent.wait()
        deadline = time.monotonic() + PATIENCE_S
        while alive(child) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not alive(child)
    finally:
        parent.stdin.close()
        parent.stdout.close()
        if alive(child):
            os.kill(child, signal.SIGKILL)


def alive(pid: int) -> bool:
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_state_from_offline_ageing(serving, tmp_path):
    state = str(tmp_path / "state")
    aged = forked(
        tmp_path,
        "precondition",
        "--preset",
        "sata-tlc",
        "--capacity",
        "1GiB",
        "--fill",
        "seq",
        "--drive-writes",
        "1",
        "--state",
        state,
    )
    assert aged.returncode == 0, aged.stderr
    aged = forked(
        tmp_path,
        "precondition",
        "--preset",
        "sata-tlc",
        "--capacity",
        "1GiB",
        "--fill",
        "random",
        "--drive-writes",
        "0.5",
        "--state",
        state,
    )
    ledger = json.loads(aged.stdout)
    assert ledger["host_write_bytes"] == 3 << 29 and ledger["wa"] > 1.1
    server = serving("--preset", "sata-tlc", "--state", state, "--no-latency")
    served = server.truth(op="ledger")
    assert {k: served[k] for k in ("host_write_bytes", "nand_write_bytes", "mapped_pages")} == {
        k: ledger[k] for k in ("host_write_bytes", "nand_write_bytes", "mapped_pages")
    }
    wrong = forked(tmp_path, "--preset", "sata-mlc", "--state", state, "--socket", str(tmp_path / "x"))
    assert wrong.returncode == 2 and "sata-tlc" in wrong.stderr


def test_op_limits_the_export(serving):
    server = serving("--preset", "sata-tlc", "--capacity", "1GiB", "--op", "25", "--no-latency")
    expected = int(server.ready["raw_nand_bytes"] * 0.75) >> 20 << 20
    with server.client() as client:
        assert client.size_bytes == server.ready["capacity_bytes"] == expected


@pytest.mark.parametrize(
    "words,code,message",
    [
        (["--preset", "floppy", "--socket", "x"], 2, "sata-tlc"),
        (["--preset", "sata-tlc"], 2, "--socket"),
        (["--preset", "sata-tlc", "--socket", "x", "--op", "1"], 2, "over-provisioning"),
        (["--preset", "sata-tlc", "--socket", "x", "--capacity", "many"], 2, "4GiB"),
        (["--preset", "sata-tlc", "--socket", "no/such/folder/x"], 2, "folder that exists"),
        (["--preset", "sata-tlc", "--socket", "x", "--state", "missing"], 4, "precondition"),
        (["--preset", "sata-tlc", "--socket", "x", "--data", "no/such/folder/d"], 4, "--data"),
        (["ledger", "--socket", "nobody"], 4, "virtual drive to answer"),
        (["ledger", "--truth", "nowhere"], 8, "ledger.json"),
    ],
)
def test_a_refusal_is_clear_and_leaves_nothing(tmp_path, monkeypatch, words, code, message):
    monkeypatch.chdir(tmp_path)
    error = refused(*words)
    assert error.exit_code == code and message in str(error) and "\n" not in str(error)
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_it_on_one_line(tmp_path):
    done = run("--preset", "floppy", "--socket", "x", cwd=tmp_path)
    assert done.returncode == 2 and "sata-tlc" in done.stderr and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_list_presets(tmp_path):
    presets = json.loads(forked(tmp_path, "--list-presets", "--json").stdout)
    assert {"sata-mlc", "sata-tlc", "nvme-tlc", "enterprise-plp"} <= set(presets)
    assert all(p["source"] and p["model"].startswith("SIMULATED") for p in presets.values())
