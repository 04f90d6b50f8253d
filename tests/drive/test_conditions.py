"""drive/conditions.py on a tree of files."""

from types import SimpleNamespace

import pytest
from disktree import DiskTree
from drives import a_drive
from fake_tools import Tools

from ssdrig.base.errors import DriveError
from ssdrig.drive import conditions, features
from ssdrig.run import bench, run


@pytest.fixture
def tree(tmp_path):
    def put(path, text):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")

    put("sys/block/sda/queue/scheduler", "none [mq-deadline]")
    put("sys/block/sda/queue/nr_requests", "64")
    put("sys/block/sda/device/scsi_disk/0:0:0:0/cache_type", "write back")
    for cpu in (0, 1):
        put(f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor", "powersave")
    put("proc/loadavg", "0.25 0.1 0.1 1/100 5")
    return tmp_path


def test_what_is_there_is_read_and_the_rest_left_out(tree):
    read = conditions.read("sda", tree)
    settings = read["found"]
    assert read["unknown"] == {} and not any(key.startswith("nvme.") for key in settings)
    assert settings["queue.scheduler"] == "none [mq-deadline]" and settings["governor"] == "powersave"
    assert settings["load_average"] == "0.25" and "queue.fua" not in settings
    assert "queue.scheduler" not in conditions.read(None, tree)["found"]


def test_link_of_a_multipath_namespace_is_its_controllers(tmp_path, monkeypatch):
    """Its `device` is the subsystem, which has no link."""
    tree = DiskTree(tmp_path)
    tree.nvme(0)
    monkeypatch.setattr(conditions.features, "read", lambda controller, nsid: ({}, {}))
    (tmp_path / "sys/block/nvme5n1/device").mkdir(parents=True)
    settings = conditions.read("nvme5n1", tmp_path, "/dev/nvme0")["found"]
    assert settings["link.current_link_speed"] == "16.0 GT/s PCIe" and settings["link.max_link_width"] == "4"


def test_what_goes_on_beside_the_drive_is_read_but_is_no_change_of_a_setting(tree):
    def put(path, text):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text + "\n")

    put("proc/meminfo", "MemTotal: 9 kB\nMemAvailable:    7654321 kB")
    put("sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI")
    put("sys/devices/system/cpu/cpufreq/boost", "1")
    for disk, device in (("sda", True), ("sdb", True), ("nvme0n1", True), ("dm-0", False)):
        put(f"sys/block/{disk}/stat", "  9 0 100 1 9 0 30 1 0 2 3")
        if device:
            put(f"sys/block/{disk}/device/x", "")
    before = conditions.read("sda", tree)
    settings = before["found"]
    assert settings["memory_available_kB"] == 7654321 and settings["vulnerability.meltdown"] == "Mitigation: PTI"
    assert (settings["other_disks_read_bytes"], settings["other_disks_written_bytes"]) == (2 * 51200, 2 * 15360)
    put("sys/block/sdb/stat", "  9 0 108 1 9 0 38 1 0 2 3")
    put("proc/loadavg", "7 1 1 1/1 5")
    put("sys/devices/system/cpu/cpufreq/boost", "0")
    (tree / "sys/block/sda/queue/nr_requests").unlink()
    after = conditions.read("sda", tree)
    assert after["found"]["other_disks_written_bytes"] == 15360 * 2 + 4096
    assert conditions.changed(before, after) == {"boost": ["1", "0"], "queue.nr_requests": ["64", None]}
    assert conditions.changed(before, before) == {}


def test_a_change_is_seen_and_put_back_on_every_cpu(tree):
    before = conditions.setting("governor", "sda", tree)
    conditions.change("governor", "performance", "sda", tree)
    files = sorted((tree / "sys/devices/system/cpu").glob("*/cpufreq/*"))
    assert [file.read_text() for file in files] == ["performance"] * 2
    conditions.put_back("governor", before, "sda", tree)
    assert [file.read_text() for file in files] == ["powersave"] * 2
    with pytest.raises(DriveError, match="2 files where there were 3"):
        conditions.put_back("governor", ["powersave"] * 3, "sda", tree)


