"""`ssdrig wear` on several documents: a history of one drive, in files or as `ssdrig watch` records it, and folders."""

import copy
import json
import os

import pytest
from pages import page_c0h
from wear_documents import DAY, NVME, no_table_of_the_user, read, run, watched  # noqa: F401  fixtures

from ssdrig.base.errors import JournalError, UsageError
from ssdrig.drive.smart import saved
from ssdrig.drive.smart.plausible import ENOUGH_BYTES
from ssdrig.drive.wear import screen as wear_screen
from ssdrig.drive.wear import standing


def test_two_files_of_one_drive_are_a_history(tmp_path, capsys):
    """Ten days, 20 000 000 units of 512 000 B: 1.024 TB a day. The files' order does not matter, another drive's file
    is not of it."""
    before, other = copy.deepcopy(NVME), copy.deepcopy(NVME)
    before["nvme_smart_health_information_log"]["data_units_written"] = 480_000_000
    before["local_time"]["time_t"] -= 10 * DAY
    other["serial_number"] = "ANOTHER"
    other["local_time"]["time_t"] -= 5 * DAY
    paths = []
    for name, document in (("now", NVME), ("before", before), ("other", other)):
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(json.dumps(document))
    code, out, _ = run(capsys, "--json", "--smartctl", *map(str, paths))
    now, earlier, third = (json.loads(line) for line in out.splitlines())
    assert (
        code == 0
        and now["projection"]["rate_bytes_per_day"] == pytest.approx(1.024e12)
        and now["projection"]["rate_calendar"] is True
    )
    assert now["wa"]["since"] == "2025-12-22" and earlier["wa"]["since"] is None and third["wa"]["since"] is None
    assert now["file"] == str(paths[0])


def test_that_nothing_counts_what_the_flash_takes_is_said_once(tmp_path, capsys):
    path = tmp_path / "now.json"
    path.write_text(json.dumps(NVME))
    _, out, _ = run(capsys, "--json", "--smartctl", str(path))
    unknown = [words for words in json.loads(out)["unknown"] if "NAND" in words or "amplification" in words]
    assert len(unknown) == 1 and unknown[0].startswith("NAND bytes written: ")


def test_write_amplification_of_a_history_is_that_of_the_workload(tmp_path, capsys):
    """Life: 512 of 256 TB, WA 2. The last day: 3 of 1 TB. A pair too close together falls back to its life and says
    so."""

    def document(host_units, nand, time_t):
        inner = copy.deepcopy(NVME)
        inner["nvme_smart_health_information_log"]["data_units_written"] = host_units
        inner["local_time"]["time_t"] = time_t
        return {
            "t_start_ns": 1,
            "t_end_ns": 2,
            "simulated": False,
            "smartctl": inner,
            "log_c0h": page_c0h(nand).hex(),
            "tools": [],
        }

    def wa_of(*documents):
        paths = [tmp_path / f"{i}.json" for i in range(len(documents))]
        for path, one in zip(paths, documents, strict=True):
            path.write_text(json.dumps(one))
        return json.loads(run(capsys, "--json", "--smartctl", *map(str, paths))[1].splitlines()[-1])

    now = document(500_000_000, 512 * 10**12, 1_767_225_600)
    got = wa_of(document(500_000_000 - 1_953_125, 509 * 10**12, 1_767_225_600 - DAY), now)
    assert (
        got["wa"]["value"] == pytest.approx(3)
        and got["wa"]["since"] == "2025-12-31"
        and got["projection"]["wa_of_life"] == 2
    )
    assert "WA 3.00 ± 0.01; 2 polls over 1.0 days" in " ".join(wear_screen.screen(got, 80, False).split())
    got = wa_of(document(499_999_999, 512 * 10**12 - 5, 1_767_225_600 - 3600), now)
    assert got["wa"]["value"] == pytest.approx(2) and got["wa"]["since"] is None
    assert any(
        words.startswith("write amplification lately: the host counter moved by only 1 of its units")
        for words in got["unknown"]
    )
    assert "WA 2" not in " ".join(wear_screen.screen(got, 80, False).split())  # that of its life is not this workload's


