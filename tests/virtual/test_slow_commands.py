"""The virtual drive's latency monitor, log C3h over NVMe/TCP, against the model's own latency of each command."""

import pytest
from nvmetcp_serving import host_of, refused
from serving import request, serving
from test_drive_latency import S, load, table

from ssdrig.drive.smart import latency_monitor
from ssdrig.reading import drive_latency

__all__ = ["serving"]  # the fixture
LONG_BYTES = 32 << 20
READ, WRITE = 0, 1  # of NBD


def start(serving, *words, preset="nvme-tlc-estimates"):
    return serving("--preset", preset, "--capacity", "1GiB", "--nvme-tcp", "127.0.0.1:0", *words)


def monitor(host):
    return latency_monitor.decode(host.admin.log(0xC3, 512))


def latency_ms(server, client, op, length=LONG_BYTES):
    """Of one command, by the model."""
    before = server.truth(op="ledger")["host_latency_ns"]
    client.sock.sendall(request(op, 0, length) + (bytes(length) if op == WRITE else b""))
    rest = memoryview(bytearray(16 + (length if op == READ else 0)))
    while rest:
        rest = rest[client.sock.recv_into(rest) :]
    return (server.truth(op="ledger")["host_latency_ns"] - before) / 1e6


def bucket_of(ms):
    return max(n for n, edge in enumerate((5, 10, 40, 160)) if ms >= edge)


def test_the_longest_command_is_in_its_bucket(serving):
    server = start(serving)
    with host_of(server) as host, server.client() as client:
        first = monitor(host)
        assert first["enabled"] and first["thresholds_ms"] == [5, 10, 40, 160] and first["timer_threshold"] == 0
        write_ms = latency_ms(server, client, WRITE)
        read_ms = latency_ms(server, client, READ)
        assert latency_ms(server, client, READ, 4096) < 5
        last = monitor(host)
    assert write_ms >= 5 and read_ms >= 5
    run = table(
        [reading(1, first), reading(10, last)],
        [load("a", 2, 9, write_lat_max_us=1e3 * write_ms, read_lat_max_us=1e3 * read_ms)],
    )
    (stretch,) = drive_latency.of(run)
    for name, ms in (("write", write_ms), ("read", read_ms)):
        assert stretch.drive["counts"][name] == [int(n == bucket_of(ms)) for n in range(4)]
        assert stretch.drive["least_ms"][name] == int(ms)
        assert stretch.host[name]["max_us"] == 1e3 * ms
    assert stretch.drive["counts"]["trim"] == [0] * 4 and stretch.drive["most_ms"]["trim"] == 5


def reading(at_s, facts):
    times = {"t_ns": at_s * S, "t_start_ns": at_s * S, "t_end_ns": at_s * S}
    return times | {"latency_monitor": facts, "unknown": []}


def test_counts_outlive_a_power_cut(serving):
    server = start(serving)
    with host_of(server) as host, server.client() as client:
        latency_ms(server, client, WRITE)
        before = monitor(host)
    server.admin(op="power_cut")
    server.admin(op="power_on")
    with host_of(server) as host:
        assert monitor(host)["counters"]["write"] == before["counters"]["write"] != [0] * 4


def test_drive_that_answers_without_delay_has_no_slow_command(serving):
    server = start(serving, "--no-latency")
    with host_of(server) as host, server.client() as client:
        latency_ms(server, client, WRITE)
        assert monitor(host)["counters"]["write"] == [0] * 4


@pytest.mark.parametrize("preset", ["nvme-tlc", "sata-tlc"])
def test_other_drives_have_no_such_page(serving, preset):
    with host_of(start(serving, "--no-latency", preset=preset)) as host:
        refused(0x109, host.admin.log, 0xC3)
