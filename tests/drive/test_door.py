"""The held descriptor is the only way into a drive: whoever gets its name, nothing else is read or written."""

import ast
import contextlib
import dataclasses
import errno
import os
import stat
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from drives import a_drive
from guarding import SERIAL, by_hand, tree  # noqa: F401  fixture
from loop_device import loop_device

from ssdrig import cli
from ssdrig.base.errors import DriveError, ExchangedDrive, LoadError, SsdrigError, UnsafeTarget
from ssdrig.drive import ata_security, block, door, guard, nvme_erase
from ssdrig.drive.inventory import find
from ssdrig.load import fio
from ssdrig.plan.kinds import fill, load, wear
from ssdrig.powerloss import target
from ssdrig.run import bench

MIB = 1 << 20
WRITTEN = bytes(range(256)) * 16
PHOTOS = b"FAMILY PHOTOS..." * 256
SIZE = 64 * MIB
DETAILED = {"compressible": 0, "engine": "libaio", "threads": 1, "qd": 4}


def fill_of(mib: int = 8) -> SimpleNamespace:
    """An act of a fill step."""
    keys = {**DETAILED, "block": 128 << 10}
    return SimpleNamespace(keys=keys, path="fill", range_bytes=mib * MIB, amount_bytes=mib * MIB)


def photos(path) -> None:
    """Fill a disk of a tree, or a file below a loop device, with what must stay."""
    with open(path, "r+b") as disk:
        for _ in range(0, SIZE, len(PHOTOS)):
            disk.write(PHOTOS)


