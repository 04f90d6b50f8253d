"""What ordinary clients of a file system were promised, what is left of it, and whose fault a difference is: the
clients write for real, and losses are put into what they left."""

import contextlib
import functools
import itertools
import os
import shutil
import signal
import sqlite3
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import loop_device
import pytest

from ssdrig import cli
from ssdrig.base.errors import DriveError, Suspicion, ToolMissing, UsageError
from ssdrig.drive import slot
from ssdrig.plan.kinds import cut_filesystems
from ssdrig.powerloss import above, filesystems, mounts
from ssdrig.powerloss.campaign import Mounted
from ssdrig.powerloss.history import NEVER
from ssdrig.powerloss.promise import FLUSH, Promise
from ssdrig.run import cutting

RECORDS = 150  # more than two files of the log
MIB = 1 << 20


class Enough(OSError):
    """The drive is gone."""


@functools.cache  # each record costs an fsync
def once(client: str, records: int) -> tuple[dict, tempfile.TemporaryDirectory]:
    """(report, folder) of a client that wrote so many records and has begun one more."""
    top = tempfile.TemporaryDirectory(prefix="ssdrig-clients-")
    return put(client, Path(top.name) / "there", records), top


def written(client: str, folder: Path, records: int = RECORDS) -> dict:
    """The report of a client that wrote so many records to `folder`, and has begun one more."""
    report, top = once(client, records)
    shutil.copytree(Path(top.name) / "there", folder)
    return report


def put(client: str, folder: Path, records: int) -> dict:
    report, paused = mounts.Report(), itertools.count(1)

    def pause() -> None:
        if next(paused) == records:
            report.begins(records + 1)
            raise Enough

    with pytest.raises(Enough):
        mounts.write(client, str(folder), 7, report, pause)
    begun, acked_ns = report.read()
    report.close()
    assert (begun, len(acked_ns)) == (records + 1, records)
    return {"filesystem": "ext4", "client": client, "session": 7, "begun": begun, "acked_ns": acked_ns}


def judged(report: dict, folder: Path, until_ns: int = NEVER) -> dict:
    left = mounts.left_clients(report["client"], str(folder), report["session"], report["begun"])._asdict()
    return above.client(report, left, until_ns, report["acked_ns"][-1])


@pytest.mark.parametrize("name", mounts.NAMES)
def test_a_client_that_lost_nothing_is_not_accused(name, tmp_path):
    report = written(name, tmp_path / "there")
    ruling = judged(report, tmp_path / "there")
    assert not above.broken(ruling)
    assert (ruling["promised"], ruling["left"], ruling["lost"], ruling["corrupt"]) == (RECORDS, RECORDS, 0, 0)


@pytest.mark.parametrize("name", mounts.NAMES)
def test_only_what_was_acknowledged_before_power_returned_was_promised(name, tmp_path):
    report = written(name, tmp_path / "there")
    shutil.rmtree(tmp_path / "there")
    ruling = judged(report, tmp_path / "there", report["acked_ns"][99])
    assert (ruling["promised"], ruling["lost"]) == (99, 99) and above.broken(ruling)
    assert not above.broken(judged(report, tmp_path / "there", report["acked_ns"][0]))


