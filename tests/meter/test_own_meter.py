"""sources/drive.py: the own report of an NVMe drive as a meter, by the pages of the virtual drive. A drive that is
honest, one that flags an estimate, and one that reports 10 % too little."""

import struct
from types import SimpleNamespace

import pytest

from ssdrig.base.errors import RigError, UsageError
from ssdrig.meter import bridge, meter
from ssdrig.meter.sources import drive
from ssdrig.run import pairing
from ssdrig.virtual.device import smartlog
from ssdrig.virtual.device.power import START, PowerMeasurement

S = 10**9
HEALTH = dict.fromkeys(
    (
        *("host_read_bytes", "host_write_bytes", "host_read_commands", "host_write_commands", "busy_s", "power_cycles"),
        *("power_on_s", "unsafe_shutdowns", "media_errors", "error_log_entries", "warm_s", "hot_s", "tmt1_count"),
        *("tmt2_count", "tmt1_s", "tmt2_s", "percentage_used", "energy_Wh"),
    ),
    1,
) | {"temperature_C": 40.0, "available_spare_percent": 100, "over_C": 70, "under_C": None, "read_only": False}


class Time:
    """A clock of its own: it passes while one sleeps, and a millisecond a look."""

    def __init__(self):
        self.now_ns = 100 * S

    def monotonic_ns(self):
        self.now_ns += 1_000_000
        return self.now_ns

    def monotonic(self):
        return self.now_ns / 1e9

    def sleep(self, seconds):
        self.now_ns += round(seconds * 1e9)


class Drive:
    """An NVMe controller as drive.Controller holds it: an interval of a second draws W(second), reported times says."""

    def __init__(self, clock, says=1.0, power_log="", percent=255, watts=lambda second: 2.0 + second % 3, answer_s=0.0):
        self.clock, self._says, self._log, self._percent, self._watts = clock, says, power_log, percent, watts
        self._answer_ns = round(answer_s * S)
        self.measured, self._second, self.asked, self.closed = PowerMeasurement(), clock.now_ns // S, [], False
        self.serial = "S1"

    def _tick(self):
        while self._second < self.clock.now_ns // S:
            self.measured.interval(self.interval_W(self._second))
            self._second += 1

    def interval_W(self, second):
        return self._says * self._watts(second)

    def log(self, lid, size):
        self.clock.now_ns += self._answer_ns // 2
        self._tick()
        self.asked.append(lid)
        power_log = None
        if self._log:
            names = "on", "generation", "count", "average_W", "maximum_W"
            power_log = {name: getattr(self.measured, name) for name in names}
            power_log |= {"gaps": "gaps" in self._log, "estimated": "estimated" in self._log}
            power_log["error_percent"] = self._percent
        health = HEALTH | {"interval_W": self.interval_W(self._second - 1), "power_log": power_log}
        health["latency_monitor"] = None
        self.clock.now_ns += self._answer_ns // 2
        if lid == 0:
            page = bytearray(1024)
            for known in (0, 2, *([0x25] if self._log else [])):
                page[4 * known] = 1
            return bytes(page)
        return smartlog.pages(health)[lid](health)[:size]

    def identity(self):
        page = bytearray(4096)
        page[4:24], page[24:64] = self.serial.encode().ljust(20), b"MODEL".ljust(40)
        page[261] = bool(self._log) << 5
        return bytes(page)

    def measure(self, action):
        self._tick()
        self.measured.act(action)

    def close(self):
        self.closed = True


@pytest.fixture
def made(monkeypatch):
    """A function that opens the meter of such a drive: (meter, drive)."""
    clock = Time()
    monkeypatch.setattr(drive, "time", clock)
    monkeypatch.setattr(meter, "time", clock)

    def make(query="", measuring=True, **how):
        one = Drive(clock, **how)
        if measuring and one._log:
            one.measure(START)
        monkeypatch.setattr(drive, "Controller", lambda path: one)
        return drive.opened(f"/dev/nvme0{query}"), one

    return make


def read(one, n):
    blocks = one.blocks()
    return [next(blocks) for _ in range(n)]


@pytest.mark.parametrize(
    ("how", "name", "words", "seen"),
    [
        ({}, "the own report of MODEL", "the drive's own report, for", 0.0),
        ({"power_log": "measured", "percent": 5}, "the own report of MODEL", "+-5 % by its own word", 1.0),
        ({"power_log": "estimated", "percent": 15}, "ESTIMATED", "+-15 %, an estimate", 1.0),
        ({"power_log": "measured gaps"}, "not contiguous", "with gaps", 0.0),
        ({"power_log": "measured", "percent": 5, "says": 0.9}, "the own report of MODEL", "+-5 % by its own word", 1.0),
    ],
)
def test_the_drives_own_word_is_flagged_and_never_an_uncertainty(made, how, name, words, seen):
    one, _ = made(**how)
    (rail,) = one.rails()
    assert name in one.name and words in rail.accuracy.unknown and rail.seen == seen
    assert rail.accuracy[:3] == ((), (), ()) and not rail.accuracy.chip
    hello = bridge.hello("drive:/dev/nvme0", one)
    assert hello["source"] == "drive" and hello["rails"][0]["accuracy"]["unknown"] and hello["serial"] == "S1"


