"""Around a power cut of the virtual drive, in model time: what capacitors promise, how the drive starts again, and what
the truth says."""

import json

import numpy as np
import pytest
from powercut_host import OLD, PAGE, Host, device

from ssdrig.blockio import nbd_protocol
from ssdrig.virtual.device import admin, identify, powercut, truth
from ssdrig.virtual.device.device import OFF_AT_LEAST_NS
from ssdrig.virtual.flash import versions
from ssdrig.virtual.flash.presets import ENTERPRISE_PLP, SATA_MLC, SATA_TLC

US, MS, S = 1_000, 1_000_000, 1_000_000_000


@pytest.fixture
def made():
    devices = []

    def make(preset=SATA_TLC, data="sparse", **how):
        devices.append(device(preset, data, **how))
        return devices[-1]

    yield make
    for it in devices:
        it.close()


def test_with_capacitors_a_reply_that_left_early_holds(made):
    """A drive that loses nothing it has acknowledged, whose replies leave `lead_ns` before the model's time."""
    it = made(ENTERPRISE_PLP)
    it.chances = powercut.Chances(in_flight_new=0)
    for lead_ns, stays in ((0, False), (60 * US, True)):
        it.lead_ns = lead_ns
        host = Host(it)
        host.now_ns = it.host_ns(it.drive._t) + MS
        due_ns = host.submit((nbd_protocol.WRITE, 3, 8, 0))[0]
        host.now_ns = due_ns - 20 * US
        shown = host.cut()[10][1]
        assert (shown != OLD) == stays


def test_the_start_takes_its_time_and_replays_the_map(made):
    it = made(SATA_MLC, capacity_bytes=1 << 30)
    host = Host(it)
    for commands in (0, 100):
        for page in range(commands):
            host.write(page)
        host.now_ns += MS
        it.power_cut(host.now_ns)
        on_ns = host.now_ns + S
        ready_ns = it.power_on(on_ns)
        assert ready_ns - on_ns == SATA_MLC.boot_ns + commands * SATA_MLC.t_R_ns // SATA_MLC.dies
        it.advance(ready_ns - 1)
        assert it.lit and not it.powered
        it.advance(ready_ns + 10 * MS)
        assert it.powered and versions.map_updates(it.drive) == 0
        drawn_J = it.drive.energy_between(it.model_ns(on_ns) + 5 * MS, it.model_ns(ready_ns))
        watts = (SATA_MLC.P_active_mW + SATA_MLC.P_idle_mW) / 1000
        assert drawn_J == pytest.approx(watts * (ready_ns - on_ns - 5 * MS) / 1e9, rel=0.01)
        host.now_ns = ready_ns + 20 * MS
    host.write(0)
    host.now_ns = host.flush()
    assert versions.map_updates(it.drive) == 0
    it.power_cut(host.now_ns)
    assert it.power_on(host.now_ns) == host.now_ns + OFF_AT_LEAST_NS + SATA_MLC.boot_ns


def test_a_cut_while_the_drive_starts_is_a_cut(made):
    it = made()
    host = Host(it)
    host.write(1)
    host.now_ns = host.flush()
    held = host.page(1)
    assert admin.answer_admin(it, {"op": "power_cut", "t_ns": host.now_ns - 7}, host.now_ns)[0] == {"pages_lost": 0}
    assert (it.last_cut["t_ns"], it.last_cut["lost_t_ns"]) == (host.now_ns - 7, host.now_ns)
    assert "error" in admin.answer_admin(it, {"op": "power_cut"}, host.now_ns)[0]
    on_ns = host.now_ns + S
    first_ns = it.power_on(on_ns)
    assert "error" in admin.answer_admin(it, {"op": "power_on"}, on_ns)[0]
    it.advance(on_ns + 50 * MS)
    assert admin.answer_admin(it, {"op": "power_cut"}, on_ns + 50 * MS)[0] == {"pages_lost": 0}
    it.advance(first_ns + S)
    assert not it.powered and not it.lit and it.last_cut["while_starting"]
    assert admin.answer_admin(it, {"op": "power_on", "wait": False}, first_ns + S) == ({}, first_ns + S)
    it.advance(first_ns + 2 * S)
    assert it.powered and host.page(1) == held
    assert (it.power_cycles, it.unsafe_shutdowns, it.cuts) == (3, 2, 2)


def test_the_truth_has_a_line_for_each_cut(made, tmp_path, monkeypatch):
    it = made()
    folder = truth.TruthFolder(str(tmp_path / "truth"), it)
    monkeypatch.setattr(powercut, "LISTED", 5)
    host = Host(it)
    host.write(0, 30)  # 24 are programmed, 6 wait
    host.now_ns += 3 * MS
    host.cut()
    host.write(7)
    host.now_ns += MS
    it.power_cut(host.now_ns)
    folder.close(host.now_ns)
    first, last = (json.loads(line) for line in (tmp_path / "truth" / "cuts.jsonl").read_text().splitlines())
    assert (first["cut"], first["pages_lost"], first["versions"], first["in_flight"]) == (1, 6, 30, 0)
    assert first["lost"] == [[page, 1, "cache"] for page in range(29, 24, -1)] and first["lost_left_out"] == 1
    assert first["ready_t_ns"] - first["on_t_ns"] - OFF_AT_LEAST_NS == first["recovery_ns"] > SATA_TLC.boot_ns
    assert last["lost"] == [[7, 1, "cache"]] and "ready_t_ns" not in last  # it never came back
    assert len((tmp_path / "truth" / "cuts.jsonl").read_bytes()) < 2000