def is_intact(path) -> bool:
    return Path(path).read_bytes() == PHOTOS * (SIZE // len(PHOTOS))


@pytest.fixture
def bench_of_sda(tree, monkeypatch):
    """The bench of sda in the tree."""
    hold = guard.hold
    monkeypatch.setattr(
        bench.guard, "hold", lambda drive, serial, reads, resumed=None: hold(drive, serial, tree.root, reads)
    )
    drive = find(SERIAL, tree.root)
    with bench.real(drive, None, SERIAL, "discard", None, None) as made:
        yield made


def moved(tree) -> None:
    """While it was without power the drive became sdb, and a stranger's disk sda."""
    tree.remove("sda")
    tree.sata("sda", serial="STRANGER99", model="FAMILY PHOTOS", port=3, size_bytes=SIZE)
    photos(tree.root / "dev/sda")
    tree.sata("sdb", port=1, size_bytes=SIZE)


def cut(bench_of_sda, tree, change=moved) -> None:
    """As a step of cuts leaves the bench."""
    bench_of_sda.target.away()
    change(tree)
    bench_of_sda.target.back()


# ---- I/O after cuts


@pytest.mark.parametrize("step", ["fill", "load", "wear", "replay", "write_blocks", "flush", "writer"])
def test_step_after_cuts_writes_to_the_moved_drive_and_not_to_the_stranger(tree, bench_of_sda, tmp_path, step):
    cut(bench_of_sda, tree)
    bench_of_sda.check()
    if step == "fill":
        fio.run(fill.job(fill_of(), bench_of_sda.fio_target, 1), tmp_path / "fio")
    elif step == "load":
        keys = {**DETAILED, "pattern": "random", "read": 0, "block": ((4096, 100),), "sync": "none", "arrival": "even"}
        act = SimpleNamespace(keys=keys | {"amount": MIB}, path="load", range_bytes=8 * MIB, amount_bytes=MIB, label="")
        fio.run(load.job(act, bench_of_sda.fio_target, 1, 1, "SATA"), tmp_path / "fio")
    elif step == "wear":
        keys = {**DETAILED, "pattern": "random", "block": ((4096, 100),), "samples_bytes": MIB}
        act = SimpleNamespace(keys=keys, path="wear", range_bytes=8 * MIB, amount_bytes=MIB)
        fio.run(wear.job(act, bench_of_sda.fio_target, 1, size_bytes=MIB, number=1), tmp_path / "fio")
    elif step == "replay":
        from ssdrig.load import trace_targets

        with trace_targets.named(bench_of_sda.fio_target, 4096) as player:
            block.write(f"/proc/self/fd/{player.fd}", {0: WRITTEN})
    elif step == "write_blocks":
        bench_of_sda.write_blocks({0: WRITTEN})
    elif step == "flush":
        bench_of_sda.write_blocks({0: WRITTEN})
        bench_of_sda.flush()
    else:
        link = bench_of_sda.target.open()
        assert os.path.samefile(link.path, tree.root / "dev/sdb")
        link.close()
        bench_of_sda.write_blocks({0: b"x" * 4096})
    assert is_intact(tree.root / "dev/sda")
    assert any((tree.root / "dev/sdb").read_bytes())


@pytest.mark.parametrize(
    "what", ["fio_target", "trim", "flush", "write_blocks", "read_blocks", "open", "purge", "check"]
)
def test_let_go_drive_is_not_reached_by_the_name_that_a_stranger_has(tree, bench_of_sda, what):
    bench_of_sda.target.away()
    moved(tree)
    with pytest.raises(SsdrigError):
        {
            "fio_target": lambda: bench_of_sda.fio_target,
            "trim": lambda: bench_of_sda.trim(SIZE),
            "flush": bench_of_sda.flush,
            "write_blocks": lambda: bench_of_sda.write_blocks({0: bytes(4096)}),
            "read_blocks": lambda: bench_of_sda.read_blocks([0]),
            "open": bench_of_sda.target.open,
            "purge": lambda: bench_of_sda.purge(SimpleNamespace(say=print, show=print)),
            "check": bench_of_sda.check,
        }[what]()
    assert is_intact(tree.root / "dev/sda")


def test_nothing_is_asked_of_the_name_of_a_let_go_drive(tree, bench_of_sda, monkeypatch):
    """SMART, the kernel's counters and settings go by name, which a stranger has now."""
    asked = []
    monkeypatch.setattr(bench, "polled", lambda drive, like=None: asked.append(drive.name) or {})
    monkeypatch.setattr(bench.witness, "read", lambda name: asked.append(name) or {"stat": name and [1]})
    monkeypatch.setattr(bench.conditions, "read", lambda name, **_: asked.append(name) or {"found": {}})
    monkeypatch.setattr(bench.conditions, "change", lambda key, value, name, **_: asked.append(name))
    monkeypatch.setattr(bench.conditions, "put_back", lambda key, before, name, **_: asked.append(name))
    (
        bench_of_sda.poll(None),
        bench_of_sda.witness(0),
        bench_of_sda.conditions(),
        bench_of_sda.change("scheduler", "none"),
    )
    assert asked == ["sda"] * 4
    bench_of_sda.target.away()
    moved(tree)
    asked.clear()
    for act in (lambda: bench_of_sda.poll(None), lambda: bench_of_sda.change("scheduler", "none")):
        with pytest.raises(SsdrigError):
            act()
    assert bench_of_sda.witness(0)["stat"] is None
    bench_of_sda.conditions()
    with pytest.raises(SsdrigError):
        bench_of_sda.put_back("scheduler", ["none"])
    bench_of_sda.put_back("governor", ["performance"])  # of the host
    assert asked == [None, None, "sda"]
    bench_of_sda.target.back()
    bench_of_sda.poll(None), bench_of_sda.witness(0)
    assert asked[3:] == ["sdb", "sdb"]


def test_poll_during_which_the_drive_was_let_go_counts_for_nothing(tree, bench_of_sda, monkeypatch):
    monkeypatch.setattr(bench, "polled", lambda drive, like=None: bench_of_sda.target.away() or {"of": "whoever"})
    with pytest.raises(DriveError):
        bench_of_sda.poll(None)

    def gone_and_back(drive, like=None):
        bench_of_sda.target.away()
        bench_of_sda.target.back()
        return {"of": "whoever"}

    bench_of_sda.target.back()
    monkeypatch.setattr(bench, "polled", gone_and_back)
    with pytest.raises(DriveError):
        bench_of_sda.poll(None)


@pytest.mark.parametrize("what", ["Door", "Held"])
def test_lock_is_given_back_when_the_hold_cannot_be_made(tree, monkeypatch, what):
    """Such as where this process has no descriptor left."""

    def none(*_, **__):
        raise OSError(errno.EMFILE, "Too many open files")

    drive, before = find(SERIAL, tree.root), len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patched:
        patched.setattr(guard, "survey" if what == "Held" else "Held", none)
        with pytest.raises(OSError), guard.hold(drive, SERIAL, tree.root):
            pass
    assert guard.lock_holder(SERIAL, tree.root) is None and len(os.listdir("/proc/self/fd")) == before
    with guard.hold(drive, SERIAL, tree.root):
        pass


def test_names_swapped_with_another_drive_are_followed(tree, bench_of_sda, tmp_path):
    tree.sata("sdb", serial="STRANGER99", model="FAMILY PHOTOS", port=3, size_bytes=SIZE)

    def swap(tree):
        tree.remove("sda")
        tree.remove("sdb")
        moved_ = tree.sata("sda", serial="STRANGER99", model="FAMILY PHOTOS", port=3, size_bytes=SIZE)
        photos(tree.root / "dev" / moved_)
        tree.sata("sdb", port=1, size_bytes=SIZE)

    cut(bench_of_sda, tree, swap)
    fio.run(fill.job(fill_of(), bench_of_sda.fio_target, 1), tmp_path / "fio")
    assert is_intact(tree.root / "dev/sda") and any((tree.root / "dev/sdb").read_bytes())


def test_path_stays_the_same_when_the_drive_moved(tree, bench_of_sda):
    before = bench_of_sda.fio_target
    cut(bench_of_sda, tree)
    assert bench_of_sda.fio_target == before and os.path.samefile(before, tree.root / "dev/sdb")


# ---- the number


def test_number_of_a_let_go_drive_is_given_to_no_file(tree):
    with guard.hold(find(SERIAL, tree.root), SERIAL, tree.root) as held:
        path = held.path
        held.let_go()
        with contextlib.ExitStack() as files:
            for _ in range(64):
                files.enter_context(open("/dev/null"))
            with pytest.raises(OSError):
                os.open(path, os.O_RDWR)
        with pytest.raises(DriveError):
            held.path  # noqa: B018
        held.recheck()
        assert held.path == path
    with pytest.raises(DriveError):
        held.path  # noqa: B018
    with pytest.raises(OSError):
        os.stat(path)


def test_descriptors_are_closed_at_the_end(tree):
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with guard.hold(find(SERIAL, tree.root), SERIAL, tree.root) as held:
            held.let_go()
            held.recheck()
    assert set(os.listdir("/proc/self/fd")) == before


# ---- what is at the node


@pytest.mark.parametrize("kind", ["file", "pipe", "character device", "folder"])
def test_regular_file_or_other_stranger_at_the_node_is_refused(tmp_path, monkeypatch, kind):
    node = tmp_path / "disk"
    if kind == "file":
        node.write_bytes(bytes(SIZE))
    elif kind == "pipe":
        os.mkfifo(node)
    elif kind == "folder":
        node.mkdir()
    else:
        node.symlink_to("/dev/zero")
    drive = dataclasses.replace(by_hand("nvme9n9", 259, 99, SIZE), node=str(node))
    with pytest.raises(OSError, match="not a block device"):
        guard._open(drive, "/")
    monkeypatch.setattr(guard.inventory, "why_not_a_drive", lambda name, root="/": "")  # sysfs has such a drive
    assert "open" in {refusal.check for refusal in guard.refusals(drive, drive.serial)}


@pytest.fixture
def loops(tmp_path):
    """Two loop devices: (drive by hand, its file, the stranger's node, its file)."""
    files = [tmp_path / "ours", tmp_path / "stranger"]
    for file in files:
        file.touch()
        os.truncate(file, SIZE)
    photos(files[1])
    with loop_device(files[0]) as ours, loop_device(files[1]) as stranger:
        number = os.stat(ours).st_rdev
        yield by_hand(os.path.basename(ours), os.major(number), os.minor(number), SIZE), files[0], stranger, files[1]


@pytest.fixture
def opened(loops, tmp_path, monkeypatch):
    """The hold on a loop device of the kernel, whose name is then a stranger's: (held, our file, the stranger's)."""
    drive, ours, stranger, photos_ = loops
    node = tmp_path / "name"
    drive = dataclasses.replace(drive, node=str(node))
    try:
        os.mknod(node, stat.S_IFBLK | 0o600, os.makedev(drive.major, drive.minor))
        os.close(os.open(node, os.O_RDONLY))
    except OSError as error:
        pytest.skip(f"no device nodes can be made here: {error}")
    monkeypatch.setattr(guard.inventory, "why_not_a_drive", lambda name, root="/": "")
    monkeypatch.setattr(guard.inventory, "all_drives", lambda root="/": [drive])
    monkeypatch.setattr(guard, "FOLDER", str(tmp_path / "locks"))
    with guard.hold(drive, "HAND") as held:
        node.unlink()
        os.mknod(node, stat.S_IFBLK | 0o600, os.stat(stranger).st_rdev)
        yield held, ours, photos_


def test_fio_writes_to_the_held_device_though_a_stranger_has_its_name(opened, tmp_path):
    held, ours, stranger = opened
    result = fio.run(fill.job(fill_of(), held.path, 1), tmp_path / "fio")
    block.sync(held.path)
    assert result.bytes == 8 * MIB and is_intact(stranger) and any(ours.read_bytes())
    text = (tmp_path / "fio/job.fio").read_text()
    assert f"filename={held.path}\nallow_file_create=0\n" in text


@pytest.mark.parametrize("way", [block.discard, block.zero, block.flush, block.size])
def test_block_commands_reach_the_held_device_though_a_stranger_has_its_name(opened, way):
    held, ours, stranger = opened
    ours.write_bytes(b"o" * SIZE)
    assert way(held.path) in (None, SIZE)
    assert is_intact(stranger)
    if way in (block.discard, block.zero):
        assert not any(ours.read_bytes())


def test_programs_open_the_held_device_though_a_stranger_has_its_name(opened):
    held, ours, stranger = opened
    done = subprocess.run(["dd", "if=/dev/urandom", f"of={held.path}", "bs=64k", "count=4"], capture_output=True)
    assert done.returncode == 0 and is_intact(stranger)
    block.sync(held.path)
    assert any(ours.read_bytes())
    link = target.of_held(held, ("true", "true"), True).open()
    assert link.size_bytes == SIZE and link.can_trim
    link.close()


def test_path_is_refused_when_number_or_medium_changed(opened, monkeypatch):
    held, _, _ = opened
    assert held.path.startswith(f"/proc/{os.getpid()}/fd/")
    held.drive = dataclasses.replace(held.drive, minor=held.drive.minor + 1)
    with pytest.raises(UnsafeTarget, match="not"):
        held.path  # noqa: B018
    held.drive = dataclasses.replace(held.drive, minor=held.drive.minor - 1)
    monkeypatch.setattr(door, "sequence", lambda fd: "1000000")
    with pytest.raises(UnsafeTarget, match="diskseq 1000000"):
        held.path  # noqa: B018
    monkeypatch.undo()
    monkeypatch.setattr(door, "alive", lambda fd: False)
    with pytest.raises(DriveError, match="gone"):
        held.path  # noqa: B018


def test_node_of_another_appearance_is_not_taken(loops, monkeypatch):
    drive, *_ = loops
    monkeypatch.setattr(guard, "_sequence", lambda drive, root: "1")
    with pytest.raises(OSError, match="another disk's"):
        guard._open(drive, "/")


def test_fio_makes_no_file_of_a_name_that_is_gone(tmp_path):
    with pytest.raises(LoadError):
        fio.run(fill.job(fill_of(), str(tmp_path / "nvme7n1"), 1), tmp_path / "fio")
    assert not (tmp_path / "nvme7n1").exists()


# ---- the NVMe controller


def test_controller_of_the_held_drive_is_opened_by_descriptor(tree):
    tree.write("dev/nvme0", b"")
    with guard.hold(find("S6Z1NX0W100001", tree.root), "S6Z1NX0W100001", tree.root) as held, held.controller() as path:
        assert os.path.samefile(path, tree.root / "dev/nvme0")
        (tree.root / "dev/nvme0").unlink()
        tree.write("dev/nvme0", b"stranger")
        assert not os.path.samefile(path, tree.root / "dev/nvme0")
    with pytest.raises(OSError):
        os.stat(path)


def test_controller_of_a_stranger_is_refused(tree):
    tree.nvme(1, serial="STRANGER99", size_bytes=SIZE)
    for name in ("nvme0", "nvme1"):
        tree.write(f"dev/{name}", b"")
    with guard.hold(find("S6Z1NX0W100001", tree.root), "S6Z1NX0W100001", tree.root) as held:
        held.drive = dataclasses.replace(held.drive, controller="/dev/nvme1")
        with pytest.raises(UnsafeTarget, match="another drive's"), held.controller():
            pass
        held.let_go()
        with pytest.raises(DriveError), held.controller():
            pass


def test_controller_of_a_drive_with_several_paths_is_its_own(tree):
    tree.nvme_multipath(4, size_bytes=SIZE, states=("live", "live"))
    for name in ("nvme4", "nvme5"):
        tree.write(f"dev/{name}", b"")
    drive = find("FABRIC01", tree.root)
    with guard.hold(drive, "FABRIC01", tree.root) as held, held.controller() as path:
        assert os.path.samefile(path, f"{tree.root}{drive.controller}")


@pytest.mark.parametrize("what", ["format", "sanitize"])
def test_erasers_are_given_the_descriptor_and_no_name(monkeypatch, what):
    ran = []

    def run(argv, *_, **__):
        ran.append(argv)
        page = bytearray(4096)
        page[0:8] = (1000).to_bytes(8, "little")
        return SimpleNamespace(
            exit_code=0, stdout=bytes(page[:512] if "get-log" in argv else page), argv=argv, stderr="", why=None
        )

    monkeypatch.setattr(nvme_erase.program, "run", run)
    monkeypatch.setattr(nvme_erase.erasing, "run", run)
    monkeypatch.setattr(nvme_erase.nvme_cli, "_bytes", lambda call, *_, **__: (call.stdout, {"why": None}))
    if what == "format":
        nvme_erase.format(a_drive(), "/proc/1/fd/9", "format", lambda spent_s: None)
    else:
        nvme_erase.sanitize(a_drive(), "/proc/1/fd/9", "sanitize-block", lambda share, left_s: None)
    assert len(ran) > 1 and all("/proc/1/fd/9" in argv and "/dev/nvme9" not in argv for argv in ran)


def test_ata_erase_asks_for_the_path_before_each_command(monkeypatch):
    """A drive that goes between two commands gets no further one."""
    ran, words = [], [0] * 256
    words[82] = words[128] = 1

    class Going:
        drive = a_drive(interface="SATA", controller=None, nsid=None)
        left = 2

        @property
        def path(self):
            if not self.left:
                raise DriveError("it", "gone", "")
            self.left -= 1
            return "/proc/1/fd/9"

    def run(argv, *_, **__):
        ran.append(argv)
        words_text = " ".join(f"{word:04x}" for word in words)
        return SimpleNamespace(exit_code=0, stdout=words_text.encode(), argv=argv, stderr="", why=None)

    monkeypatch.setattr(ata_security.program, "run", run)
    monkeypatch.setattr(ata_security.erasing, "run", run)
    with pytest.raises(DriveError, match="gone"):
        ata_security.erase(Going(), "ata-secure-erase", lambda spent_s: None)
    assert [argv[-1] for argv in ran] == ["/proc/1/fd/9"] * 2
    assert not any("--security-erase" in argv for argv in ran)


# ---- who has come since


def test_step_is_refused_when_a_stranger_mounted_the_drive_since(tree, bench_of_sda):
    bench_of_sda.check()
    tree.mount("sda", "/media/stranger")
    with pytest.raises(UnsafeTarget, match="mounted: "):
        bench_of_sda.check()


def test_step_is_refused_when_a_stranger_has_the_drive_open_for_writing(tree, bench_of_sda, monkeypatch):
    monkeypatch.setattr(guard.time, "sleep", lambda s: None)
    bench_of_sda.check()
    tree.process(4242, "qemu-system-x86", "/dev/sda")
    with pytest.raises(UnsafeTarget, match="writer: .*process 4242"):
        bench_of_sda.check()


def test_writer_that_is_gone_in_a_moment_ends_no_run(tree, bench_of_sda, monkeypatch):
    import shutil

    tree.process(4242, "smartd", "/dev/sda")
    monkeypatch.setattr(guard.time, "sleep", lambda s: shutil.rmtree(tree.root / "proc/4242"))
    assert bench_of_sda.check().serial == bench_of_sda.drive["serial"] and not (tree.root / "proc/4242").exists()


def test_volume_made_on_the_drive_since_is_refused(tree, bench_of_sda):
    bench_of_sda.check()
    tree.volume("dm-0", "sda", label="stranger")
    with pytest.raises(UnsafeTarget, match="holder: "):
        bench_of_sda.check()


def test_content_of_the_runs_own_is_no_reason_against_its_next_step(tree, bench_of_sda):
    with open(tree.root / "dev/sda", "r+b") as disk:
        disk.seek(1080)
        disk.write(b"\x53\xef")
    assert bench_of_sda.check().serial == bench_of_sda.drive["serial"]


# ---- away within a step


def exchanged(tree) -> None:
    """Another disk of the same make and serial is in the slot."""
    tree.remove("sda")
    tree.sata(size_bytes=SIZE)
    photos(tree.root / "dev/sda")


OFFSETS = [0, 8 * MIB, 40 * MIB]


def test_disk_exchanged_within_a_step_is_no_mark_and_is_not_written(tree, bench_of_sda):
    """A step that went on would write to it, or leave its content as marks."""
    bench_of_sda.write_blocks(dict.fromkeys(OFFSETS, WRITTEN))
    bench_of_sda.remember(OFFSETS)
    bench_of_sda.check()  # the step begins
    cut(bench_of_sda, tree, exchanged)
    for _ in range(2):
        with pytest.raises(ExchangedDrive):
            bench_of_sda.check()  # its next slice, or the next step
        bench_of_sda.remember(OFFSETS)
    assert is_intact(tree.root / "dev/sda")


def test_drive_away_within_a_step_is_known_by_what_the_step_has_not_overwritten(tree, bench_of_sda):
    bench_of_sda.write_blocks(dict.fromkeys(OFFSETS, WRITTEN))
    bench_of_sda.remember(OFFSETS)
    bench_of_sda.check()
    bench_of_sda.write_blocks({0: bytes(reversed(WRITTEN))})

    def back(tree):
        content = (tree.root / "dev/sda").read_bytes()
        tree.remove("sda")
        tree.sata(size_bytes=SIZE)
        (tree.root / "dev/sda").write_bytes(content)

    cut(bench_of_sda, tree, back)
    assert bench_of_sda.check().serial == SERIAL


@pytest.mark.parametrize("do", ["purge", "fill", "cuts"])
def test_marks_are_there_before_the_first_step_that_writes(tree, bench_of_sda, do):
    """Without them a disk that was exchanged within that step would be written."""
    from ssdrig.run import engine

    (tree.root / "dev/sda").write_bytes(WRITTEN * (SIZE // len(WRITTEN)))
    stage = SimpleNamespace(bench=bench_of_sda, marked=False)
    engine.mark(SimpleNamespace(do=do, range_bytes=8 * MIB), stage)
    bench_of_sda.check()
    cut(bench_of_sda, tree, exchanged)
    with pytest.raises(ExchangedDrive):
        bench_of_sda.check()
    assert stage.marked and is_intact(tree.root / "dev/sda")


# ---- the source

# where a name in /dev is used, and why that writes to no drive
NAMES = {
    "run/bench.py": "",
    "drive/inventory.py": "makes it",
    "drive/guard.py": "opens it, and compares what it has opened; words for people",
    "drive/smart/collect.py": "reads SMART, whose serial is compared; words for people",
    "drive/placement.py": "reads the status of placement handles (I/O Management Receive)",
    "drive/ata_security.py": "reads IDENTIFY for a dry run; words for people",
    "drive/nvme_erase.py": "words for people",
    "commands/purge.py": "words for people",
    "commands/trace.py": "records what others do; words for people",
    "commands/drives.py": "words for people",
    "commands/watch.py": "reads SMART; words for people",
    "run/record.py": "words for people: which disk holds the run folder",
    "run/fleet.py": "words for people",
    "run/cutting.py": "words for people: which other disk a switch feeds",
    "drive/slot.py": "words for people: which disk is in the slot of the drive",
    "powerloss/campaign.py": "words for people: which other disk lost its power",
}
DOORS = ("held.path", "held.controller")
HOST = Path(cli.__file__).parent
FILES = [*sorted(HOST.rglob("*.py")), *sorted((HOST.parent / "selfcheck").rglob("*.py"))]


def _named(path: Path) -> str:
    """As the lists have it: within the package, or selfcheck/…"""
    return str(path.relative_to(HOST if path.is_relative_to(HOST) else HOST.parent))


def names_used() -> dict[str, list[int]]:
    """Lines of each module that take the name of a drive's node."""
    uses: dict[str, list[int]] = {}
    for path in FILES:
        for part in ast.walk(ast.parse(path.read_text())):
            if isinstance(part, ast.Attribute) and part.attr in ("node", "by_id") and not _is_platform(part):
                uses.setdefault(_named(path), []).append(part.lineno)
    return uses


def _is_platform(part: ast.Attribute) -> bool:
    return isinstance(part.value, ast.Name) and part.value.id in ("platform", "self")


def test_no_module_outside_the_list_uses_the_name_of_a_drive():
    uses = names_used()
    assert uses and set(uses) <= set(NAMES), {name: uses[name] for name in set(uses) - set(NAMES)}


# what asks by a name that is not held: a drive that nothing is done to, or the one that runs the asking itself
ASKS_BY_NAME = {
    "commands/wear.py": "reads",
    "run/bench.py": "polled(), whose callers hold it",
    "selfcheck/smart.py": "reads",
}


def test_what_asks_by_name_asks_a_drive_that_is_held():
    """SMART and the kernel's counters of a name that came to be another disk's would be taken for this drive's."""
    loose = []
    for path in FILES:
        tree, held = ast.parse(path.read_text()), set()
        for part in ast.walk(tree):
            named = isinstance(part, ast.With) and any(
                isinstance(item.context_expr, ast.Call)
                and isinstance(item.context_expr.func, ast.Attribute)
                and item.context_expr.func.attr == "named"
                for item in part.items
            )
            held |= set(ast.walk(part)) if named else set()
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call not in held:
                asks = (
                    ast.unparse(call.func) in ("collect.poll", "witness.read")
                    and ast.unparse(call) != "witness.read(None)"
                )
                loose += [_named(path)] * asks
    assert set(loose) == set(ASKS_BY_NAME), loose


@pytest.mark.parametrize("away", ["let go", "moved"])
def test_promise_of_a_drive_that_is_away_is_not_asked_of_its_name(tree, bench_of_sda, away):
    bench_of_sda.target.away()
    if away == "moved":
        moved(tree)
    with pytest.raises(DriveError):
        bench_of_sda.target.promise()


def test_no_writing_command_is_given_a_name():
    """Calls that write, and programs that erase, are given held.path or a parameter that stands for it."""
    writing = ("write", "discard", "zero", "sync", "flush", "connected", "device")
    bad = []
    for path in FILES:
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, (ast.Attribute, ast.Name)) and call.args:
                name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
                if name in writing and isinstance(call.args[0], ast.Attribute) and call.args[0].attr == "node":
                    bad.append(f"{path.name}:{call.lineno}")
    assert not bad, bad