def test_the_write_cache_in_the_plans_words(tree):
    file = tree / "sys/block/sda/device/scsi_disk/0:0:0:0/cache_type"
    before = conditions.setting("write_cache", "sda", tree)
    conditions.change("write_cache", "off", "sda", tree)
    assert file.read_text() == "write through"
    conditions.put_back("write_cache", before, "sda", tree)
    assert file.read_text() == "write back"


def test_what_the_kernel_does_not_take_leaves_all_as_it_was(tree, monkeypatch):
    write, refused = conditions._write, []

    def second_refuses(path, value):
        if "cpu1" in path and value == "performance":
            refused.append(path)
            return False
        return write(path, value)

    monkeypatch.setattr(conditions, "_write", second_refuses)
    with pytest.raises(DriveError, match="cpu1.*to take 'performance'"):
        conditions.change("governor", "performance", "sda", tree)
    files = sorted((tree / "sys/devices/system/cpu").glob("*/cpufreq/*"))
    assert refused and [file.read_text().strip() for file in files] == ["powersave"] * 2


def test_a_setting_that_there_is_not(tree):
    assert conditions.can_set("scheduler", "sda", tree) and not conditions.can_set("aspm", "sda", tree)
    with pytest.raises(DriveError, match="aspm"):
        conditions.change("aspm", "performance", "sda", tree)


def test_link_power_is_set_at_the_drives_own_port(tmp_path):
    tree = DiskTree(tmp_path)
    names = [tree.sata(), tree.sata("sdb", serial="OTHER01", port=2), tree.sas("sdc"), tree.nvme(0)]
    ports = [f"sys/devices/pci0000:00/0000:00:17.0/ata{n}/host{n}" for n in (1, 2)]
    files = [f"{port}/scsi_host/host{n}/link_power_management_policy" for n, port in enumerate(ports, 1)]
    for n, file in enumerate(files, 1):
        tree.write(file, "med_power_with_dipm\n")
        tree.link(f"sys/class/scsi_host/host{n}", f"{ports[n - 1]}/scsi_host/host{n}")
    assert [conditions.can_set("alpm", name, tmp_path) for name in names] == [True, True, False, False]
    before = conditions.setting("alpm", "sdb", tmp_path)
    conditions.change("alpm", "min_power", "sdb", tmp_path)
    assert [(tmp_path / file).read_text().strip() for file in files] == ["med_power_with_dipm", "min_power"]
    recorded = [conditions.read(name, tmp_path)["found"].get("alpm") for name in (*names, None)]
    assert recorded == ["med_power_with_dipm", "min_power", None, None, None]
    conditions.put_back("alpm", before, "sdb", tmp_path)
    assert [(tmp_path / file).read_text().strip() for file in files] == ["med_power_with_dipm"] * 2


# What nvme-cli 2.3 prints; a drive without a volatile write cache aborts the command with Invalid Field in Command.
FEATURE_06H = """
case $1 in
get-feature)
  [ -f wce ] || { echo "NVMe status: Invalid Field in Command(0x4002)" >&2; exit 1; }
  if [ "$(cat wce)" = 1 ]; then value=0x00000001; else value=00000000; fi
  echo "get-feature:0x06 (Volatile Write Cache), Current value:$value";;
set-feature)
  [ -f refuses ] && { echo "NVMe status: Feature Identifier Not Changeable(0x10e)" >&2; exit 1; }
  echo "${4#--value=}" > wce
  echo "set-feature:0x06 (Volatile Write Cache), value:0000000${4#--value=}, cdw12:00000000, save:0";;
esac"""
NVME = {"name": "nvme0n1", "controller": "/dev/nvme0"}


@pytest.fixture
def nvme(tmp_path, monkeypatch):
    tools = Tools(tmp_path / "bin", monkeypatch)
    tools.put("nvme", FEATURE_06H)
    (tools.folder / "wce").write_text("1\n")
    return tools


