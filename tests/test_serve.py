"""The virtual drive's server, as a process: NBD over a real socket, admin and truth sockets, power cut, its end."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time

import numpy as np
import pytest

from ssdrig.errors import DriveError, JournalError, UsageError
from ssdrig.virtual import admin, feed, nbd, serve, truth
from ssdrig.virtual.nbdclient import NbdClient, NbdError
from ssdrig.virtual.nbdserver import GATHER_NS, Connection

START_S = 120  # a first start compiles


class Serving:
    """A server process and what it said of itself."""

    def __init__(self, folder, *words):
        self.socket = str(folder / "nbd")
        self.folder = folder
        with open(folder / "err", "wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ssdrig.virtual.serve", "--socket", self.socket, *words],
                stdout=subprocess.PIPE, stderr=err, start_new_session=True,
            )  # fmt: skip
        line = self.process.stdout.readline()
        assert line, (folder / "err").read_text()
        self.ready = json.loads(line)

    def admin(self, **request) -> dict:
        return admin.ask(self.ready["admin"], request)

    def truth(self, **request) -> dict:
        return admin.ask(self.socket + ".truth", request)

    def client(self) -> NbdClient:
        return NbdClient(self.socket, timeout_s=20)

    def end(self, number=signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(20)
        self.process.stdout.close()
        return code


@pytest.fixture
def serving(tmp_path):
    """serving("--preset", ...) starts a server; all of them end with the test."""
    started = []

    def start(*words):
        folder = tmp_path / str(len(started))
        folder.mkdir()
        started.append(Serving(folder, *words))
        return started[-1]

    yield start
    for server in started:
        if server.process.poll() is None:
            server.process.kill()
        server.process.wait()
        server.process.stdout.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One fast server for the tests that leave it as it was."""
    server = Serving(tmp_path_factory.mktemp("serve"), "--preset", "sata-tlc", "--capacity", "1GiB", "--no-latency")
    yield server
    server.end()


def run(*words, **how) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "ssdrig.virtual.serve", *words], capture_output=True, text=True, timeout=START_S, **how
    )


def raw_client(path: str) -> socket.socket:
    """A negotiated connection without the manners of NbdClient."""
    client = NbdClient(path, timeout_s=20)
    return client.sock


def request(op, offset=0, length=0, cookie=1, flags=0) -> bytes:
    return struct.pack(">IHHQQI", 0x25609513, flags, op, cookie, offset, length)


def receive(sock: socket.socket, n: int) -> bytes:
    out = b""
    while len(out) < n:
        more = sock.recv(n - len(out))
        if not more:
            break
        out += more
    return out


# --- sizes


@pytest.mark.parametrize("text,value", [("4GiB", 4 << 30), ("240 GB", 240 * 10**9), ("1048576", 1 << 20)])
def test_parse_bytes(text, value):
    assert serve.parse_bytes(text) == value


@pytest.mark.parametrize("text", ["", "4gib", "-1", "1.5GiB", "GiB"])
def test_parse_bytes_refuses(text):
    with pytest.raises(UsageError):
        serve.parse_bytes(text)


def test_over_provisioning_is_a_share_of_raw_nand():
    raw = 1000 << 20
    assert serve.export_bytes(900 << 20, raw, None) == 900 << 20
    assert serve.export_bytes(900 << 20, raw, 25) == 750 << 20
    assert serve.export_bytes(900 << 20, raw, 25.01) == 749 << 20  # down to a whole MiB
    assert serve.export_bytes(900 << 20, raw, 10) == 900 << 20
    for less_than_its_own in (9, 0, -1, 100):
        with pytest.raises(UsageError):
            serve.export_bytes(900 << 20, raw, less_than_its_own)


# --- NBD over the socket