def test_a_counter_that_was_reset_does_not_hold_the_drives_life(tmp_path, capsys):
    """256 TB, then a reset; since then 1, 2 and 3 TB of the host, 2, 4 and 6 TB of the NAND. What follows from a whole
    life is not known; rate and WA are of the time since. A hundredth less is what a power loss costs a counter."""

    def read(*host_TB):
        paths = []
        for day, host in enumerate(host_TB):
            inner = copy.deepcopy(NVME)
            inner["nvme_smart_health_information_log"]["data_units_written"] = round(host * 1e12 / 512_000)
            inner["local_time"]["time_t"] += day * DAY
            document = {"t_start_ns": 1, "t_end_ns": 2, "simulated": False, "smartctl": inner, "tools": []}
            document["log_c0h"] = page_c0h(2 * round(host * 1e12)).hex()
            paths.append(tmp_path / f"{day}.json")
            paths[-1].write_text(json.dumps(document))
        out = run(capsys, "--json", "--smartctl", *map(str, paths), "--tbw", "600", "--start", "2024-05-01")[1]
        return json.loads(out.splitlines()[-1])

    got = read(256, 1, 2, 3)
    p = got["projection"]
    assert got["host_written_bytes"] == pytest.approx(3e12, rel=1e-6)
    assert p["rate_bytes_per_day"] == pytest.approx(1e12) and p["rate_source"].startswith("3 polls over 2.0 days")
    assert (got["wa"]["value"], got["wa"]["since"]) == (pytest.approx(2, rel=1e-5), "2026-01-02")
    assert p["tbw_used_percent"] is p["projected_tbw_TB"] is p["wa_of_life"] is None and p["tbw_left_bytes"] is None
    for name in ("host", "NAND"):
        assert any(w.startswith(f"{name} bytes written of its whole life: ") for w in got["unknown"])
    one = read(256, 1)
    assert one["projection"]["rate_bytes_per_day"] is None  # 1 TB in its power-on hours is no rate of it
    assert any(words.startswith("write amplification: the NAND counter went back by") for words in one["unknown"])
    for whole in (read(256, 254, 255), read(1, 2, 3), read(0.009, 0.005)):  # the last lost 4 GB
        assert whole["projection"]["tbw_used_percent"] is not None
        assert whole["projection"]["wa_of_life"] == pytest.approx(2, rel=1e-3)
        assert not any("whole life" in words for words in whole["unknown"])


def counted(*host_bytes: int | None, wrap_bytes: int | None = None) -> list[dict]:
    """Readings of a drive, one a day, that has no NAND counter."""
    same = {"host_written_source": "x", "host_written_unit_bytes": 1, "host_written_wrap_bytes": wrap_bytes}
    return [{"host_written_bytes": n, "utc_ns": day * DAY * 10**9, **same} for day, n in enumerate(host_bytes)]


@pytest.mark.parametrize(
    ("read", "first"),
    [
        (counted(1, 2, 3), 0),
        (counted(5, 1, 2), 1),
        (counted(5, 1, 4, 2, 3), 3),  # the last of two
        (counted(5, 6, 1), 1),  # of one reading nothing follows: it and the one before it say why
        (counted(5, 6, 1, wrap_bytes=7), 0),  # it has wrapped, which is no fall
        (counted(None, None), 0),
        (counted(5, None), 0),
        (counted(None, 5), 0),
    ],
)
def test_a_history_begins_behind_the_last_fall(read, first):
    assert standing.since_last_fall(read) is read[first]