def test_programs_and_erases_under_way_are_known_with_their_progress(made):
    it = made()
    host = Host(it)
    host.write(100, 24)
    end_ns = int(it.drive.cache[0, 2])
    assert versions.programs(it.drive, end_ns - SATA_TLC.t_PROG_ns // 4) == [(0, 0.75, 0, [*range(100, 124)])]
    assert versions.programs(it.drive, end_ns) == versions.erases(it.drive, end_ns) == []
    host.write(0, SATA_TLC.full_block_pages)  # one block of one die
    host.now_ns = host.flush()
    done_ns = it.format(host.now_ns)
    assert versions.erases(it.drive, done_ns - SATA_TLC.t_BERS_ns // 2) == [(0, 0.5)]


def test_torn_writes_only_where_nothing_says_that_a_page_is_whole(made):
    it = made()
    host, kinds = Host(it), set()
    assert int.from_bytes(identify.namespace(it, 9)[36:38], "little") == 7
    it.chances = powercut.Chances(torn=0.5)
    assert int.from_bytes(identify.namespace(it, 9)[36:38], "little") == 0  # NAWUPF: a block
    for _ in range(4):
        host.submit(*((nbd_protocol.WRITE, page, 1, 0) for page in range(40)))
        host.cut()
        for page in range(40):
            sectors = [host.page(page)[at : at + 512] for at in range(0, PAGE, 512)]
            changes = sum(a != b for a, b in zip(sectors, sectors[1:]))
            assert changes <= 4
            kinds.add(changes)
    assert {0, 1} <= kinds
    whole = made(ENTERPRISE_PLP)
    whole.chances = powercut.Chances(torn=1)
    host = Host(whole)
    host.submit(*((nbd_protocol.WRITE, page, 1, 0) for page in range(40)))
    assert {shown for _, shown in host.cut().values()} <= {OLD, *range(40)}


def test_with_capacitors_a_command_under_way_is_whole_beneath_a_later_one_of_a_sector(made):
    """Seen: two of 1000 cuts of an honest drive were TORN_ATOMIC. A page of the later command had the other sectors of
    the earlier one, whose other pages were gone."""
    it = made(ENTERPRISE_PLP)
    seen = set()
    for _ in range(40):
        host = Host(it)
        host.now_ns = it.host_ns(it.drive._t) + MS
        batch = np.zeros((2, nbd_protocol.COLUMNS), np.int64)
        for row, at, length in zip(batch, (3 * PAGE, 3 * PAGE + 512), (8 * PAGE, 512), strict=True):
            row[[nbd_protocol.OP, nbd_protocol.OFFSET, nbd_protocol.LENGTH]] = nbd_protocol.WRITE, at, length
        batch[1, nbd_protocol.AT] = 8 * PAGE
        content = bytes([len(seen) + 1, host.now_ns // MS % 251]) * (4 * PAGE) + bytes([255]) * 512
        it.execute(np.frombuffer(content, np.uint8), batch, 2, host.now_ns)
        host.cut()
        first = [host.page(page)[:512] == content[:512] for page in range(3, 11)]
        assert first in ([True] * 8, [False] * 8)
        seen.add((first[0], host.page(3)[512] == 255))
    assert {(True, False), (True, True)} <= seen


def test_commands_of_one_packet_change_contents_in_their_order(made):
    host = Host(made())
    host.submit(
        (nbd_protocol.WRITE, 5, 2, 0),
        (nbd_protocol.TRIM, 5, 1, 0),
        (nbd_protocol.WRITE, 6, 1, 0),
        (nbd_protocol.WRITE_ZEROES, 7, 1, 0),
    )
    assert host.page(5) == bytes(PAGE) and host.page(6)[0] == 2
    host.submit((nbd_protocol.TRIM, 5, 2, 0), (nbd_protocol.WRITE, 5, 1, 0))
    assert host.page(5)[0] == 3 and host.page(6) == bytes(PAGE)
    host.cut()
    assert host.device.store.replaced.trimmed == {}


def test_an_unreadable_page_fails_until_it_is_written(made):
    it = made()
    it.unreadable.add(4)
    batch = np.zeros((2, nbd_protocol.COLUMNS), np.int64)
    batch[:, nbd_protocol.OFFSET], batch[:, nbd_protocol.LENGTH] = (3 * PAGE, 4 * PAGE), PAGE
    it.execute(np.zeros(PAGE, np.uint8), batch, 2, 0)
    assert batch[:, nbd_protocol.ERROR].tolist() == [0, 5]
    batch[0, [nbd_protocol.OP, nbd_protocol.OFFSET]] = nbd_protocol.WRITE, 4 * PAGE
    batch[:, nbd_protocol.ERROR] = 0
    it.execute(np.zeros(PAGE, np.uint8), batch, 2, 0)
    assert batch[:, nbd_protocol.ERROR].tolist() == [0, 0]