@pytest.mark.parametrize("says", [1.0, 0.9])
def test_each_interval_is_a_reading_where_the_drive_counts_them(made, says):
    one, own = made(power_log="measured", says=says)
    for block in read(one, 12):
        second = round((block.t_ns[0] + block.bound_ns) // S)  # it ended within the bound of a whole second
        edge_ns = round(block.t_ns[0] / S) * S
        assert abs(block.t_ns[0] - edge_ns) <= block.bound_ns <= one.clock().bound_ns and second
        watts = block.volts[0] * block.amperes[0]
        assert watts == pytest.approx(own.interval_W(edge_ns // S - 1), abs=1e-4) and block.missed == 0


@pytest.mark.parametrize("answer_s", [0.3, 0.7, 2.4])
def test_a_host_slower_than_the_intervals_has_readings_within_the_bound_that_it_states(made, answer_s):
    one, own = made(power_log="measured", answer_s=answer_s)
    begin_s, blocks = own.clock.now_ns / S, read(one, 8)
    for block in blocks:
        ends = range((block.t_ns[0] - block.bound_ns) // S, (block.t_ns[0] + block.bound_ns) // S + 1)
        assert any(
            own.interval_W(end - 1) == pytest.approx(block.volts[0] * block.amperes[0], abs=1e-4) for end in ends
        )
        assert block.bound_ns <= one.clock().bound_ns
    counted = sum(1 + block.missed for block in blocks)
    assert counted == pytest.approx(own.clock.now_ns / S - begin_s, abs=1 + 6 * answer_s)


def test_intervals_that_nobody_asked_for_are_counted_as_lost(made):
    one, own = made(power_log="measured")
    blocks = one.blocks()
    next(blocks)
    own.clock.now_ns += 5 * S
    assert next(blocks).missed in (4, 5)


def test_a_drive_that_does_not_count_is_read_once_a_second(made):
    one, own = made()
    first, *_, last = read(one, 5)
    assert last.t_ns[0] - first.t_ns[0] == pytest.approx(4 * S, abs=S // 10)
    assert S // 2 <= first.bound_ns <= one.clock().bound_ns and own.asked.count(0x25) == 0


def test_its_measurement_is_started_only_where_that_is_asked_and_stopped_then(made):
    one, own = made(power_log="measured", measuring=False)
    assert not own.measured.on and one.rails()[0].seen == 0
    one.close()
    one, own = made("?start=1", power_log="measured", measuring=False)
    assert own.measured.on and one.rails()[0].seen == 1
    one.close()
    assert not own.measured.on and own.closed


def test_another_drive_and_one_without_power_are_refused(made, monkeypatch):
    with pytest.raises(RigError):
        made("?serial=S2")
    monkeypatch.setattr(smartlog, "interval_power", lambda watts: 0)
    with pytest.raises(RigError):
        made("?serial=S1")


def test_a_run_names_its_own_drive():
    assert meter.of_drive("drive:", "/dev/nvme7", "A B") == "drive:/dev/nvme7?serial=A+B"
    assert meter.of_drive("drive:?V=3.3", "/dev/nvme7", "A") == "drive:/dev/nvme7?serial=A&V=3.3"
    assert meter.of_drive("hwmon:/x", None, "A") == "hwmon:/x"
    assert drive._parts("/dev/nvme7?serial=A+B&V=3.3") == ("/dev/nvme7", drive.RATE_HZ, 3.3, "A B", False)
    with pytest.raises(UsageError):
        meter.of_drive("drive:", None, "A")


@pytest.mark.parametrize("query", ["rate=0.5", "rate=x", "V=0", "V=99", "start=2", "other=1"])
def test_what_is_no_such_url_is_refused(query):
    with pytest.raises(UsageError):
        drive.check(f"/dev/nvme0?{query}")


@pytest.mark.parametrize(("serial", "verdict"), [("S1", "paired"), ("S2", "not paired")])
def test_the_report_is_paired_by_its_serial(serial, verdict):
    book = SimpleNamespace(event=lambda kind, **fields: {"kind": kind, **fields})
    rig = SimpleNamespace(hello=lambda: {"source": "drive", "serial": "S1", "rails": []})
    bench = SimpleNamespace(connect=object(), drive={"serial": serial, "capacity_bytes": 1})
    event = pairing.carry_out(bench, book, rig)
    assert event["verdict"].replace("_", " ") == verdict and bool(event["why"]) == (verdict != "paired")


def test_a_command_is_laid_out_as_the_kernel_has_it(monkeypatch, tmp_path):
    seen = []

    def ioctl(fd, request, command):
        seen.append((request, bytes(command)))
        return 0

    monkeypatch.setattr(drive.fcntl, "ioctl", ioctl)
    (tmp_path / "nvme0").touch()
    one = drive.Controller(str(tmp_path / "nvme0"))
    one.log(0x25, 64)
    one.measure(START)
    one.close()
    (request, log), (_, feature) = seen
    assert request == (3 << 30 | 72 << 16 | ord("N") << 8 | 0x41) and len(log) == 72
    assert (log[0], *struct.unpack_from("<I", log, 4)) == (0x02, 0xFFFFFFFF)
    assert struct.unpack_from("<IIII", log, 32) == (0, 64, 15 << 16 | 0x25, 0)  # metadata, data, words 10 and 11
    assert feature[0] == 0x09 and struct.unpack_from("<II", feature, 40) == (0x25, 1)
