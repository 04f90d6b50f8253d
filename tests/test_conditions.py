"""drive/conditions.py on a tree of files."""

import pytest

from ssdrig.drive import conditions
from ssdrig.errors import DriveError


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
    found = conditions.read("sda", tree)
    assert found["queue.scheduler"] == "none [mq-deadline]" and found["governor"] == "powersave"
    assert found["load_average"] == "0.25" and "queue.fua" not in found
    assert "queue.scheduler" not in conditions.read(None, tree)


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