@pytest.mark.parametrize(
    ("before", "after", "is_reset"),
    [
        (10**12, 9 * 10**11, False),  # a tenth
        (10**12, 9 * 10**11 - 1, True),
        (2 * ENOUGH_BYTES, ENOUGH_BYTES, False),
        (2 * ENOUGH_BYTES, ENOUGH_BYTES - 1, True),
    ],
)
def test_a_counter_that_lost_little_is_not_reset(before, after, is_reset):
    assert bool(standing.reset_reason(counted(before, after), "host")) is is_reset
    assert standing.reset_reason(counted(before, after), "nand") is None


@pytest.mark.parametrize(
    ("hours", "fell", "is_reset"),
    [
        (20_000, 5 * 10**12, True),  # 5 TB of 51: it wrote 61 GB in a day
        (20_000, 5 * 10**11, False),
        (1000, 5 * 10**12, False),  # a tenth, and a day of ten times its usual load
        (None, 5 * 10**12, False),
    ],
)
def test_fall_of_more_than_a_drive_forgets_is_a_reset(hours, fell, is_reset):
    before, after = counted(51 * 10**12, 51 * 10**12 - fell)
    assert bool(standing.reset_reason([before | {"power_on_hours": hours}, after], "host")) is is_reset


@pytest.mark.parametrize(("now", "life"), [(2 * 10**9, 4.0), (10**5, None)])
def test_counter_of_pages_that_was_reset_gives_no_amplification_of_a_life(now, life):
    pages = [{"host_program_pages": n, "nand_program_pages": 4 * n} for n in (10**9, now)]
    others = dict.fromkeys(("nand_written_bytes", "nand_written_tlc_bytes", "fdp_host_written_bytes"))
    before, after = (one | own | others for one, own in zip(counted(10**13, 2 * 10**13), pages, strict=True))
    seen = standing.amplification([before], after)
    assert seen.life.value == life and (("pages" in seen.resets) == (life is None))
    assert standing.amplification([], after).life.value == life  # 200 MB a page


def test_history_of_watch_gives_the_rate(tmp_path, read):
    watched(tmp_path / "watch", 20)
    _, got = read(NVME, "--history", str(tmp_path / "watch"))
    p = got["projection"]
    assert (
        p["rate_bytes_per_day"] == pytest.approx(2e12)
        and p["rate_source"] == "21 polls over 20 days"
        and p["rate_calendar"] is True
    )
    assert (
        p["first"]["days"] == pytest.approx(172)
        and p["first"]["date"] == "2026-06-22"
        and got["wa"]["since"] == "2025-12-12"
    )


def test_a_history_that_is_not_there(tmp_path, read):
    with pytest.raises(JournalError):
        read(NVME, "--history", str(tmp_path / "none"))


def test_a_folder_of_documents(tmp_path, capsys):
    """Every *.json below it; what is not a SMART document is named on stderr and left out."""
    (tmp_path / "a" / "deeper").mkdir(parents=True)
    for name in ("a/one.json", "a/deeper/two.json"):
        (tmp_path / name).write_text(json.dumps(NVME))
    (tmp_path / "a" / "run.json").write_text("{}")
    (tmp_path / "a" / "notes.txt").write_text("x")
    code, out, err = run(capsys, "--json", "--smartctl", str(tmp_path / "a"))
    assert code == 0 and [json.loads(line)["percentage_used"] for line in out.splitlines()] == [23, 23]
    assert err.count("left out") == 1 and "run.json" in err
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="a folder with none"):
        run(capsys, "--smartctl", str(tmp_path / "empty"))


def test_pipes_and_files_without_an_end_are_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(saved, "LARGEST_BYTES", 1 << 20)
    (tmp_path / "one.json").write_text(json.dumps(NVME))
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    code, out, err = run(capsys, "--json", "--smartctl", str(tmp_path))
    assert code == 0 and len(out.splitlines()) == 1 and err.count("left out: no file") == 2
    with pytest.raises(UsageError, match="more than 1 MiB: /dev/zero"):
        run(capsys, "--smartctl", "/dev/zero")


