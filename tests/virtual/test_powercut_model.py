"""What a power cut takes from the virtual drive, in model time: never what it had promised, and not always the same."""

import numpy as np
import pytest
from powercut_host import OLD, Host, device

from ssdrig.blockio import nbd_protocol
from ssdrig.virtual.flash.presets import ENTERPRISE_PLP, SATA_TLC

US, MS = 1_000, 1_000_000
DURABLE_WRITES = 200
PAGES = 40


def overwritten(host, rng, others: int) -> int:
    """`others` with FUA keep a die busy; behind them a program unit; then pages of it with FUA, which may come to a
    free die. Returns when those are done."""
    for other in range(others):
        host.write(100 + other, fua=True)
    host.now_ns = host.write(0, 24 + int(rng.integers(0, 24))) + US
    return max(host.write(page, fua=True) for page in rng.choice(24, 4, replace=False).tolist())


def flushed(host, rng) -> int:
    for _ in range(3):
        for page in rng.integers(0, PAGES, 8).tolist():
            host.write(page)
            host.now_ns += int(rng.integers(0, 60 * US))
        host.now_ns += int(rng.integers(0, 2 * MS))
        done_ns = host.flush()
    host.write(int(rng.integers(0, PAGES)))
    return done_ns


def in_one_packet(host, rng) -> int:
    """A write with FUA, followed by plain ones of the same page in the same packet."""
    due = []
    for page in rng.choice(PAGES, 10, replace=False).tolist():
        due += host.submit(*((nbd_protocol.WRITE, page, 1, nbd_protocol.FUA if i == 0 else 0) for i in range(4)))[:1]
        host.now_ns += int(rng.integers(0, 100 * US))
    return max(due)


def cache_off(host, rng) -> int:
    """Each write with FUA, eight outstanding, on few pages."""
    due = [host.now_ns] * 8
    for _ in range(int(rng.integers(8, 40))):
        host.now_ns = max(host.now_ns, due.pop(0))
        due.append(host.write(int(rng.integers(0, 6)), fua=True))
        due.sort()
    return due[int(rng.integers(0, 8))]


LOADS = {
    "alone": lambda host, rng: overwritten(host, rng, 0),
    "others outstanding": lambda host, rng: overwritten(host, rng, 4),
    "flushed": flushed,
    "one packet": in_one_packet,
    "cache off": cache_off,
}


@pytest.mark.slow
@pytest.mark.parametrize("data", ["sparse", "crc", "file"])
@pytest.mark.parametrize("load", LOADS)
def test_no_durable_write_is_lost(load, data, tmp_path):
    it, rng = device(SATA_TLC, str(tmp_path / "data") if data == "file" else data), np.random.default_rng(7)
    host, durable, lost = Host(it), 0, []
    while durable < DURABLE_WRITES:
        host.now_ns = max(LOADS[load](host, rng), host.now_ns)
        for page, (legal, shown) in host.cut().items():
            durable += OLD not in legal
            if shown not in legal:
                lost.append((page, legal, shown))
    it.close()
    assert not lost, f"{len(lost)} of {durable}"


def test_what_was_under_way_is_there_or_not():
    it = device(SATA_TLC, "sparse")
    host, shown = Host(it), []
    for _ in range(10):
        due = host.submit(*((nbd_protocol.WRITE, page, 1, 0) for page in range(32)))
        host.now_ns = (host.now_ns + min(due)) // 2
        shown += [content for _, content in host.cut().values()]
    it.close()
    assert set(shown) <= {OLD, *range(32)} and 0.2 <= shown.count(OLD) / len(shown) <= 0.8


def test_of_several_versions_a_legal_one_stays_and_not_always_the_newest_or_the_one_before():
    it = device(SATA_TLC, "sparse")
    host, rng, back = Host(it), np.random.default_rng(3), []
    for _ in range(60):
        host.write(5)
        host.now_ns = host.flush()
        for _ in range(4):
            host.write(5)
            for page in range(30):
                host.write(1000 + page)
            host.now_ns += 800 * US
        host.now_ns += int(rng.integers(0, 3 * MS))
        legal, shown = host.cut()[5]
        assert shown in legal
        back.append(len(legal) - 1 - sorted(legal).index(shown))
    it.close()
    assert len(set(back)) >= 3 and max(back) >= 2, back


@pytest.mark.parametrize("data", ["sparse", "crc"])
def test_a_trim_is_undone_until_it_is_flushed(data):
    it = device(SATA_TLC, data)
    host, undone = Host(it), {"at once": 0, "flushed": 0, "FUA": 0, "drained": 0}
    for how in undone:
        for page in range(20):
            host.write(page)
        host.now_ns = host.flush()
        for page in range(0, 20, 2):
            host.now_ns = host.submit((nbd_protocol.TRIM, page, 2, nbd_protocol.FUA if how == "FUA" else 0))[0]
        if how == "flushed":
            host.now_ns = host.flush()
        if how == "drained":
            host.now_ns += 80 * MS
            it.advance(host.now_ns)
        for page, (_, _) in (judged := host.cut()).items():
            undone[how] += host.page(page).strip(b"\0") != b""
        assert len(judged) == 20
    it.close()
    assert undone["at once"] > 0 and undone["flushed"] == undone["FUA"] == undone["drained"] == 0


def test_with_capacitors_what_was_acknowledged_stays_and_what_was_not_is_whole():
    it = device(ENTERPRISE_PLP, "sparse")
    host, old = Host(it), 0
    for _ in range(20):
        due = host.submit(*((nbd_protocol.WRITE, 16 * i, 16, 0) for i in range(8)))
        host.now_ns = due[4]
        judged = host.cut()
        assert all(shown in legal for legal, shown in judged.values())
        for i in range(8):
            assert len({judged[16 * i + k][1] for k in range(16)}) == 1
        old += judged[16 * 7][1] == OLD
    it.close()
    assert 2 <= old <= 18