def test_the_write_cache_of_an_nvme_drive_is_a_feature_of_its_controller(nvme, tmp_path):
    at = NVME | {"root": tmp_path}
    assert conditions.can_set("write_cache", **at)
    before = conditions.setting("write_cache", **at)
    assert before == ["write back"]
    conditions.change("write_cache", "off", **at)
    assert (nvme.folder / "wce").read_text() == "0\n" and conditions.setting("write_cache", **at) == ["write through"]
    conditions.put_back("write_cache", before, **at)
    assert (nvme.folder / "wce").read_text() == "1\n"
    sets = [call for call in nvme.calls() if "set-feature" in call]
    assert sets == [f"nvme set-feature /dev/nvme0 --feature-id=6 --value={value}" for value in (0, 1)]
    conditions.change("write_cache", "on", **at)
    conditions.put_back("write_cache", before, **at)
    assert sets == [call for call in nvme.calls() if "set-feature" in call], "what is so already is not set again"


HMB = """
case "$1 $3" in
"get-feature --feature-id=13")
 echo "get-feature:0x0d (Host Memory Buffer), Current value:0x0000000$(cat %s)";;
*) echo "NVMe status: Invalid Field in Command(0x4002)" >&2; exit 1;;
esac"""


@pytest.fixture
def buffer(nvme, tmp_path):
    """The kernel's file of a drive that uses the host memory buffer; the drive reports what is in it."""
    file = tmp_path / "sys/class/nvme/nvme0/hmb"
    file.parent.mkdir(parents=True)
    file.write_text("1\n")
    nvme.put("nvme", HMB % file)
    return file


def test_host_memory_buffer_is_taken_away_and_given_back(buffer, tmp_path):
    at = NVME | {"root": tmp_path}
    assert conditions.can_set("hmb", **at) and conditions.is_of_drive("hmb")
    before = conditions.setting("hmb", **at)
    conditions.change("hmb", "off", **at)
    assert before == ["1"] and buffer.read_text() == "0" and conditions.setting("hmb", **at) == ["0"]
    conditions.put_back("hmb", before, **at)
    assert buffer.read_text() == "1"


def test_host_memory_buffer_that_the_drive_still_uses_is_a_fault(buffer, nvme, tmp_path):
    (tmp_path / "other").write_text("1\n")
    nvme.put("nvme", HMB % (tmp_path / "other"))
    with pytest.raises(DriveError) as error:
        conditions.change("hmb", "off", **NVME, root=tmp_path)
    assert "0x1" in error.value.seen and buffer.read_text() == "1"


def test_drive_without_a_host_memory_buffer_cannot_have_it_set(nvme, tmp_path):
    assert not conditions.can_set("hmb", **NVME, root=tmp_path)
    assert not conditions.can_set("hmb", "sda", tmp_path)


ALL_FEATURES = """
case "$1 $3" in
"get-feature --feature-id=2") echo "get-feature:0x02 (Power Management), Current value:0x00000023";;
"get-feature --feature-id=6") echo "get-feature:0x6 (Volatile Write Cache), Current value:00000000";;
"get-feature --feature-id=12") if [ "$5" ]; then cat apst; else
  echo "get-feature:0x0c (Autonomous Power State Transition), Current value:0x00000001"; echo " 0  1  2"; fi;;
"get-feature --feature-id=13") echo "get-feature:0x0d (Host Memory Buffer), Current value:0x00000001";;
"get-feature --feature-id=16") echo "get-feature:0x10 (Host Thermal Management), Current value:0x01570000";;
id-ns*) cat id-ns;;
*) echo "NVMe status: Invalid Field in Command(0x4002)" >&2; exit 1;;
esac"""