def test_random_requests_on_two_connections_are_like_memory(shared):
    rng, memory = np.random.default_rng(7), bytearray(4 << 20)
    with shared.client() as a, shared.client() as b:
        assert a.size_bytes == 1 << 30 and a.flags == 0x16D
        a.trim(0, a.size_bytes)
        for step in range(400):
            client = (a, b)[step % 2]
            offset, length = int(rng.integers(0, 3 << 20)), int(rng.choice([1, 100, 512, 4096, 5000, 131072]))
            if step % 5 < 2:
                data = rng.bytes(length)
                client.write(offset, data, fua=step % 3 == 0)
                memory[offset : offset + length] = data
            elif step % 5 == 2:
                client.write_zeroes(offset, length)
                memory[offset : offset + length] = bytes(length)
            elif step % 5 == 3:
                client.trim(offset // 4096 * 4096, 8192)
                memory[offset // 4096 * 4096 : offset // 4096 * 4096 + 8192] = bytes(8192)
            else:
                client.flush()
            assert (b, a)[step % 2].read(offset, length) == memory[offset : offset + length]
        assert a.read(0, len(memory)) == memory


def test_every_pipelined_request_is_answered_once(shared):
    with shared.client() as client:
        sock, n = client.sock, 3000
        data = b"".join(
            request(nbd.WRITE, 4096 * (i % 1000), 4096, i) + bytes(4096) if i % 3 else request(nbd.READ, 0, 512, i)
            for i in range(n)
        )
        sock.setblocking(False)
        sent, got = 0, b""
        expected = n * 16 + 512 * len(range(0, n, 3))
        deadline = time.monotonic() + 30
        while len(got) < expected and time.monotonic() < deadline:
            try:
                sent += sock.send(data[sent : sent + 300_000])
            except BlockingIOError:
                pass
            try:
                got += sock.recv(1 << 20)
            except BlockingIOError:
                time.sleep(0.001)
        sock.settimeout(20)
    cookies, at = [], 0
    while at < len(got):
        magic, error, cookie = struct.unpack_from(">IIQ", got, at)
        assert (magic, error) == (0x67446698, 0)
        cookies.append(cookie)
        at += 16 + (0 if cookie % 3 else 512)
    assert sorted(cookies) == list(range(n))


@pytest.mark.parametrize(
    "ask,number",
    [
        (lambda c: c._request(nbd.READ, c.size_bytes, 4096), nbd.EINVAL),
        (lambda c: c._request(nbd.WRITE, c.size_bytes - 1, 2, data=b"ab"), nbd.ENOSPC),
        (lambda c: c._request(nbd.CACHE, 0, 4096), nbd.EINVAL),
        (lambda c: c._request(nbd.READ, 0, (32 << 20) + 1), nbd.EINVAL),
    ],
)
def test_a_refused_request_leaves_the_connection_usable(shared, ask, number):
    with shared.client() as client:
        with pytest.raises(NbdError) as error:
            ask(client)
        assert error.value.errno == number
        client.write(0, b"still here")
        assert client.read(0, 10) == b"still here"


def test_the_longest_read_and_write(shared):
    data = np.random.default_rng(1).bytes(32 << 20)
    with shared.client() as client:
        client._request(nbd.WRITE, 4096, len(data), data=data)
        assert client._request(nbd.READ, 4096, len(data), expect=len(data)) == data


def test_garbage_ends_only_its_own_connection(shared):
    rng = np.random.default_rng(3)
    with shared.client() as good:
        good.write(0, b"good")
        for i in range(60):
            if i % 2:
                sock = raw_client(shared.socket)
            else:
                sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                sock.settimeout(20)
                sock.connect(shared.socket)
            with sock:
                start = [b"", struct.pack(">I", 3) + b"IHAVEOPT", request(nbd.WRITE, 0, 1 << 30)[: int(rng.integers(1, 28))]][i % 3]
                try:
                    sock.sendall(start + rng.bytes(int(rng.integers(0, 5000))))
                    sock.shutdown(socket.SHUT_WR)
                    while sock.recv(65536):
                        pass
                except OSError:
                    pass  # dropped while we were still talking
            assert good.read(0, 4) == b"good"


def test_who_does_not_read_replies_stops_only_himself(shared):
    with shared.client() as good, raw_client(shared.socket) as deaf:
        deaf.setblocking(False)
        reads, sent = request(nbd.READ, 0, 1 << 20) * 2000, 0
        deadline = time.monotonic() + 10
        while sent < len(reads) and time.monotonic() < deadline:
            try:
                sent += deaf.send(reads[sent:])
            except BlockingIOError:
                break
        for i in range(50):
            good.write(4096 * i, b"x" * 4096)
        deaf.settimeout(20)
        assert receive(deaf, 16 + (1 << 20))[:4] == struct.pack(">I", 0x67446698)  # its first reply is there


def test_checks_only(serving):
    server = serving("--preset", "sata-tlc", "--capacity", "1GiB", "--no-latency", "--data", "crc")
    with server.client() as client:
        client.write(3 << 12, b"z" * 8192)
        with pytest.raises(NbdError) as error:
            client.write(0, b"part of a page")
        assert error.value.errno == nbd.EINVAL
        page = client.read(3 << 12, 4096)
        assert page[:8] == (3).to_bytes(8, "little") and page == page[:16] * 256
        assert client.read(0, 4096) == bytes(4096)


class Shelf:
    """What a Connection needs of a device: reads of zeros that are due at once."""

    latency, capacity_bytes, min_block = True, 1 << 30, 1
    store = property(lambda self: self)

    def execute(self, buf, batch, n, t_ns):
        batch[:n, nbd.DUE] = t_ns
        return t_ns, int(batch[:n, nbd.LENGTH].max())

    def read(self, out, reads, n):
        pass


def ready_connection(ours: socket.socket, theirs: socket.socket) -> Connection:
    connection = Connection(ours, Shelf())
    theirs.sendall(struct.pack(">I", 3) + struct.pack(">8sII", b"IHAVEOPT", 1, 0))
    connection.receive()
    assert receive(theirs, 28)[:8] == b"NBDMAGIC" and connection.negotiation.state == "ready"
    return connection


def test_the_server_only_wakes_for_what_it_can_do():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = ready_connection(ours, theirs)
        assert connection.next_due_ns == -1 and connection.wants_read  # idle: only the socket wakes it
        theirs.sendall(b"".join(request(nbd.READ, 0, 1 << 20, i) for i in range(20)))
        connection.receive()
        assert connection.n_waiting == 20 and 0 < connection.next_due_ns <= time.monotonic_ns()
        now = time.monotonic_ns()
        connection.reply(now)
        assert connection.wants_write and 0 < connection.n_waiting < 20  # they do not read
        assert connection.next_due_ns == -1 and not connection.wants_read
        left = 20 * (16 + (1 << 20))
        theirs.setblocking(False)
        while connection.n_waiting or connection.wants_write:
            now += GATHER_NS
            connection.reply(now)
            left -= drained(theirs)
        assert left == 0


def drained(sock: socket.socket) -> int:
    n = 0
    try:
        while more := sock.recv(1 << 20):
            n += len(more)
    except BlockingIOError:
        return n


def test_replies_of_a_deep_queue_are_gathered_and_of_a_shallow_one_are_not():
    for n, gathered in ((40, True), (4, False)):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            connection = ready_connection(ours, theirs)
            theirs.sendall(b"".join(request(nbd.READ, 0, 1, i) for i in range(n)))
            connection.receive()
            connection._waiting[: n // 2, nbd.DUE] = 0
            now = int(connection._waiting[n - 1, nbd.DUE]) - 1  # half of them are due
            connection._first_due_ns = 0
            connection.reply(now)
            assert connection.n_waiting == n // 2
            assert connection.next_due_ns == (now + GATHER_NS if gathered else now + 1)


# --- counters


def test_smart_and_ledger_agree_with_what_was_done(serving):
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
    shown = run("ledger", "--socket", server.socket)
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
        sock.settimeout(20)
        sock.connect(shared.ready["admin"])
        for line in (b"no json", b"[]", b"{}", b'{"op": "explode"}', b'{"op": "log", "lid": 7}', b'{"op":"log","lid":[]}', b"\xff\xfe", b"[" * 5000):
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
    kept = truth.energy_between(tmp_path / "truth", start, end)
    assert kept == pytest.approx(asked, rel=1e-3) and kept > 0
    ledger = truth.read_ledger(tmp_path / "truth")
    assert ledger["host_write_bytes"] == 300 * 131072 and ledger["feed_gap_ns"] == 0
    whole = truth.energy_between(tmp_path / "truth", ledger["t_ns"] - ledger["model_t_ns"], ledger["t_ns"] - 1_000_000)
    # the ledger also has what is laid down up to 250 ms ahead
    assert 0 <= ledger["energy_J"] - whole < 0.26 * 3
    with pytest.raises(JournalError, match="within the record"):
        truth.energy_between(tmp_path / "truth", start, end + 10**12)
    assert json.loads(run("ledger", "--truth", str(tmp_path / "truth")).stdout) == ledger


def test_killed_server_leaves_truth_and_a_new_one_takes_its_place(serving, tmp_path):
    server = serving("--preset", "sata-tlc", "--capacity", "1GiB", "--truth", str(tmp_path / "truth"))
    deadline = time.monotonic() + 20
    while not (tmp_path / "truth" / "ledger.json").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    server.end(signal.SIGKILL)
    assert truth.read_ledger(tmp_path / "truth")["preset"] == "sata-tlc"
    assert os.path.exists(server.socket)  # left behind
    again = subprocess.Popen(
        [sys.executable, "-m", "ssdrig.virtual.serve", "--socket", server.socket, "--preset", "sata-tlc", "--capacity", "1GiB"],
        stdout=subprocess.PIPE,
    )
    try:
        assert json.loads(again.stdout.readline())["socket"] == server.socket
        taken = run("--socket", server.socket, "--preset", "sata-tlc", "--capacity", "1GiB")
        assert taken.returncode == 2 and "a server that answers there" in taken.stderr
    finally:
        again.terminate()
        assert again.wait(20) == 0
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
    kept, lost = b"k" * 65536, b"l" * 4096
    client = server.client()
    client.write(0, kept)
    client.flush()
    before = time.monotonic_ns()
    client.write(0, lost)  # acknowledged from the volatile cache; less than one program, so it waits there
    answer = server.admin(op="power_cut")
    cut = time.monotonic_ns()
    assert answer == {"pages_lost": 1, "pages_lost_beyond_undo": 0}
    with pytest.raises(DriveError):
        client.read(0, 4096)  # the connection is gone
    with pytest.raises(DriveError):
        server.client()  # and no new one is taken
    with pytest.raises(DriveError, match="no power"):
        server.admin(op="smartctl")
    time.sleep(0.4)
    assert fed_J(tmp_path / "feed", before - 20_000_000, before) > 0
    assert fed_J(tmp_path / "feed", cut + 1_000_000, cut + 390_000_000) == 0
    server.admin(op="power_on")
    with server.client() as client:
        assert client.read(0, 65536) == kept
    log = server.admin(op="smartctl")["nvme_smart_health_information_log"]
    assert (log["power_cycles"], log["unsafe_shutdowns"]) == (2, 1)
    time.sleep(0.1)
    now = time.monotonic_ns()
    assert fed_J(tmp_path / "feed", now - 50_000_000, now) > 0.3 * 0.05  # it draws power again
    ledger = server.truth(op="ledger")
    assert ledger["pages_lost"] == 1 and ledger["powered"] and ledger["energy_cut_off_J"] > 0
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
        "import subprocess, sys\n"
        "p = subprocess.Popen([sys.executable, '-m', 'ssdrig.virtual.serve', '--preset', 'sata-tlc', '--capacity', '1GiB',"
        f" '--socket', {str(tmp_path / 'nbd')!r}, '--die-with-parent'], stdout=subprocess.PIPE)\n"
        "p.stdout.readline(); print(p.pid, flush=True); sys.stdin.read()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child = int(parent.stdout.readline())
    try:
        assert os.path.exists(f"/proc/{child}")
        parent.kill()
        parent.wait()
        deadline = time.monotonic() + 20
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
    aged = run("precondition", "--preset", "sata-tlc", "--capacity", "1GiB", "--fill", "seq", "--drive-writes", "1", "--state", state)
    assert aged.returncode == 0, aged.stderr
    aged = run("precondition", "--preset", "sata-tlc", "--capacity", "1GiB", "--fill", "random", "--drive-writes", "0.5", "--state", state)
    ledger = json.loads(aged.stdout)
    assert ledger["host_write_bytes"] == 3 << 29 and ledger["wa"] > 1.1
    server = serving("--preset", "sata-tlc", "--state", state, "--no-latency")
    served = server.truth(op="ledger")
    assert {k: served[k] for k in ("host_write_bytes", "nand_write_bytes", "mapped_pages")} == {
        k: ledger[k] for k in ("host_write_bytes", "nand_write_bytes", "mapped_pages")
    }
    wrong = run("--preset", "sata-mlc", "--state", state, "--socket", str(tmp_path / "x"))
    assert wrong.returncode == 2 and "sata-tlc" in wrong.stderr


def test_op_limits_the_export(serving):
    server = serving("--preset", "sata-tlc", "--capacity", "1GiB", "--op", "25", "--no-latency")
    expected = int(server.ready["raw_nand_bytes"] * 0.75) >> 20 << 20
    with server.client() as client:
        assert client.size_bytes == server.ready["capacity_bytes"] == expected


@pytest.mark.parametrize(
    "words,code,said",
    [
        (["--preset", "floppy", "--socket", "x"], 2, "sata-tlc"),
        (["--preset", "sata-tlc"], 2, "--socket"),
        (["--preset", "sata-tlc", "--socket", "x", "--op", "1"], 2, "over-provisioning"),
        (["--preset", "sata-tlc", "--socket", "x", "--capacity", "many"], 2, "4GiB"),
        (["--preset", "sata-tlc", "--socket", "no/such/folder/x"], 2, "folder that exists"),
        (["--preset", "sata-tlc", "--socket", "x", "--state", "missing"], 4, "precondition"),
        (["--preset", "sata-tlc", "--socket", "x", "--data", "no/such/folder/d"], 4, "--data"),
        (["ledger", "--socket", "nobody"], 4, "virtual drive at"),
        (["ledger", "--truth", "nowhere"], 8, "ledger.json"),
    ],
)
def test_one_clear_message_and_nothing_left(tmp_path, words, code, said):
    done = run(*words, cwd=tmp_path)
    assert done.returncode == code and said in done.stderr and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_list_presets():
    presets = json.loads(run("--list-presets").stdout)
    assert {"sata-mlc", "sata-tlc", "nvme-tlc", "enterprise-plp"} <= set(presets)
    assert all(p["source"] and p["model"].startswith("SIMULATED") for p in presets.values())
