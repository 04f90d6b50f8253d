"""The player: in model time against a stand-in, on a file and a loop device by AIO, on the virtual drive by NBD."""

import contextlib
import io
import json
import os
from types import SimpleNamespace

import numpy as np
import pytest
from loop_device import loop_device
from serving import Serving
from trace_rows import rows_of

from ssdrig import cli
from ssdrig.base.errors import DriveError, UnsafeTarget, UsageError
from ssdrig.blockio import aio, nbd_numbers
from ssdrig.commands import trace as trace_command
from ssdrig.commands import trace_play
from ssdrig.load import played, trace_aio, trace_nbd, trace_player, trace_targets, trace_unwritten, traceform
from ssdrig.load.trace_nbd import NbdPipe
from ssdrig.load.traceform import FLUSH, READ, TRIM, WRITE, ZEROES


def trace(*rows) -> np.ndarray:
    return rows_of(*rows)


def bursts(*sizes, gap_ns=1_000_000) -> np.ndarray:
    """4 KiB writes side by side, burst by burst."""
    rows = np.zeros(sum(sizes), traceform.ROW)
    rows["t_ns"] = np.repeat(np.arange(len(sizes)) * gap_ns, sizes)
    rows["offset_bytes"], rows["length_bytes"], rows["op"] = np.arange(len(rows)) * 4096, 4096, WRITE
    rows["depth"] = np.repeat(sizes, sizes)
    return rows


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    server = Serving(tmp_path_factory.mktemp("play"), "--preset", "sata-tlc", "--capacity", "256MiB", "--no-latency")
    yield server
    server.end()


def counted(server) -> dict:
    """What the drive has counted so far of reads and writes."""
    ledger = server.truth(op="ledger")
    return {key: ledger[f"host_{key}"] for key in ("read_bytes", "write_bytes", "read_commands", "write_commands")}


class Model:
    """A drive in model time that does one I/O after the other, service_ns each; a call takes call_ns."""

    size_bytes, block_bytes = 1 << 40, 512

    def __init__(self, service_ns=100_000, most=1024, call_ns=1000):
        self.now, self.service_ns, self.most, self.call_ns = 0, service_ns, most, call_ns
        self.under_way, self.deepest, self.free_ns, self.order = [], 0, 0, []
        self.prepared = {}

    def clock(self) -> int:
        return self.now

    def prepare(self, first, rows):
        for slot, row in enumerate(rows, first):
            assert slot not in self.prepared, "a slot that is in use was given away"
            self.prepared[slot] = int(row["offset_bytes"])

    def submit(self, first, n, now_ns):
        self.now += self.call_ns
        for slot in range(first, first + n):
            self.free_ns = max(self.free_ns, self.now) + self.service_ns
            self.under_way.append((self.free_ns, slot))
            self.order.append(self.prepared[slot])
        self.deepest = max(self.deepest, len(self.under_way))
        return n

    def reap(self, timeout_ns, done_ns):
        self.now += self.call_ns
        until = self.now + timeout_ns
        self.now = min(until, max(self.now, self.under_way[0][0])) if self.under_way else until
        ended = [request for request in self.under_way if request[0] <= self.now]
        for end_ns, slot in ended:
            done_ns[slot] = end_ns
            del self.prepared[slot]
        self.under_way = self.under_way[len(ended) :]
        return len(ended)


@pytest.fixture
def small_ring(monkeypatch):
    monkeypatch.setattr(trace_player, "WINDOW", 16)
    monkeypatch.setattr(trace_player, "WINDOWS", 4)
    monkeypatch.setattr(trace_player, "SLOTS", 64)


def run(rows, model, **how):
    out = io.BytesIO()
    t0_ns = trace_player.play(rows, model, trace_player.How(**how), out, clock=model.clock)
    records = np.frombuffer(out.getvalue(), played.RECORD)
    assert len(records) == len(rows) and model.order == rows["offset_bytes"].tolist()
    return t0_ns, records


def test_each_io_is_submitted_at_its_own_time(small_ring):
    rows, model = bursts(*[1, 3, 40, 2] * 20), Model(service_ns=5000)
    t0_ns, records = run(rows, model)
    assert (records["intended_ns"] == t0_ns + rows["t_ns"]).all()
    lag = records["issued_ns"] - records["intended_ns"]
    assert lag.min() >= 0 and lag.max() < 10_000 and (records["done_ns"] > records["issued_ns"]).all()