def test_all_that_an_nvme_drive_is_set_to_is_recorded(nvme, tmp_path, monkeypatch):
    """Power state 3, no write cache, APST from state 0 to 3 after 100 ms, TMT1 70 C, format 1 of 4096 B and 8 B."""
    nvme.put("nvme", ALL_FEATURES)
    (nvme.folder / "apst").write_bytes((100 << 8 | 3 << 3).to_bytes(8, "little").ljust(256, b"\0"))
    page = bytearray(4096)
    page[25], page[26], page[128:136] = 1, 1, bytes([0, 0, 9, 2, 8, 0, 12, 0])
    (nvme.folder / "id-ns").write_bytes(page)
    read = conditions.read("nvme0n1", tmp_path, "/dev/nvme0", 5)
    assert {key: value for key, value in read["found"].items() if key.startswith("nvme.")} == {
        "nvme.power_state": 3,
        "nvme.write_cache": "off",
        "nvme.apst": "on",
        "nvme.apst_table": [[0, 3, 100]],
        "nvme.tmt1_C": 70,
        "nvme.tmt2_C": None,
        "nvme.hmb": "on",
        "nvme.lba_format": "1: 4096 B, metadata 8 B",
        "nvme.lba_formats": ["0: 512 B, metadata 0 B", "1: 4096 B, metadata 8 B"],
    }
    assert read["unknown"] == {"nvme.tmt2_C": "not set: the drive's own limits hold"}
    assert any("--namespace-id=5" in call for call in nvme.calls())
    page[16:24] = (77).to_bytes(8, "little")  # NUSE
    (nvme.folder / "id-ns").write_bytes(page)
    drive = a_drive(interface="NVMe", controller="/dev/nvme0", nsid=5)
    monkeypatch.setattr(bench.collect, "poll", lambda drive, like: {"smartctl": {}})
    assert bench.polled(drive)["used_bytes"] == 77 << 12
    (nvme.folder / "id-ns").write_bytes(bytes(4096))
    assert bench.polled(drive)["used_bytes"] is None
    assert "used_bytes" not in bench.polled(a_drive(interface="SATA"))
    nvme.put("nvme", "echo 'NVMe status: Invalid Field in Command(0x4002)' >&2; exit 1")
    bare = conditions.read("nvme0n1", tmp_path, "/dev/nvme0", 5)
    assert all(bare["found"][key] is None for key in bare["unknown"]) and len(bare["unknown"]) == 9
    assert bare["unknown"]["nvme.apst"] == "NVMe status: Invalid Field in Command(0x4002)"
    changed = conditions.changed(read, bare)
    assert changed["nvme.write_cache"] == ["off", None] and "nvme.power_state" not in changed
    monkeypatch.setenv("PATH", str(tmp_path))
    absent = conditions.read("nvme0n1", tmp_path, "/dev/nvme0", 5)["unknown"]
    assert len(absent) == 9 and absent["nvme.lba_format"] == "the program nvme was not found"


@pytest.mark.parametrize("shift", [0, 8, 32, 255])
def test_reserved_values_of_an_nvme_drive_are_null_with_the_reason(nvme, tmp_path, shift):
    """A block of 2 to the power of 255 bytes, throttling from -272 C on."""
    nvme.put("nvme", ALL_FEATURES.replace("0x01570000", "0x0001ffff"))
    (nvme.folder / "apst").write_bytes(bytes(256))
    page = bytearray(4096)
    page[25], page[26], page[128:136] = 1, 1, bytes([0, 0, 9, 2, 0, 0, shift, 0])
    (nvme.folder / "id-ns").write_bytes(page)
    read = conditions.read("nvme0n1", tmp_path, "/dev/nvme0", 5)
    assert [read["found"][f"nvme.{key}"] for key in ("lba_format", "tmt1_C", "tmt2_C")] == [None] * 3
    assert {"nvme.lba_format", "nvme.tmt1_C", "nvme.tmt2_C"} <= {key for key, why in read["unknown"].items() if why}
    assert read["found"]["nvme.lba_formats"] == ["0: 512 B, metadata 0 B"]


