"""The kernel's counts of a load: read from a tree of files, held against fio's; and the verdicts of
plan/rules/limits.py."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import synthetic_plan
import synthetic_run
from ata_documents import drive, snap
from loop_device import loop_device

from ssdrig.drive import witness
from ssdrig.drive.smart import counters
from ssdrig.load import ceiling, fio
from ssdrig.load.fiojob import Job
from ssdrig.plan.rules import limits
from ssdrig.plan.rules.windows import Window
from ssdrig.reading import table
from ssdrig.reading import witness as held
from ssdrig.report import page, screen
from ssdrig.views import documents

# of a 6.1 kernel's nvme0n1, before and after 20 000 writes of 4 KiB that took 80 µs each, and 30 reads of udev's
BEFORE = "  183 0 9352 41 1000 5 8192000 900 0 1200 941 7 0 64 1 3 9\n"
AFTER = "  213 0 9592 42 21000 5 8352000 2500 0 3200 2542 7 0 64 1 5 9\n"
CPUS = "cpu  300 0 100 1600 0 0 0 0 0 0\ncpu0 {} 0 50 {} 10 0 0 0 90 0\ncpu1 100 0 50 850 0 0 0 0 0 0\nctxt 5\n"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (
            "some avg10=9.1 avg60=0.0 avg300=0.0 total=7949991375\nfull avg10=0.0 avg60=0.0 avg300=0.0 total=5\n",
            7949.991375,
        ),
        ("full avg10=0.0 avg60=0.0 avg300=0.0 total=5\n", None),
        ("some avg10=0.0 total=-1\n", None),
        ("", None),
        (None, None),
    ],
)
def test_for_how_long_processes_waited_for_a_cpu(tmp_path, text, seconds):
    (tmp_path / "proc/pressure").mkdir(parents=True)
    if text is not None:
        (tmp_path / "proc/pressure/cpu").write_text(text)
    assert witness.waited_s(tmp_path) == seconds


@pytest.mark.parametrize(
    ("texts", "seconds"),
    [
        (["1 2500000000 7\n"], 2.5),
        (["1 2500000000 7\n", "9 500000000 1\n"], 3.0),
        (["1 2500000000 7\n", ""], 2.5),  # a thread that has just ended
        (["1 2500000000 7\n", "1 2\n"], None),
        (["1 -2 3\n"], None),
        ([], None),
    ],
)
def test_how_long_the_threads_of_a_process_waited_for_a_cpu(tmp_path, texts, seconds):
    for tid, text in enumerate(texts, 41):
        (tmp_path / f"proc/41/task/{tid}").mkdir(parents=True)
        (tmp_path / f"proc/41/task/{tid}/schedstat").write_text(text)
    assert witness.process_waited_s(41, tmp_path) == seconds


@pytest.mark.parametrize(
    ("text", "ticks"),
    [
        ("41 (nbdkit) S " + " ".join(map(str, range(4, 53))) + "\n", 22),
        ("41 (a) b) (c) R " + " ".join(map(str, range(4, 53))) + "\n", 22),  # its name may be any
        ("41 (nbdkit) S 1 2\n", None),
        ("", None),
    ],
)
def test_process_is_known_by_when_it_began(tmp_path, text, ticks):
    (tmp_path / "proc/41").mkdir(parents=True)
    (tmp_path / "proc/41/stat").write_text(text)
    assert witness.began_ticks(41, tmp_path) == ticks
    assert witness.began_ticks(42, tmp_path) is None


def test_how_busy_the_host_was(tmp_path):
    """Steal of all CPUs, and the time in which processes waited for a CPU or for memory; None where it is not known."""
    (tmp_path / "proc/pressure").mkdir(parents=True)

    def read(idle, stolen, cpu_us=None, t_ns=0):
        (tmp_path / "proc/stat").write_text(f"cpu0 100 0 0 {idle} 0 0 0 {stolen} 0 0\ncpu1 100 0 0 {idle} 0 0 0\n")
        if cpu_us is not None:
            (tmp_path / "proc/pressure/cpu").write_text(f"some avg10=0.0 total={cpu_us}\n")
        return witness.read(None, tmp_path) | {"t_ns": t_ns}

    first = read(100, 0)
    assert witness.between(first, first)["steal_percent"] is None
    before, after = read(100, 0, 1_000_000, 10**9), read(190, 20, 1_500_000, 2 * 10**9)
    busy = witness.between(before, after)
    assert busy["steal_percent"] == 10.0 and busy["waited_percent"] == {"cpu": 50.0, "memory": None}
    assert witness.between(first, after)["waited_percent"] == {"cpu": None, "memory": None}


def test_how_late_a_simulated_drive_answered():
    """Counts since its start at two readings, and of the seconds between them."""
    idle = witness.read(None)
    before = idle | {"pace": {"next": 3, "rows": [[10, 100, 5_000, 1_000_000, 900]]}}
    after = idle | {"pace": {"next": 5, "rows": [[20, 110, 105_000, 2_000_000, 9], [30, 120, 125_000, 2_200_000, 9]]}}
    assert witness.between(before, after)["answers"] == {
        **{"answers": 20, "late_us": 6.0, "service_us": 60.0},
        "seconds": [[10, 10.0, 100.0], [10, 2.0, 20.0]],
    }
    assert witness.between(before, idle | {"pace": None})["answers"] is None
    assert "answers" not in witness.between(idle, idle)


@pytest.fixture
def kernel(tmp_path):
    """kernel(stat, cpu0's user and idle) -> a reading of nvme0n1."""

    def read(stat, user=100, idle=750, name="nvme0n1"):
        for path, text in (
            ("sys/block/nvme0n1/stat", stat),
            ("sys/block/nvme0n1/queue/max_sectors_kb", "256\n"),
            ("sys/block/nvme0n1/queue/max_segments", f"{131072 // witness.PAGE_BYTES}\n"),
            ("proc/stat", CPUS.format(user, idle)),
        ):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return witness.read(name, tmp_path)

    return read


def test_what_was_counted_in_between(kernel):
    got = witness.between(kernel(BEFORE), kernel(AFTER, 190, 760))
    assert got["drive"] == {
        **{"reads": 30, "writes": 20000, "read_merges": 0, "write_merges": 0, "wait_ms": 1601},
        **{"read_bytes": 240 * 512, "written_bytes": 160000 * 512, "split_bytes": 131072},
    }
    assert got["why"] is None and got["cpus_busy_percent"] == [90.0]  # cpu1 has not moved
    json.dumps(got)


@pytest.mark.parametrize(
    "stat", ["", "1 2 3\n", "9" * 5000 + " 0" * 10, "a b c d e f g h i j k\n", "-1 0 0 0 0 0 0 0 0 0 0\n"]
)
def test_what_is_no_count_is_null_with_the_reason(kernel, stat):
    got = witness.between(kernel(stat), kernel(stat))
    assert got["drive"] is None and got["why"] == "the kernel has no counts of nvme0n1"


def test_a_drive_in_user_space_and_one_that_came_again(kernel):
    user = kernel(BEFORE, name=None)
    assert witness.between(user, user)["why"] == witness.NO_DEVICE
    assert witness.between(kernel(AFTER), kernel(BEFORE))["why"] == witness.WENT_BACK
    assert witness.between(*[witness.read(None)] * 2)["drive"] is None  # this machine's


def test_milliseconds_that_wrap_are_no_device_that_came_again(kernel):
    """The kernel prints them as 32 bits (part_stat_show in block/genhd.c): at queue depth 256 every 4.7 hours."""
    before = BEFORE.replace(" 8192000 900 ", f" 8192000 {(1 << 32) - 600} ")
    got = witness.between(kernel(before), kernel(AFTER.replace(" 8352000 2500 ", " 8352000 1000 ")))
    assert got["drive"]["wait_ms"] == 1601 and got["why"] is None


def test_a_device_that_came_again_under_its_name_and_has_counted_more_by_now(kernel, tmp_path):
    seq = tmp_path / "sys/block/nvme0n1/diskseq"
    first = kernel(BEFORE)
    seq.write_text("7\n")
    before = kernel(BEFORE)
    seq.write_text("9\n")
    difference = witness.between(before, kernel(AFTER))
    assert (difference["drive"], difference["why"]) == (None, witness.WENT_BACK)
    assert witness.between(first, kernel(AFTER))["drive"], "a kernel before 5.15 does not number them"


def totals(ios=20000, block_bytes=4096, lat_us=85.0, slat_us=3.0):
    return {
        "ios": ios,
        "bytes": ios * block_bytes,
        "lat_sum_ns": ios * lat_us * 1000,
        "slat_sum_ns": ios * slat_us * 1000,
    }


def counted(reads=0, writes=20000, merges=0, size=4096, us=80.0, split=131072):
    return {
        "drive": {
            **{"reads": reads, "writes": writes, "read_merges": 0, "write_merges": merges, "read_bytes": 0},
            **{"written_bytes": (writes + merges) * size, "split_bytes": split},
            "wait_ms": round((reads + writes) * us / 1000),
        }
    }


def test_counts_that_agree_say_nothing():
    got, notes = held.kernel(counted(reads=30), totals())
    assert notes == [] and got == {"ios": 20030, "bytes": 81920000, "lat_mean_us": pytest.approx(80, 0.01), "why": None}
    assert held.kernel(counted(writes=20000 + 532), totals())[1] == []  # 0.1 % and what udev reads


@pytest.mark.parametrize(
    ("event", "fio", "note"),
    [
        (counted(writes=20000 + 533, size=4000), totals(), "kernel: it counted 20533 I/Os, fio 20000"),
        (counted(writes=19000), totals(), "kernel: it counted 19000 I/Os, fio 20000"),
        (counted(size=4400), totals(), "kernel: it counted 88000000 bytes, fio 81920000"),
        (counted(us=106), totals(), "kernel: a request took 106 µs, which is longer than fio's 85 µs"),
        (counted(us=60), totals(), "kernel: a request took 60 µs of fio's 82 µs: the rest passed in the host"),
    ],
)
def test_what_disagrees_is_a_note(event, fio, note):
    notes = held.kernel(event, fio)[1]
    assert len(notes) == 1 and notes[0].startswith(note), notes


@pytest.mark.parametrize(("block_bytes", "count"), [(4096, 512), (1 << 20, 32)])
def test_a_real_kernel_counts_what_fio_does(tmp_path, block_bytes, count):
    """On a loop device, which splits an I/O of 1 MiB where its pages do not lie side by side."""
    (tmp_path / "drive").write_bytes(bytes(32 << 20))
    with loop_device(tmp_path / "drive") as node:
        job = Job("x", "randwrite", block_bytes, 4, 32 << 20, target=node, io_size=count * block_bytes, seed=1)
        before = witness.read(Path(node).name)
        done = fio.run(job, tmp_path / "fio")
        counted = witness.between(before, witness.read(Path(node).name))
    assert (done.ios, done.bytes) == (count, count * block_bytes)
    got, notes = held.kernel(counted, done.seconds.totals)
    assert got["bytes"] == done.bytes and got["ios"] >= count and not any("counted" in note for note in notes)
    assert counted["drive"]["reads"] == 0 and (got["ios"] == count or block_bytes > counted["drive"]["split_bytes"])


def test_a_load_longer_than_the_kernels_milliseconds_count_has_no_mean():
    """Its 32 bits may have wrapped more than once: what is left of them looks like a host that held the I/Os back."""
    many, ios = totals(ios=10**9, lat_us=5000.0), 10**9
    event = counted(writes=ios, us=5000.0)
    event["drive"]["wait_ms"] %= 1 << 32
    got, notes = held.kernel(event, many)
    assert notes == [] and got["ios"] == ios and got["lat_mean_us"] is None and "32 bits" in got["why"]


def test_requests_that_are_split_or_merged_are_no_disagreement():
    split = counted(writes=80000, size=131072, split=131072)
    got, notes = held.kernel(split, totals(block_bytes=524288))
    assert notes == [] and got["lat_mean_us"] is None and "split" in got["why"]
    got, notes = held.kernel(counted(writes=15000, merges=5000), totals())
    assert notes == [] and got["ios"] == 15000 and "merged" in got["why"]


def test_nothing_counted_has_its_reason():
    assert "iostats" in held.kernel(counted(writes=0), totals())[0]["why"]
    assert held.kernel(None, totals())[0]["why"] == "the run did not read the kernel's counts"
    assert held.kernel({"drive": None, "why": "gone"}, totals())[0] == dict.fromkeys(held.KEYS) | {"why": "gone"}


@pytest.mark.parametrize(
    ("facts", "counted", "reason"),
    [
        ((84.9, 1, 32.0, 32), {}, None),
        ((85.0, 1, 32.0, 32), {}, "fio took 85 % of a core"),
        ((339.0, 4, 128.0, 128), {}, None),
        ((372.0, 4, 128.0, 128), {}, "each of the 4 threads of fio took 93 % of a core"),
        ((None, 1, 10.0, 32), {}, None),  # few in flight alone: the plan may have wanted that
        (
            (10.0, 1, 10.0, 32),
            {"cpus_busy_percent": [99.0, 5.0]},
            "10.0 of 32 I/Os were in flight, and a CPU of the host was 99 % busy",
        ),
        ((10.0, 1, 30.0, 32), {"cpus_busy_percent": [99.0, 5.0]}, None),
        ((10.0, 1, 10.0, None), {"cpus_busy_percent": [99.0, 5.0]}, None),  # an open loop asks for no depth
        ((10.0, 1, 32.0, 32), {"cpus_busy_percent": [99.0, 93.0]}, "all CPUs of the host were 96 % busy"),
        ((10.0, 1, 32.0, 32), {"steal_percent": 5.0, "waited_percent": {"cpu": 20.0, "memory": 5.0}}, None),
        ((10.0, 1, 32.0, 32), {"steal_percent": 6.0}, "the hypervisor gave 6 % of the CPU time to others"),
        ((10.0, 1, 32.0, 32), {"waited_percent": {"memory": 7.0}}, "processes waited for memory in 7 % of the time"),
        # what a stranger's journal may hold
        (
            (10.0, 1, 32.0, 32),
            {"cpus_busy_percent": ["x", None, True], "steal_percent": "9", "waited_percent": 3},
            None,
        ),
    ],
)
def test_host_limited(facts, counted, reason):
    assert limits.host(*facts, counted) == reason


@pytest.mark.parametrize(
    ("before", "after", "note"),
    [
        ({}, {"throttle_1_count": 5}, None),
        ({"throttle_1_count": 5, "warning_temp_min": 3}, {"throttle_1_count": 5, "warning_temp_min": 3}, None),
        ({"throttle_1_count": 9}, {"throttle_1_count": 1}, None),
        ({"throttle_1_count": 5}, {"throttle_1_count": 7}, "light throttling +2"),
        (
            {"critical_temp_min": 0, "throttle_2_s": 4},
            {"critical_temp_min": 1, "throttle_2_s": 70},
            "minutes above its critical temperature +1, seconds of heavy throttling +66",
        ),
    ],
)
def test_throttled(before, after, note):
    assert limits.throttled(before, after) == note


@pytest.mark.parametrize(
    ("family", "before", "after", "note"),
    [
        ("Intel S4510 Series SSDs", (234, "Thermal_Throttle_Status", "0/3"), "1/5", "throttling events +2"),
        ("Intel 730 and DC S35x0 Series SSDs", (234, "Thermal_Throttle", "0/0"), "0/1", "throttling events +1"),
        ("Phison Driven SSDs", (207, "Thermal_Throttling_Cnt", "4"), "9", "throttling events +5"),
        ("SSSTC ERX GD/CD Series SSDs", (234, "Thermal_Throttle_Status", "0"), "1", None),  # nobody says what it counts
    ],
)
def test_a_sata_drive_that_was_throttled(family, before, after, note):
    key, name, first = before

    def reading(text):
        percent, _, count = text.rpartition("/")
        document = drive(family, (key, name, (int(percent or 0) << 32) + int(count)))
        document["smartctl"]["ata_smart_attributes"]["table"][0]["raw"]["string"] = text
        return counters.snapshot(document)

    assert limits.throttled(reading(first), reading(after)) == note


def test_a_sata_drive_that_was_above_its_specified_temperature():
    readings = [snap(None, statistics=[(5, 0x50, minutes)], power_on_time={"hours": 9}) for minutes in (3, 4)]
    assert limits.throttled(*readings) == "minutes above its warning or highest specified temperature +1"


def hot(folder, number, count):
    """Makes the drive say, at a poll, that it has slowed down so often."""
    path = folder / "smart" / f"{number:03}.json"
    document = json.loads(path.read_bytes())
    page = bytearray.fromhex(document["log_02h"])
    page[216:220] = count.to_bytes(4, "little")
    path.write_text(json.dumps(document | {"log_02h": page.hex()}))


def test_the_rows_of_a_plan_have_counts_and_verdicts(tmp_path):
    folder = synthetic_plan.steps(tmp_path)
    hot(folder, 2, 3)  # after the load `clean`
    row, after = (table.load(folder).of(path)[0] for path in ("clean", "after"))
    notes = [note for note in row.notes if note.startswith("throttled")]
    assert notes == ["throttled: the drive counted light throttling +3 between its SMART readings at 0 s and 4 s"]
    assert not any("throttled" in note for note in after.notes)
    assert any("clean, throttled: " in line for line in screen.ended(folder)[0]), "the end of a run says so"
    assert documents.of_row(row)["kernel"]["why"] == "the run did not read the kernel's counts"


def test_the_main_job_has_them_in_its_windows_too(tmp_path):
    folder = synthetic_run.write(tmp_path, iops=[4000] * 6 + [1000] * 24, zoom_s=20)
    numbers = sorted(int(path.stem) for path in (folder / "smart").glob("*.json"))
    for number in numbers[-2:]:  # at the end of the load, and after it
        hot(folder, number, 2)
    figures = table.in_full(folder).figures
    assert figures["kernel"]["why"] and not any("host-limited" in note for note in figures["notes"])
    assert any("throttled" in note for note in figures["windows"]["steady"]["notes"])
    assert not any("throttled" in note for note in figures["windows"]["fresh"]["notes"])


def test_a_round_in_which_the_drive_slowed_down_is_named():
    """SMART is read before each round only, so the points of a round cannot tell."""
    seconds = ((0, "before", 3), (10, "round", 3), (20, "round", 3), (30, "round", 8), (40, "end", 9), (50, "end", 70))
    polls = [{"t_ns": t, "reason": reason, "throttle_1_s": heat} for t, reason, heat in seconds]
    events = [{"t_ns": t + 1, "kind": "step.start", "round": number} for t, number in ((10, 4), (20, 5), (30, 6))]
    notes = "throttled: the drive counted seconds of light throttling +{} between its SMART reading before round {}"
    notes = [f"{notes.format(*numbers)} and the next" for numbers in ((5, 5), (1, 6))]
    assert held.rounds(SimpleNamespace(snapshots=polls, events=events)) == notes
    assert held.rounds(SimpleNamespace(snapshots=polls[:1], events=events)) == []


def test_the_page_says_what_has_limited_a_point_once(tmp_path):
    table_ = table.load(synthetic_plan.grid(tmp_path, rounds=6, power=False))
    for row in table_.of("rounds"):
        if row.act.point == {"read": 0, "block": "4 KiB"}:
            row.notes.append(f"host-limited: fio took {90 + row.round} % of a core")
    notes = [note for note in page.notes(table_) if "host-limited" in note]
    assert notes == ["rounds/point read=0 block=4KiB: host-limited: fio took 92 % of a core (5 rounds alike)"]


@pytest.mark.slow
@pytest.mark.parametrize(("share", "limited"), [(1.0, False), (0.8, True)])
def test_threads_that_end_one_after_the_other_are_no_host_that_is_too_slow(share, limited):
    """By the longest of them 69 % of the I/Os were in flight, which with a busy CPU was blamed on the host."""
    ms = [5600, 5800, 6000, 10_000]
    totals_ = {"ios": 1000, "lat_sum_ns": share * 32 * sum(ms) * 1e6, "runtime_ms": 10_000, "threads_ms": sum(ms)}
    data = SimpleNamespace(
        totals=totals_ | {"cpu_percent": 40.0, "user_percent": 9.0},
        load_s=10.0,
        k=1,
        header={"drive": {}},
        snapshots=[],
        t0_ns=None,
        asked={"queue_depth": 128, "threads": 4}.get,
    )
    verdicts = held.verdicts(data, {"cpus_busy_percent": [99.0, 20.0]})
    assert bool(verdicts) == limited and all(note.startswith("host-limited: ") for note in verdicts)


@pytest.mark.parametrize(
    ("method", "limited"),
    [
        ({}, True),
        ({"polled": 1}, False),
        ({"paced": 1}, False),
        ({"paced": 1, "rate": 1000.0}, False),
        ({"paced": 1, "rate": 1015.0}, False),
        ({"paced": 1, "rate": 1100.0}, True),
    ],
)
def test_a_thread_that_spins_takes_its_cpu_in_any_case(method, limited):
    """A thread that polls does, and fio's wait for a time that is less than 100 µs off; of a rate that was not reached
    it is the host's limit all the same."""
    data = SimpleNamespace(
        totals={"ios": 1000, "lat_sum_ns": 4e9, "runtime_ms": 1000, "cpu_percent": 99.0},
        load_s=1.0,
        k=1,
        asked=({"queue_depth": 4, "threads": 1} | method).get,
    )
    busy = {"cpus_busy_percent": [99.0, 92.0]}  # 92 of the 101 % that the thread leaves
    for event, host in (({}, limited), (busy, limited)):
        assert any(load.beyond for load in held.host(data, event)) == host
    assert any(load.beyond for load in held.host(data, {"cpus_busy_percent": [99.0, 99.0]}))


def test_threads_that_spin_on_every_cpu_leave_none_to_be_busy():
    assert limits.host(199.0, 2, None, None, {"cpus_busy_percent": [100.0, 100.0]}, True) is None


@pytest.mark.parametrize("rate", [2000, 50_000])
def test_fio_at_a_rate_is_not_the_limit_of_it(tmp_path, rate):
    """Of a null target; from some 20 kIOPS on its thread takes all of a CPU."""
    shape = ceiling.Shape("read", True, ((4096, 100),), 32, 1)
    speed = ceiling.speeds([replace(ceiling.job(shape, False), time_s=0.5, rate_iops=rate)])[0]
    data = SimpleNamespace(
        totals={"ios": round(speed.iops), "lat_sum_ns": None, "runtime_ms": 1000, "cpu_percent": speed.cpu_percent},
        load_s=1.0,
        k=1,
        asked={"threads": 1, "paced": 1, "rate": float(rate)}.get,
    )
    assert not any(load.beyond for load in held.host(data, {}))


@pytest.mark.parametrize(("share", "limited"), [(0.5, False), (0.79, False), (0.81, True), (1.1, True)])
@pytest.mark.parametrize("k", [1, 4])
def test_load_near_its_ceiling_is_host_limited(share, limited, k):
    """Whatever the drive is; a SIMULATED one may have longer seconds. The window's own counts are held against it."""
    data = SimpleNamespace(
        totals={"ios": round(10_000 * share) * 8, "runtime_ms": 8000, "lat_sum_ns": None},
        load_s=8 / k,
        k=k,
        t0_ns=0,
        events=[],
        asked=lambda key: None,
    )
    data.iops = np.full(8 // k, round(10_000 * share) * k)
    window = Window("end", 0, 8 // k, {})
    for loads in (held.host(data, None, ceiling_iops=10_000.0), held.host(data, None, window, 10_000.0)):
        assert [load.beyond for load in loads] == [limited]
        assert loads[0].value == pytest.approx(100 * share) and loads[0].limit == 80
    assert held.host(data, None) == []


def test_ceiling_of_a_load_is_of_its_shape_and_without_its_pauses():
    keys = {"pattern": "random", "read": 0, "block": ((4096, 100),), "qd": 1, "threads": 1, "engine": "auto"}
    shape = ceiling.shapes("load", keys)[0]
    events = [{"kind": "ceiling", "rows": [ceiling.Ceiling(shape, 1000.0, 4096e3).as_json()]}, {"kind": "note"}]
    row = SimpleNamespace(act=SimpleNamespace(do="load", keys=keys))
    assert held.ceiling_iops(events, row) == 1000
    row.act.keys = keys | {"on": 1.0, "off": 3.0, "cycles": 2}
    assert held.ceiling_iops(events, row) == pytest.approx(1000 * (4 + 2) / (4 + 8))  # fio's first burst is longer
    row.act.keys = keys | {"qd": 2}
    assert held.ceiling_iops(events, row) is None and held.ceiling_iops([], row) is None
