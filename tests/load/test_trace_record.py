"""A trace recorded by the real kernel of what a loop device is asked for."""

import io
import os
import subprocess
import threading

import pytest
from drives import a_drive
from loop_device import loop_device
from trace_rows import rows_of

from ssdrig import cli
from ssdrig.base.errors import ToolMissing, UsageError
from ssdrig.commands import trace
from ssdrig.load import trace_player, trace_record, trace_targets, traceform
from ssdrig.load.traceform import FLUSH, FUA, READ, WRITE


@pytest.fixture
def tracing(tmp_path, monkeypatch):
    root = tmp_path / "tracing"
    root.mkdir()
    if subprocess.run(["mount", "-t", "tracefs", "nodev", str(root)], capture_output=True).returncode:
        pytest.skip("tracefs cannot be mounted: needs root, and a kernel that traces")
    monkeypatch.setattr(trace_record, "MOUNTED", (root,))
    yield root
    subprocess.run(["umount", str(root)], check=True)


def recorded(tmp_path, monkeypatch, use_of):
    """(header, rows, drive) of a recording while use_of(node) uses a loop device."""
    (tmp_path / "disk").write_bytes(bytes(1 << 20))
    with loop_device(tmp_path / "disk") as node:
        number = os.stat(node).st_rdev
        drive = a_drive(node=node, major=os.major(number), minor=os.minor(number))
        monkeypatch.setattr(trace.inventory, "find", lambda name: drive)
        use = threading.Thread(target=lambda: use_of(node))
        looks = []

        def until_used(fetch):
            def fetched(pipe, out):
                if not looks:  # no sooner: what was asked for before the kernel records is in no trace
                    use.start()
                lines = fetch(pipe, out)
                looks.append(lines)
                if not use.is_alive() and len(looks) > 5:  # the clock of the test is the use, not a time
                    monkeypatch.setattr(trace_record, "_fetch", fetch)
                    raise KeyboardInterrupt
                return lines

            return fetched

        monkeypatch.setattr(trace_record, "_fetch", until_used(trace_record._fetch))
        assert cli.main(["trace", "record", "X", str(tmp_path / "t"), "--time", "60s"]) == 0
    return *traceform.read(tmp_path / "t"), drive


def test_what_a_disk_is_asked_for_is_recorded(tmp_path, tracing, monkeypatch):
    def copied(node):
        words = ["dd", "if=/dev/zero", f"of={node}", "bs=8k", "seek=3", "count=2", "oflag=direct", "conv=fsync"]
        subprocess.run(words, check=True, capture_output=True, timeout=200)

    header, rows, drive = recorded(tmp_path, monkeypatch, copied)
    ours = [tuple(row)[1:4] for row in rows.tolist() if row[3] != READ]
    assert ours == [(24576, 8192, WRITE), (32768, 8192, WRITE), (0, 0, FLUSH)]
    assert header["depths"] and rows["depth"].min() >= 1
    assert header["timed"] and not header["scaled"] and drive.serial in header["name"]
    assert not list((tracing / "instances").iterdir())


def test_the_kernel_sends_fua_of_a_played_write(tmp_path, tracing, monkeypatch):
    asked = rows_of((0, 0, 4096, WRITE), (1000, 8192, 4096, WRITE), (1_000_000, 16384, 4096, WRITE))
    asked["flags"][1] = FUA

    def played(node):
        with trace_targets.device(node, 4096) as target:
            trace_player.play(asked, target, trace_player.How(), io.BytesIO())

    _, rows, _ = recorded(tmp_path, monkeypatch, played)
    fields = ["offset_bytes", "length_bytes", "op", "flags"]
    assert rows[fields][rows["op"] == WRITE].tolist() == asked[fields].tolist()


def test_a_disk_with_zones_is_refused_before_anything_starts(tmp_path):
    zoned = tmp_path / "sys/block/sdz/queue/zoned"
    trace_record.no_zones("sdz", tmp_path)
    zoned.parent.mkdir(parents=True)
    zoned.write_text("none\n")
    trace_record.no_zones("sdz", tmp_path)
    zoned.write_text("host-managed\n")
    with pytest.raises(UsageError, match="host-managed"):
        trace_record.no_zones("sdz", tmp_path)


def test_without_tracing_it_says_what_to_mount(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_record, "MOUNTED", (tmp_path,))
    with pytest.raises(ToolMissing, match="mount -t tracefs"):
        trace_record.tracefs()