def test_a_slow_drive_does_not_shift_what_comes_later(small_ring):
    """fio's replay counts a delay from the I/O before: what is late stays late. Ours catches up."""
    rows, model = bursts(*[1] * 100), Model(service_ns=10_000)
    slow = iter([50_000_000])
    submit = model.submit
    model.submit = lambda *what: (setattr(model, "now", model.now + next(slow, 0)), submit(*what))[1]
    _, records = run(rows, model)
    lag = records["issued_ns"] - records["intended_ns"]
    assert lag[2] > 40_000_000 and lag[60:].max() < 10_000


def test_speed_idle_cap_and_dilation_move_the_times(small_ring):
    rows = bursts(1, 1, 1, 1)
    rows["t_ns"] = [0, 1_000_000, 101_000_000, 101_500_000]
    for how, expected_ms in (
        ({}, [0, 1, 101, 101.5]),
        ({"speed": 2.0}, [0, 0.5, 50.5, 50.75]),
        ({"idle_cap_ns": 25_000_000}, [0, 1, 26, 26.5]),
        ({"idle_cap_ns": 25_000_000, "speed": 0.5, "dilation": 2}, [0, 4, 104, 106]),
    ):
        t0_ns, records = run(rows, Model(), **how)
        assert ((records["intended_ns"] - t0_ns) / 1e6).tolist() == expected_ms
        assert trace_player.lasts_ns(traceform.windows(rows), trace_player.How(**how)) / 1e6 == expected_ms[-1]


def test_a_gap_that_was_cut_stays_cut_in_later_windows(small_ring):
    rows = bursts(*[1] * 40)
    rows["t_ns"][3:] += 10**9
    t0_ns, records = run(rows, Model(), idle_cap_ns=25_000_000)
    assert records["intended_ns"][-1] - t0_ns == 38 * 1_000_000 + 25_000_000


def test_a_closed_play_keeps_the_depth_of_each_burst(small_ring):
    for sizes, deepest in (([1] * 40, 1), ([8] * 20, 8), ([2, 30, 2], 30)):  # a window of 16 cuts no depth
        model = Model()
        _, records = run(bursts(*sizes, gap_ns=10**12), model, closed=True)
        assert model.deepest == deepest and (records["intended_ns"] == records["issued_ns"]).all()


def test_no_more_are_under_way_than_the_target_takes(small_ring):
    model = Model(service_ns=1_000_000, most=5)
    _, records = run(bursts(40, 40), model)
    assert model.deepest == 5 and (records["issued_ns"] - records["intended_ns"])[-1] > 70_000_000


def test_a_drive_that_answers_no_more_ends_the_play(small_ring):
    model, out = Model(), io.BytesIO()
    reap = model.reap
    model.reap = lambda t, d: reap(t, d) if len(model.order) < 40 else (setattr(model, "now", model.now + t + 1), 0)[1]
    with pytest.raises(DriveError, match="within a minute"):
        trace_player.play(bursts(*[1] * 60), model, trace_player.How(), out, clock=model.clock)
    assert len(out.getvalue()) == 32 * played.RECORD.itemsize  # two whole windows