def test_an_nvme_drive_without_a_write_cache_or_without_nvme_cli_cannot_set_it(nvme, tmp_path, monkeypatch):
    at = NVME | {"root": tmp_path}
    (nvme.folder / "wce").unlink()
    assert not conditions.can_set("write_cache", **at) and not conditions.can_set("scheduler", **at)
    with pytest.raises(DriveError, match="write_cache"):
        conditions.change("write_cache", "off", **at)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not conditions.can_set("write_cache", **at)
    assert not conditions.can_set("write_cache", "sda", tmp_path), "a drive without a controller is not asked"


def test_an_nvme_drive_that_refuses_keeps_its_cache_and_says_so(nvme, tmp_path):
    at = NVME | {"root": tmp_path}
    (nvme.folder / "refuses").write_text("")
    with pytest.raises(DriveError, match="Not Changeable") as raised:
        conditions.change("write_cache", "off", **at)
    assert "write back" in str(raised.value)
    with pytest.raises(DriveError, match="it was write through"):
        conditions.put_back("write_cache", ["write through"], **at)


def test_a_plan_s_set_switches_it_and_the_teardown_puts_it_back(nvme, tmp_path):
    """The step as the engine carries it out, with the conditions of a real bench."""
    from ssdrig.run.steps import set as step

    duties, events = [], []
    bench = SimpleNamespace(
        drive={"preset": "nvme-tlc"},
        setting=lambda key: conditions.setting(key, **NVME),
        change=lambda key, value: conditions.change(key, value, **NVME),
        put_back=lambda key, before: conditions.put_back(key, before, **NVME),
    )
    book = SimpleNamespace(path=tmp_path, event=lambda kind, **fields: events.append((kind, fields)))
    teardown = SimpleNamespace(push=lambda duty, function: duties.append((duty, function)))
    step.carry_out(
        SimpleNamespace(keys={"write_cache": "off"}), SimpleNamespace(bench=bench, book=book, teardown=teardown), 1
    )
    assert (nvme.folder / "wce").read_text() == "0\n"
    assert events == [("set", {"key": "write_cache", "value": "off", "before": ["write back"]})]
    ((duty, function),) = duties
    function()
    assert duty == "put write_cache back" and (nvme.folder / "wce").read_text() == "1\n"
    assert events[-1] == ("put_back", {"key": "write_cache", "value": ["write back"]})


def test_a_setting_that_changed_during_a_run_is_an_event_and_a_note():
    events = []
    book = SimpleNamespace(event=lambda kind, **fields: events.append((kind, fields)))
    before = {"found": {"link.current_link_speed": "16.0 GT/s", "load_average": "0.1"}, "unknown": {}}
    after = {"found": {"link.current_link_speed": "8.0 GT/s", "load_average": "9"}, "unknown": {}}
    for last in (before, after):
        run._conditions_after(SimpleNamespace(conditions=lambda seen=last: seen), book, before)
    changed = {"link.current_link_speed": ["16.0 GT/s", "8.0 GT/s"]}
    assert events == [
        ("conditions", {"when": "after", **before, "changed": {}}),
        ("conditions", {"when": "after", **after, "changed": changed}),
        (
            "note",
            {"text": "conditions that changed: link.current_link_speed: 16.0 GT/s before the run, 8.0 GT/s after it"},
        ),
    ]


def test_only_the_power_state_is_asked_of_a_drive_that_is_kept_awake(tmp_path, monkeypatch):
    reads = []

    class Direct:
        def __init__(self, node):
            self.node = node

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def read(self, offset, length):
            reads.append(self.node)

    monkeypatch.setattr(conditions.block, "Direct", Direct)
    for key in (*conditions.FILES, *features.SETTINGS):
        with conditions.awake(key, key):
            assert set(reads) == ({key} if key == "power_state" else set())
        reads.clear()
    with conditions.awake("power_state", "/dev/no-such"), conditions.awake("power_state", str(tmp_path)):
        pass