def test_record_under_way_may_be_there_in_part_or_whole(tmp_path):
    report, line = written(mounts.APPENDS, tmp_path / "there"), mounts.framed(7, RECORDS + 1)
    last = sorted((tmp_path / "there").iterdir())[-1]
    with open(last, "ab") as file:
        file.write(line[: len(line) // 2])
        file.flush()
        assert not above.broken(judged(report, tmp_path / "there"))
        file.write(line[len(line) // 2 :])
    ruling = judged(report, tmp_path / "there")
    assert not above.broken(ruling) and ruling["left"] == RECORDS + 1


def place(record: int) -> tuple[int, int]:
    """(number of the file, offset in it) of a record of the log."""
    file, within = divmod(record - 1, mounts.RECORDS_OF_FILE)
    first = file * mounts.RECORDS_OF_FILE + 1
    return file, sum(len(mounts.framed(7, number)) for number in range(first, first + within))


@pytest.mark.parametrize("record", [1, 64, 65, 100, RECORDS])
def test_altered_byte_of_the_log_is_found_in_its_record(record, tmp_path):
    report = written(mounts.APPENDS, tmp_path / "there")
    file, offset = place(record)
    path = tmp_path / "there" / mounts.FILE.format(file)
    content = bytearray(path.read_bytes())
    content[offset + len(mounts.framed(7, record)) - 1] ^= 1
    path.write_bytes(content)
    ruling = judged(report, tmp_path / "there")
    assert (ruling["lost"], ruling["corrupt"], ruling["left"]) == (0, 1, RECORDS - 1) and above.broken(ruling)


def test_lost_end_lost_file_and_zeros_of_the_log_are_found(tmp_path):
    report = written(mounts.APPENDS, tmp_path / "there")
    _, at = place(RECORDS - 4)
    last = sorted((tmp_path / "there").iterdir())[-1]
    os.truncate(last, at)
    ruling = judged(report, tmp_path / "there")
    assert (ruling["lost"], ruling["corrupt"], ruling["first_lost"]) == (5, 0, RECORDS - 4)
    assert ruling["oldest_lost_ms"] == round((report["acked_ns"][-1] - report["acked_ns"][RECORDS - 5]) / 1e6, 3)
    last.unlink()
    assert judged(report, tmp_path / "there")["lost"] == RECORDS - 128
    second = tmp_path / "there" / mounts.FILE.format(1)
    second.write_bytes(bytes(second.stat().st_size))
    ruling = judged(report, tmp_path / "there")
    assert (ruling["corrupt"], ruling["left"]) == (64, 64)


def test_what_was_never_begun_is_found(tmp_path):
    report = written(mounts.APPENDS, tmp_path / "there")
    first = tmp_path / "there" / mounts.FILE.format(0)
    first.write_bytes(first.read_bytes() + b"more")
    (tmp_path / "there" / "stranger").write_text("")
    assert judged(report, tmp_path / "there")["extra"] == 4 + 1


@pytest.mark.parametrize("name", [mounts.WAL, mounts.ROLLBACK])
def test_old_database_is_found_by_the_rows_that_it_lacks(name, tmp_path):
    early = written(name, tmp_path / "early", 90)
    report = written(name, tmp_path / "there")
    assert early["begun"] < report["begun"]
    ruling = judged(report, tmp_path / "early")
    assert (ruling["lost"], ruling["corrupt"], ruling["first_lost"]) == (RECORDS - 90, 0, 91)


@pytest.mark.parametrize("name", [mounts.WAL, mounts.ROLLBACK])
@pytest.mark.parametrize("damage", ["row", "counter", "more", "page", "gone", "empty"])
def test_damaged_database_is_found(name, damage, tmp_path):
    report = written(name, tmp_path / "there")
    path = tmp_path / "there" / mounts.DATABASE
    done = {
        "row": "UPDATE entries SET body = x'00' WHERE record = 17",
        "counter": "UPDATE counter SET records = 12",
        "more": f"INSERT INTO entries VALUES ({RECORDS + 2}, x'00')",
    }
    database = sqlite3.connect(path, isolation_level=None)
    database.execute(done.get(damage, "PRAGMA user_version")).fetchall()
    database.close()  # the last connection moves all of a WAL into the database
    if damage == "page":
        content = bytearray(path.read_bytes())
        content[2 * 4096 : 3 * 4096] = bytes(4096)
        path.write_bytes(content)
    if damage in ("gone", "empty"):
        for file in (tmp_path / "there").iterdir():
            file.unlink()
        path.touch() if damage == "empty" else None
    ruling = judged(report, tmp_path / "there")
    assert above.broken(ruling)
    if damage == "row":
        assert (ruling["lost"], ruling["corrupt"]) == (0, 1)
    if damage == "more":
        assert ruling["extra"] == 1
    if damage in ("gone", "empty"):
        assert ruling["lost"] == RECORDS and ruling["why"]


def test_hot_journal_is_rolled_back_and_is_no_damage(tmp_path):
    report = written(mounts.ROLLBACK, tmp_path / "there")
    path = tmp_path / "there" / mounts.DATABASE
    if (pid := os.fork()) == 0:  # a client that ends within a transaction
        database = sqlite3.connect(path, isolation_level=None)
        database.execute("PRAGMA cache_size = 1")  # so that changed pages are written before the commit
        database.execute("BEGIN IMMEDIATE")
        database.execute(f"INSERT INTO entries VALUES ({RECORDS + 1}, zeroblob(300000))")
        os._exit(0)
    os.waitpid(pid, 0)
    assert any(file.name.endswith("-journal") for file in (tmp_path / "there").iterdir())
    ruling = judged(report, tmp_path / "there")
    assert not above.broken(ruling) and ruling["left"] == RECORDS


# ---- the verdict


def report(acked: int, client: str = mounts.APPENDS) -> dict:
    times = [1000 * n for n in range(1, acked + 1)]
    return {"filesystem": "xfs", "client": client, "session": 3, "begun": acked + 1, "acked_ns": times}


def seen(whole: int, client: str = mounts.APPENDS, **changed) -> dict:
    left = mounts.Left([[1, whole]] if whole else [], [], 0, "")._asdict()
    one = {"filesystem": "xfs", "mounted": True, "why": "", "options": "rw,nobarrier", "check": ""}
    client_of = {"filesystem": "xfs", "client": client, "session": 3, **left}
    return {"clients": [client_of], "filesystems": [one | changed], "written_bytes": 0}


def verdict(reports, seen, down_ns=150_000, why_not="", block_failed=False) -> dict:
    return above.judge(3, reports, seen, 200_000, 100_000, down_ns, why_not, block_failed)


def test_fault_is_the_drives_only_where_the_block_test_proves_it():
    assert verdict([report(50)], seen(50))["fault"] is None
    assert verdict([report(50)], seen(49))["fault"] == above.FILESYSTEM
    assert verdict([report(50)], seen(49), block_failed=True)["fault"] == above.DRIVE
    assert verdict([report(50)], seen(50), block_failed=True)["fault"] is None


def test_unmountable_and_inconsistent_file_systems_fail():
    gone = {**seen(0, mounted=False, why="Structure needs cleaning"), "clients": []}
    ruling = verdict([report(50)], gone)
    assert ruling["failed"] and ruling["clients"][0]["lost"] == 50
    assert verdict([report(50)], seen(50, check="exit code 4: free blocks"))["failed"]
    rows = above.totals([ruling, verdict([report(50)], seen(50))])
    assert [(row["client"], row["sessions"], row["failing"], row["by_drive"]) for row in rows] == [
        ("", 2, [3], 0),
        (mounts.APPENDS, 2, [3], 0),
    ]
    assert "nobarrier" in above.words(rows[1])


@pytest.mark.parametrize("down_ns", [None, 200_000, 300_000])
def test_file_systems_that_were_up_when_power_returned_get_no_verdict(down_ns):
    ruling = verdict([report(50)], seen(0), down_ns)
    assert (ruling["judged"], ruling["failed"], ruling["fault"]) == (False, False, None)
    assert above.totals([ruling]) == []


def test_a_session_without_a_cut_is_judged_without_one():
    ruling = above.judge(3, [report(50)], seen(49), NEVER, None, 10, "", False)
    assert ruling["failed"] and ruling["clients"][0]["oldest_lost_ms"] is None
    assert not verdict([report(50)], seen(0), why_not="the drive still answered")["judged"]


def test_campaign_that_goes_on_knows_what_its_earlier_parts_found():
    bad, good = verdict([report(50)], seen(49)), verdict([report(50)], seen(50))
    events = [{**bad, "kind": above.JUDGED}, {**good, "kind": above.JUDGED}, bad, {"kind": above.JUDGED}]
    assert above.damaged(events) == [3]


def test_campaign_without_a_proof_ends_with_a_suspicion():
    assert above.outcome([]) is None
    assert isinstance(above.outcome([3, 5]), Suspicion)


@pytest.mark.parametrize(
    "damage",
    [
        {"clients": None},
        {"clients": [7]},
        {"filesystems": [{}]},
        {"cut": "3"},
        {"judged": 1},
        {"clients": [{**above.client(report(5), None, 9), "lost": -1}]},
        {"clients": [{**above.client(report(5), None, 9), "filesystem": {}}]},
    ],
)
def test_damaged_verdict_in_a_run_folder_is_left_out(damage):
    whole = verdict([report(50)], seen(50))
    assert len(above.totals([whole, {**whole, **damage}, {}])) == 2
    assert all(row["sessions"] == 1 for row in above.totals([whole, {**whole, **damage}]))


class Driver:
    """In the place of mounts.py: what it was asked, and what it answers."""

    def __init__(self):
        self.made, self.started, self.answers = [], [], []

    def make(self, block_bytes, places):
        self.made.append([place["kind"] for place in places])

    def start(self, session, at_rest):
        self.started.append((session, at_rest))

    def look(self, asked):
        self.asked = asked
        return self.answers.pop(0)


def test_damaged_file_system_is_made_anew_and_a_whole_one_is_looked_at_again():
    driver = Driver()
    mounted = Mounted(driver, [["xfs", ""]], 512, 4096 * MIB)
    times = {"until_ns": 200_000, "fired_ns": None, "why_not": "", "block_failed": False}
    for whole in (50, 49):
        mounted.start(3)
        driver.answers.append(seen(whole))
        ruling, _ = mounted.judge(3, {"clients": [report(50)], "down_ns": 1}, **times)
        assert ruling["failed"] == (whole == 49)
    # the second time, what was whole after the first was looked at, too: of session 3 again here, so 49 are too few
    assert [client["client"] for client in ruling["clients"]] == [mounts.APPENDS, f"{mounts.APPENDS}, at rest"]
    mounted.start(4)
    assert driver.made == [["xfs"], ["xfs"]] and driver.started == [(3, 0), (3, 3), (4, 0)]


def test_session_without_a_write_looks_at_what_is_at_rest_and_starts_no_client():
    driver = Driver()
    mounted = Mounted(driver, [["xfs", ""]], 512, 4096 * MIB)
    times = {"until_ns": 200_000, "fired_ns": None, "why_not": "", "block_failed": False}
    assert mounted.start(3) is None
    driver.answers.append(seen(50))
    mounted.judge(3, {"clients": [report(50)], "down_ns": 1}, **times)
    for session, whole in ((4, 50), (5, 50), (6, 49)):
        down = mounted.start(session, writes=False)
        driver.answers.append(seen(whole))
        ruling, _ = mounted.judge(session, down, **times)
        assert [client["client"] for client in ruling["clients"]] == [f"{mounts.APPENDS}, at rest"]
        assert ruling["judged"] and ruling["failed"] == (whole == 49)
    assert driver.started == [(3, 0)]


# ---- what is asked for


def test_names_and_options_are_read():
    assert cut_filesystems.parse("none") == []
    assert cut_filesystems.parse("ext4 xfs:nobarrier,noatime") == [["ext4", ""], ["xfs", "nobarrier,noatime"]]
    for bad in ("", "ext3", "ext4 ext4", "ext4:", "ext4:a b", "ext4:$(x)", "none ext4", "ext4:" + "a" * 101):
        with pytest.raises(ValueError):
            cut_filesystems.parse(bad)


@pytest.mark.parametrize(("kind", "refused"), [(slot.FABRIC, True), (slot.FIXED, True), (slot.SCSI, False)])
def test_drive_that_the_kernel_would_keep_over_a_cut_is_refused(kind, refused):
    place = slot.Place(kind, drops=() if refused else (("delete", "1"),))
    filesystems.refuse_place([], place)
    with pytest.raises(UsageError) if refused else contextlib.nullcontext():
        filesystems.refuse_place(cut_filesystems.parse("ext4"), place)


@pytest.mark.parametrize(
    "words",
    [
        ("--virtual", "sata-tlc", "--filesystems", "ext4"),
        ("--virtual", "sata-tlc", "--set", "filesystems=ext4"),
        ("--target", "nbd://h/e", "--power-off", "a", "--power-on", "b", "--filesystems", "ext4"),
    ],
)
def test_drive_without_a_block_device_is_refused_before_anything_starts(words, capsys):
    assert cli.main(["run", "powerloss", *words, "--dry-run"]) == UsageError.exit_code
    assert "block device" in capsys.readouterr().err


def test_dry_run_says_what_is_made_and_where(monkeypatch):
    promise = Promise(FLUSH, 512, 1, 0, 0, None, True, "")
    monkeypatch.setattr(cutting.slot, "refuse", lambda drive: slot.Place(slot.SCSI, drops=(("delete", "1"),)))
    monkeypatch.setattr(cutting, "target", SimpleNamespace(of_drive=lambda *_: promise, cannot=lambda *_: ()))
    monkeypatch.setattr(filesystems, "which", lambda program: program)
    monkeypatch.setattr(filesystems, "known", lambda kind, root: True)
    monkeypatch.setattr(filesystems.os.path, "exists", lambda path: True)
    drive = SimpleNamespace(capacity_bytes=1 << 40)
    for asked, lines in (("none", 0), ("ext4 xfs:noatime", 1)):
        sentences: list[str] = []
        act = SimpleNamespace(do="cuts", keys={"filesystems": cut_filesystems.parse(asked)})
        cutting.describe(drive, False, None, [act], sentences.append)
        about = [line for line in sentences if line.startswith("file systems")]
        assert len(about) == lines and all("ext4, xfs (noatime), 512 MiB" in line for line in about)


def test_places_lie_apart_at_the_end_of_the_drive():
    capacity = 4096 * MIB + 4096
    places = filesystems.places(cut_filesystems.parse("ext4 xfs btrfs"), capacity)
    ends = [place["offset"] + place["size"] for place in places]
    assert places[0]["offset"] >= capacity - filesystems.reserved_bytes(places) - filesystems.SIZE_BYTES
    assert [place["offset"] for place in places[1:]] == ends[:-1] and ends[-1] <= capacity
    with pytest.raises(UsageError):
        filesystems.refuse(places, 2 * filesystems.reserved_bytes(places) - 1)


def test_machine_without_a_program_or_a_kernel_without_the_file_system_is_refused(tmp_path, monkeypatch):
    asked = cut_filesystems.parse("ext4")
    monkeypatch.setattr(filesystems, "which", lambda program: None)
    with pytest.raises(ToolMissing):
        filesystems.refuse(asked, 1 << 40)
    monkeypatch.setattr(filesystems, "which", lambda program: program)
    with pytest.raises(ToolMissing):
        filesystems.refuse(asked, 1 << 40, tmp_path)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/filesystems").write_text("nodev\ttmpfs\n\text3\n")
    assert not filesystems.known("ext4", tmp_path)
    (tmp_path / "proc/filesystems").write_text("nodev\ttmpfs\n\text4\n")
    with pytest.raises(ToolMissing):  # no loop devices
        filesystems.refuse(asked, 1 << 40, tmp_path)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/loop-control").touch()
    filesystems.refuse(asked, 1 << 40, tmp_path)
    modules = tmp_path / "lib/modules" / os.uname().release
    modules.mkdir(parents=True)
    (modules / "modules.dep").write_text("kernel/fs/xfs/xfs.ko.zst: kernel/lib/libcrc32c.ko.zst\n")
    assert filesystems.known("xfs", tmp_path) and not filesystems.known("btrfs", tmp_path)


# ---- a kernel: a file system on a loop device over a file

CAPACITY = 2 * filesystems.SIZE_BYTES


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """(file systems of this kernel on ext4, the file that is their drive)."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # a process that is killed leaves an empty folder there
    medium = tmp_path / "drive"
    with open(medium, "wb") as file:
        file.truncate(CAPACITY)
    asked = cut_filesystems.parse("ext4")
    with loop_device.loop_device(medium) as node:
        try:
            filesystems_ = filesystems.Filesystems(asked, CAPACITY, lambda: node)
        except ToolMissing as error:
            pytest.skip(str(error))
        try:
            try:
                filesystems_.make(512, filesystems.places(asked, CAPACITY))
            except DriveError as error:
                if "run it as root" in str(error):  # a container without the right to mount
                    pytest.skip(str(error))
                raise
            yield filesystems_, medium
        finally:
            filesystems_.close()


def part(medium: Path) -> bytes:
    """What the drive holds of the file system."""
    with open(medium, "rb") as file:
        file.seek(CAPACITY - filesystems.SIZE_BYTES)
        return file.read()


def put_back(before: bytes, medium: Path) -> None:
    now = part(medium)
    with open(medium, "r+b") as file:
        for at in range(0, len(now), MIB):
            if now[at : at + MIB] != before[at : at + MIB]:
                file.seek(CAPACITY - filesystems.SIZE_BYTES + at)
                file.write(before[at : at + MIB])


def test_file_system_of_this_kernel_keeps_what_it_promised_and_a_drive_that_forgets_a_session_does_not(driver):
    mounted_, medium = driver
    mounted = Mounted(mounted_, [["ext4", ""]], 512, CAPACITY)
    times = {"until_ns": NEVER, "fired_ns": None, "why_not": "", "block_failed": False}
    before = b""
    for session, forgets in ((1, False), (2, True)):
        mounted.start(session)
        if session == 1:
            time.sleep(0.2)  # they write
        down = mounted_.down()
        assert down["down_ns"] is not None and all(client["acked_ns"] for client in down["clients"])
        if forgets:
            put_back(before, medium)
        judged, written_bytes = mounted.judge(session, down, **times)
        assert judged["failed"] is forgets and written_bytes > 0, judged
        before = part(medium)
    rows = {client["client"]: client for client in judged["clients"]}
    assert all(rows[name]["lost"] == rows[name]["promised"] > 0 for name in mounts.NAMES), rows
    rests = [f"{name}, at rest" for name in mounts.NAMES]
    assert all(rows[name]["promised"] > 0 and not above.broken(rows[name]) for name in rests), rows
    assert [above.sound(filesystem) for filesystem in judged["filesystems"]] == [True]
    mounted.start(3)  # made anew
    assert mounted_.down()["down_ns"]


def over(node: str) -> int:
    """How many loop devices lie over this one."""
    mounted_count = 0
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):  # it went meanwhile
            mounted_count += path.read_text().strip() == node
    return mounted_count


def test_nothing_is_left_in_the_kernel_where_the_process_that_mounts_is_killed(driver):
    mounted_, _ = driver
    mounted_.start(1, 0)
    node = mounted_._path()
    assert over(node) == 1
    os.kill(mounted_._process.pid, signal.SIGKILL)
    with pytest.raises(DriveError):
        mounted_.down()
    deadline = time.monotonic() + 600
    while over(node) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert over(node) == 0