@pytest.mark.parametrize("at_once", (2, 1 << 20))
def test_figures_are_those_of_the_records(monkeypatch, at_once):
    monkeypatch.setattr(played, "AT_ONCE", at_once)
    rows = trace((0, 0, 4096, READ), (0, 0, 8192, WRITE), (5, 0, 0, FLUSH), (10, 0, 4096, READ))
    records = np.array([(0, 10, 20e6), (0, 10, 30e6 + 10), (50e6, 50e6, 51e6), (60e6, 62e6, 262e6)]).T.astype(np.int64)
    records = np.rec.fromarrays(records, played.RECORD)
    figures = played.figures(rows, records, 0, False)
    assert figures["bytes"] == 16384 and figures["time_s"] == pytest.approx(0.262)
    assert figures["busy_s"] == pytest.approx(0.231) and figures["data_rate_MBps"] == pytest.approx(16384 / 0.231 / 1e6)
    assert figures["all"]["ios"] == 3 and figures["writes"]["mean_us"] == pytest.approx(30_000)
    assert figures["reads"]["over_100ms_percent"] == 50 and figures["all"]["over_10ms_percent"] == 100
    assert figures["lag"]["late_percent"] == 25 and not figures["lag"]["as_recorded"]
    assert figures["depth"] == {"mean": 5 / 3, "max": 2} and figures["trace_depth"] == {"mean": 5 / 3, "max": 2}
    assert figures["all"]["p99_us"] is None and "3 I/Os" in figures["not_known"]["all.p99_us"]
    half = played.figures(rows, records, 0, True, dilation=2)
    assert half["writes"]["mean_us"] == pytest.approx(15_000) and half["lag"] is None and "lag" in half["not_known"]
    monkeypatch.setattr(played, "AT_ONCE", 7000)
    many = np.zeros(20_000, played.RECORD)
    many["done_ns"] = np.arange(20_000) * 1000
    every = played.figures(np.zeros(20_000, traceform.ROW), many, 0, True)["all"]
    assert every["p999_us"] == pytest.approx(19_979, abs=1.1) and every["p99_us"] == pytest.approx(19_799, abs=1.1)


@pytest.mark.parametrize("at_once", (3, 64, 1 << 20))
def test_depth_of_a_play_is_a_count_of_what_is_under_way(monkeypatch, at_once):
    monkeypatch.setattr(played, "AT_ONCE", at_once)
    rng = np.random.default_rng(3)
    rows = bursts(*[1] * 400)
    rows["op"] = rng.choice([READ, WRITE, TRIM], 400)
    records = np.zeros(400, played.RECORD)
    records["issued_ns"] = np.sort(rng.integers(1, 300, 400)) * 100
    records["done_ns"] = records["issued_ns"] + rng.integers(1, 3000, 400)
    issued, done = records["issued_ns"], records["done_ns"]
    counts = [int(((issued <= at) & (done > at)).sum()) for at in issued]
    moves = np.array(counts)[rows["op"] != TRIM]
    rows["depth"][7] = 0
    figures = played.figures(rows, records, 0, False)
    assert figures["depth"] == {"mean": pytest.approx(moves.mean()), "max": moves.max()} and moves.max() > 10
    known = rows["op"][7] == TRIM
    assert (figures["trace_depth"] is not None) == known and ("trace_depth" in figures["not_known"]) != known