@pytest.mark.parametrize("seconds_ago, is_history", [(3600, True), (3599, False), (1, False)])
def test_history_of_less_than_an_hour_is_no_rate(tmp_path, capsys, seconds_ago, is_history):
    paths = [tmp_path / name for name in ("before.json", "now.json")]
    for path, document in zip(paths, (NVME, _later(0, seconds_ago / DAY)), strict=True):
        path.write_text(json.dumps(document))
    _, out, _ = run(capsys, "--json", "--smartctl", *map(str, paths))
    assert ("polls over" in json.loads(out.splitlines()[1])["projection"]["rate_source"]) == is_history


def test_reading_of_a_host_whose_clock_was_not_set_is_no_history(tmp_path, capsys):
    paths = [tmp_path / name for name in ("before.json", "now.json")]
    early = _later(-10, -1) | {"local_time": {"time_t": 86_400}}
    for path, document in zip(paths, (early, NVME), strict=True):
        path.write_text(json.dumps(document))
    _, out, _ = run(capsys, "--json", "--smartctl", *map(str, paths))
    assert "polls over" not in json.loads(out.splitlines()[1])["projection"]["rate_source"]
    assert saved.utc_ns({"utc_ns": 86_400 * 10**9}) is None


def _later(hours: int, days: float, **more) -> dict:
    document = copy.deepcopy(NVME)
    document["local_time"]["time_t"] += round(days * DAY)
    document["nvme_smart_health_information_log"]["power_on_hours"] += hours
    return document | more


@pytest.mark.parametrize(
    "document, is_history",
    [
        (_later(240, 10), True),
        (_later(246, 10), True),  # whole hours at both ends, and 2 %
        (_later(300, 10), False),
        (_later(-20, 10), True),  # what it forgets when it loses its power
        (_later(-30, 10), False),
        (_later(240, 10, nvme_total_capacity=999 * 10**12), False),
    ],
)
def test_readings_that_contradict_the_clock_are_no_history(tmp_path, capsys, document, is_history):
    document["nvme_smart_health_information_log"]["data_units_written"] += 20_000_000
    paths = [tmp_path / name for name in ("before.json", "now.json")]
    for path, one in zip(paths, (NVME, document), strict=True):
        path.write_text(json.dumps(one))
    _, out, _ = run(capsys, "--json", "--smartctl", *map(str, paths))
    now = json.loads(out.splitlines()[1])
    assert ("polls over" in now["projection"]["rate_source"]) == is_history
    assert any("not a history of this drive" in words for words in now["unknown"]) == (not is_history)


def test_clock_that_was_contradicted_once_costs_only_what_was_before():
    reading = {"power_on_hours": 100, "utc_ns": 0, "capacity_bytes": None}
    read = [
        reading | {"power_on_hours": hours, "utc_ns": day * DAY * 10**9} for day, hours in ((1, 0), (2, 900), (3, 920))
    ]
    consistent, why = standing.consistent(read, reading | {"power_on_hours": 940, "utc_ns": 4 * DAY * 10**9})
    assert consistent == read[1:] and why is not None
    assert standing.consistent([], reading) == ([], None)


@pytest.mark.parametrize("serial", ["XXXXXXXX", "REDACTED", "0123456789AB"])
def test_placeholder_serial_makes_no_history(tmp_path, capsys, serial):
    paths = [tmp_path / name for name in ("before.json", "now.json")]
    for path, one in zip(paths, (NVME, _later(240, 10)), strict=True):
        path.write_text(json.dumps(one | {"serial_number": serial}))
    _, out, err = run(capsys, "--json", "--smartctl", *map(str, paths))
    now = json.loads(out.splitlines()[1])
    assert "polls over" not in now["projection"]["rate_source"] and serial in err
    assert any(serial in words for words in now["messages"])