def test_times_of_a_play_state_what_is_left_of_the_pauses():
    rows = bursts(1, 1, 1, 1)
    rows["t_ns"] = [0, 1_000_000, 101_000_000, 301_000_000]
    for how, play_s, idle_s in (
        ({}, 0.301, 0.3),
        ({"speed": 5.0}, 0.0602, 0.04),
        ({"idle_cap_ns": 25_000_000}, 0.051, 0.05),
        ({"idle_cap_ns": 24_000_000, "dilation": 8}, 0.049, 0.0),
        ({"closed": True}, None, None),
    ):
        for parts in (1, 2, 4):
            times = trace_player.times(traceform.windows(rows, 4 // parts), trace_player.How(**how))
            assert times["trace_s"] == pytest.approx(0.301) and times["idle_s"] == pytest.approx(0.3)
            assert times["play_s"] == (None if play_s is None else pytest.approx(play_s))
            assert times["play_idle_s"] == (None if idle_s is None else pytest.approx(idle_s))


def test_a_trace_that_reads_only_what_it_wrote_needs_no_fill(tmp_path):
    own = trace((0, 0, 8192, WRITE), (1, 4096, 4096, READ))
    header = {"sha256": ""}
    asked = trace_play.Asked("own", header, own, trace_player.How())
    asked.check()
    assert asked.filled_bytes() == 0 and trace_play.replace(asked, fill=True).filled_bytes() == 0
    far = trace((0, 0, 8192, WRITE), (1, 4096, 8192, READ), (2, 1 << 30, 20 << 20, READ))
    with pytest.raises(UsageError, match="--fill"):
        trace_play.Asked("far", header, far, trace_player.How()).check()
    filling = trace_play.Asked("far", header, far, trace_player.How(), fill=True).filling()
    assert filling[["offset_bytes", "length_bytes"]].tolist() == [
        (8192, 4096),
        (1 << 30, 8 << 20),
        ((1 << 30) + (8 << 20), 8 << 20),
        ((1 << 30) + (16 << 20), 4 << 20),
    ]


def test_a_file_is_written_and_read(tmp_path):
    path = tmp_path / "drive"
    path.write_bytes(bytes(4 << 20))
    rows = bursts(*[7] * 30, gap_ns=1000)
    rows["op"][100:] = READ
    rows[50] = (rows["t_ns"][50], 0, 0, FLUSH, 0, 1)
    out = io.BytesIO()
    with trace_targets.device(str(path), 4096) as target:
        trace_player.fits(rows, target.size_bytes, target.block_bytes)
        trace_player.play(rows, target, trace_player.How(), out)
        with pytest.raises(UsageError, match="block device"):
            target.prepare(0, trace((0, 0, 4096, TRIM)))
        too_far = trace((0, 4 << 20, 4096, READ))
        with pytest.raises(UsageError, match="smaller --working-set"):
            trace_player.fits(too_far, target.size_bytes, target.block_bytes)
        with pytest.raises(DriveError, match="4096 bytes at byte 4194304"):
            trace_player.play(too_far, target, trace_player.How(), io.BytesIO())
    records = np.frombuffer(out.getvalue(), played.RECORD)
    assert len(records) == 210 and (records["done_ns"] > records["issued_ns"]).all()
    data = np.frombuffer(path.read_bytes(), np.uint8).reshape(-1, 4096)
    assert [n for n in range(1024) if data[n].any()] == [n for n in range(100) if n != 50]
    assert len({row.tobytes() for row in data[:100]}) == 100  # each page another content; one is zeros
    assert target.fd == -1


def test_trims_of_a_trace_reach_a_block_device(tmp_path):
    path = tmp_path / "drive"
    path.write_bytes(b"\xff" * (1 << 20))
    rows = trace((0, 0, 4096, WRITE), (0, 65536, 131072, TRIM), (0, 524288, 4096, WRITE), (10**6, 0, 0, FLUSH))
    with loop_device(path) as node, trace_targets.device(node, 4096) as target:
        out = io.BytesIO()
        trace_player.play(rows, target, trace_player.How(), out)
        assert target.block_bytes == 512 and len(out.getvalue()) == 4 * played.RECORD.itemsize
    data = path.read_bytes()
    assert not any(data[65536 : 65536 + 131072]) and data[65535] == 0xFF == data[65536 + 131072]
    assert data[:4096] != b"\xff" * 4096


@pytest.mark.slow
def test_the_virtual_drive_gets_what_the_trace_says(served):
    rng = np.random.default_rng(1)
    rows = bursts(*[3, 60, 1] * 30, gap_ns=1000)
    rows["length_bytes"] = rng.integers(1, 40, len(rows)) * 4096
    rows["offset_bytes"] = np.arange(len(rows)) % 300 * (40 * 4096)
    rows["op"] = rng.choice([READ, WRITE, WRITE, TRIM, ZEROES], len(rows))
    rows["flags"] = np.where(rows["op"] == WRITE, np.arange(len(rows)) % 2, 0)
    rows[5] = (rows["t_ns"][5], 0, 0, FLUSH, 0, rows["depth"][5])
    longest = int(rows["length_bytes"].max())
    out = io.BytesIO()
    with trace_targets.nbd(served.socket, longest) as target:
        trace_player.fits(rows, target.size_bytes, target.block_bytes)
        before = counted(served)
        trace_player.play(rows, target, trace_player.How(closed=True), out)
        after = counted(served)
        with pytest.raises(DriveError, match="ENOSPC"):
            trace_player.play(trace((0, 1 << 30, 4096, WRITE)), target, trace_player.How(), io.BytesIO())
    assert len(out.getvalue()) == len(rows) * played.RECORD.itemsize
    for op, word in ((READ, "read"), (WRITE, "write")):
        assert after[f"{word}_bytes"] - before[f"{word}_bytes"] == rows["length_bytes"][rows["op"] == op].sum()
        assert after[f"{word}_commands"] - before[f"{word}_commands"] == (rows["op"] == op).sum()
    pool = trace_aio.pool(longest)
    at = trace_aio.pool_offsets(0, len(rows))  # one window: 1920 I/Os are two
    number = int(np.flatnonzero((rows["op"] == WRITE) & (np.arange(len(rows)) >= 1620))[0])
    with served.client() as client:
        row = rows[number]
        content = client.read(int(row["offset_bytes"]), int(row["length_bytes"]))
    assert content == pool[at[number] : at[number] + row["length_bytes"]]


def test_fua_of_a_row_goes_with_its_request(tmp_path, served):
    rows = trace((0, 0, 4096, WRITE), (1, 4096, 4096, WRITE), (2, 0, 4096, READ))
    rows["flags"][1] = traceform.FUA
    with trace_targets.nbd(served.socket, 4096) as target:
        target.prepare(0, rows)
        requests = target.requests
        words = trace_nbd.WORDS[requests.flags[:3], requests.kind[:3]].tolist()
        assert words == [nbd_numbers.WRITE, nbd_numbers.WRITE | nbd_numbers.FUA << 16, nbd_numbers.READ]
    (tmp_path / "drive").write_bytes(bytes(1 << 20))
    with trace_targets.device(str(tmp_path / "drive"), 4096) as target:
        target.prepare(0, rows)
        assert target.controls["rw_flags"][:3].tolist() == [0, aio.RWF_DSYNC, 0]
        target.prepare(0, rows[::2])
        trace_player.play(rows, target, trace_player.How(), io.BytesIO())
    bad = rows.copy()
    bad["flags"][2] = traceform.FUA
    assert traceform.why_not(rows) is None and traceform.why_not(bad)[0] == 2


def test_an_answer_counts_at_its_time():
    """Whether it is here ahead of it or behind it; how late answers are is counted."""
    pipe, done = NbdPipe.__new__(NbdPipe), np.zeros(4, np.int64)
    pipe._early, pipe.answers, pipe.late, pipe.late_ns = [], 0, 0, 0
    assert [pipe._came(slot, due, 100, done) for slot, due in ((0, 250), (1, 90), (2, 180))] == [0, 1, 0]
    assert (done.tolist(), pipe.answers, pipe.late, pipe.late_ns) == ([0, 90, 0, 0], 3, 1, 10)
    assert pipe._in_time(200, done) == 1 and pipe._in_time(240, done) == 0 and pipe._in_time(300, done) == 1
    assert done.tolist() == [250, 90, 180, 0] and not pipe._early and pipe.late_us == pytest.approx(0.01 / 3)


@pytest.mark.slow
def test_service_times_are_the_drives_own(tmp_path):
    server = Serving(tmp_path, "--preset", "sata-tlc", "--capacity", "256MiB")
    try:
        rows, exact = bursts(1, 8, gap_ns=3_000_000), 0
        with trace_targets.nbd(server.socket, 4096) as target:
            for n in range(1, 21):
                out, before = io.BytesIO(), server.truth(op="ledger")["host_latency_ns"]
                trace_player.play(rows, target, trace_player.How(), out)
                own_ns = server.truth(op="ledger")["host_latency_ns"] - before
                assert target.answers == n * len(rows)
                records = np.frombuffer(out.getvalue(), played.RECORD)
                seen_ns = int((records["done_ns"] - records["issued_ns"]).sum())
                assert 0 < own_ns <= seen_ns  # above it only by what the server's process was over 2 ms late to see
                exact += seen_ns == own_ns
        assert exact, "not even one play of twenty was in time"
    finally:
        server.end()


def test_the_command_says_what_it_will_do_and_does_it(tmp_path, capsys, monkeypatch, served):
    drive = served.ready | {"time_dilation": 2}
    monkeypatch.setattr(trace_play.bench, "start", lambda *_, **__: SimpleNamespace(drive=drive, end=lambda: None))
    path, records = str(tmp_path / "t"), tmp_path / "r"
    make = ["trace", "make", "bench-light-like", path, "--scale", "0.0013", "--working-set", "128MiB"]
    assert cli.main([*make, "--block", "4096", "--idle-cap", "0.1 ms"]) == 0
    words = [
        "trace",
        "play",
        path,
        "--virtual",
        "sata-tlc",
        "--capacity",
        "256MiB",
        "--json",
        "--records",
        str(records),
    ]
    capsys.readouterr()
    assert cli.main(words) == UsageError.exit_code and "--fill" in capsys.readouterr().err and not records.exists()
    words.append("--fill")
    assert cli.main([*words, "--dry-run"]) == 0
    output = capsys.readouterr()
    planned = json.loads(output.out)
    assert planned["figures"] is None and not records.exists() and "1082 I/Os" in output.err
    before = counted(served)["write_bytes"]
    assert cli.main([*words, "--speed", "4"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["simulated"] and document["scaled"] and document["written_bytes"] == planned["written_bytes"]
    header, rows = traceform.read(tmp_path / "t")
    ranges = trace_unwritten.ranges([rows])
    assert document["filled_bytes"] == int(np.diff(ranges).sum()) < header["range_bytes"]
    assert document["times"]["play_s"] == pytest.approx(document["times"]["trace_s"] / 4)
    assert document["figures"]["depth"]["max"] >= document["figures"]["trace_depth"]["max"] > 1
    assert document["figures"]["ios"] == 1082 and document["figures"]["lag"] and document["how"]["dilation"] == 2
    assert os.path.getsize(records) == 1082 * played.RECORD.itemsize
    assert counted(served)["write_bytes"] - before == planned["written_bytes"]
    assert cli.main(words) == UsageError.exit_code  # records exist
    assert cli.main(["trace", "play", path, "--virtual", "sata-tlc", "--capacity", "256MiB", "--closed", "--fill"]) == 0
    output = capsys.readouterr().out
    assert "SIMULATED, SCALED" in output and "lag" not in output and "NOT AT THE TRACE'S TIMES" in output
    assert cli.main(["trace", "play", path, "--virtual", "nothing"]) == UsageError.exit_code
    assert cli.main(["trace", "play", path, "--drive", "no-such-serial", "--dry-run"]) == UsageError.exit_code


def test_a_real_drive_is_written_only_where_the_guard_holds_it(tmp_path, monkeypatch, capsys):
    path = tmp_path / "drive"
    path.write_bytes(bytes(1 << 20))
    rows = bursts(20)
    traceform.write(tmp_path / "t", [rows], lambda: {"name": "mine"})
    drive = SimpleNamespace(
        node=str(path),
        name="sdz",
        capacity_bytes=1 << 20,
        logical_block_bytes=512,
        model="Mine",
        serial="S1",
        consent="S1",
        by_id=None,
        simulated=False,
        interface="SATA",
    )
    monkeypatch.setattr(trace_play.inventory, "find", lambda name: drive)
    held = []

    @contextlib.contextmanager
    def hold(asked, serial):
        if serial != drive.serial:
            raise UnsafeTarget("its serial", serial, "give it")
        held.append(True)
        named = contextlib.nullcontext(SimpleNamespace(name="sdz"))
        yield SimpleNamespace(check=lambda: drive, path=str(path), named=lambda: named)
        assert path.read_bytes()[:4096] != bytes(4096)  # all is written when the guard lets go
        held.pop()

    monkeypatch.setattr(trace_play.guard, "hold", hold)
    device = trace_targets.device
    monkeypatch.setattr(trace_targets, "device", lambda *a: device(*a) if held else pytest.fail("opened, and not held"))
    words = ["trace", "play", str(tmp_path / "t"), "--drive", "S1"]
    assert cli.main(words) == UnsafeTarget.exit_code  # nobody has consented
    assert cli.main([*words, "--destroy-data", "other"]) == UnsafeTarget.exit_code
    monkeypatch.setattr(trace_play.guard, "refusals", lambda *_, **__: [])
    assert cli.main([*words, "--dry-run"]) == 0
    assert not any(path.read_bytes())
    assert "ALL DATA WILL BE LOST on Mine" in capsys.readouterr().err
    assert cli.main([*words, "--destroy-data", "S1"]) == 0
    assert "20 I/Os, 81.9 kB" in capsys.readouterr().out


def test_times_below_a_minute_are_in_seconds():
    """A trace of 0.2 s played in 0.05 s is not "0:00 in place of 0:00"."""
    times = {"play_s": 0.05, "trace_s": 0.2, "idle_s": 0.0, "play_idle_s": 0.0}
    assert "0.05 s in place of 0.2 s" in trace_command._scaling(times)
    assert "2:00 in place of 4:00" in trace_command._scaling(times | {"play_s": 120.0, "trace_s": 240.0})
