"""Polls that meet trouble: tools that are missing, hang or print nonsense, other drives, many drives at once."""

import json

import pytest
from collecting import NVME, PAGE, SATA, USB, tools  # noqa: F401  fixtures
from drives import a_drive
from fake_tools import answer_of_smartctl, identity
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pages import PAGE_02H

from ssdrig.base.errors import DriveError, ToolMissing
from ssdrig.drive.smart import collect
from ssdrig.drive.smart.counters import snapshot


@pytest.mark.parametrize("status", [1, 2, 3, 255])
def test_no_data_is_a_drive_error_with_smartctls_words(tools, status):
    document = answer_of_smartctl(status)
    document["smartctl"]["messages"] = [
        {"string": "Smartctl open device: /dev/sdz failed: No such device", "severity": "error"}
    ]
    tools.smartctl(document, status)
    with pytest.raises(DriveError, match="No such device"):
        collect.poll(SATA)


@pytest.mark.parametrize(
    "printed", [b"", b"garbage", b"{}", b'{"smartctl": {}}', b'{"smartctl": {"exit_status": "0"}}', b"[]"]
)
def test_garbage_alone_is_a_drive_error(tools, printed):
    tools.smartctl(printed)
    with pytest.raises(DriveError):
        collect.poll(SATA)
    document = collect.poll_all([SATA])[0]
    assert not collect.answered(document)
    assert document["smartctl_text"] == (None if printed.startswith(b"{") else printed.decode())


def test_without_nvme_cli_it_is_a_gap(tools, monkeypatch):
    monkeypatch.setattr(collect.program, "is_missing", lambda name: name == "nvme")
    tools.smartctl(answer_of_smartctl())
    document = collect.poll(NVME)
    assert document["gaps"] == ["Identify Controller: the program nvme was not found"] and document["smartctl"]
    assert document["tools"][0]["exit_code"] is None and not any(key.startswith("log_") for key in document)


def test_without_smartctl_the_pages_are_enough(tools, monkeypatch):
    monkeypatch.setattr(collect.program, "is_missing", lambda name: name == "smartctl")
    tools.nvme({"id-ctrl": identity(), "02": PAGE_02H})
    document = collect.poll(NVME)
    assert document["smartctl"] is None and document["log_02h"] and "smartmontools" in document["gaps"][-1]
    tools.nvme({}, "/dev/nvme7: No such file or directory")
    for page in tools.folder.glob("page.*"):
        page.unlink()
    with pytest.raises(ToolMissing, match="smartmontools"):
        collect.poll(NVME)
    assert collect.poll_all([NVME])[0]["smartctl"] is None  # never raises


@pytest.mark.slow
def test_a_page_that_hangs_leaves_time_for_smartctl(tools):
    tools.nvme({"id-ctrl": identity(), "02": PAGE})
    script = (tools.folder / "nvme").read_text()
    (tools.folder / "nvme").write_text(
        script.replace("#!/bin/sh", '#!/bin/sh\ncase "$*" in *0xc0*) exec sleep 300;; esac', 1)
    )
    tools.smartctl(answer_of_smartctl())
    document = collect.poll(NVME, timeout_s=3)
    assert document["log_02h"] == PAGE.hex() and "log_c0h" not in document and document["smartctl"]
    (gap,) = document["gaps"]
    assert gap.startswith("log C0h: killed") and document["tools"][2]["exit_code"] is None


@pytest.mark.slow
def test_everything_hangs(tools):
    tools.put("nvme", "exec sleep 300")
    tools.put("smartctl", "exec sleep 300")
    with pytest.raises(DriveError, match="killed"):
        collect.poll(NVME, timeout_s=0.6)
    document = collect.poll_all([NVME], timeout_s=0.6)[0]
    assert [gap.split(":")[0] for gap in document["gaps"]] == ["Identify Controller", "log 02h", "smartctl"]
    assert "not started" in document["gaps"][1]


def test_another_drive_at_this_node_is_said(tools):
    tools.nvme({"id-ctrl": identity(serial="OTHER"), "02": PAGE})
    tools.smartctl(answer_of_smartctl())
    assert "OTHER, not 0001" in collect.poll(NVME)["gaps"][0]


@pytest.mark.slow
def test_many_at_once_in_order_and_none_waits_for_a_hung_one(tools):
    """The hung drive's smartctl waits on a pipe that only its end at the time limit closes; the others' answers are
    complete."""
    (tools.folder / "yes").write_text(json.dumps(answer_of_smartctl()))
    tools.put("smartctl", 'case "$*" in *sdhung) exec sleep 300;; esac\ncat yes')
    names = ["sda", "sdhung", "sdb", "sdc"]
    drives = [
        a_drive(name=name, node=f"/dev/{name}", interface="SATA", controller=None, smartctl_type="sat")
        for name in names
    ]
    documents = collect.poll_all(drives, timeout_s=3.0)
    assert [document["drive"]["node"] for document in documents] == [f"/dev/{name}" for name in names]
    assert [collect.answered(document) for document in documents] == [True, False, True, True]
    hung = documents.pop(1)
    assert all(document["t_end_ns"] < hung["t_end_ns"] for document in documents)


def test_all_at_once_run_at_the_same_time(tools):
    """Each of three smartctl waits until all three have started: one after the other they would hang."""
    (tools.folder / "yes").write_text(json.dumps(answer_of_smartctl()))
    tools.put("smartctl", 'touch here.$$\nwhile [ "$(ls here.* | wc -l)" -lt 3 ]; do sleep 0.02; done\ncat yes')
    drives = [
        a_drive(name=name, node=f"/dev/{name}", interface="SATA", controller=None) for name in ("sda", "sdb", "sdc")
    ]
    assert all(collect.answered(document) for document in collect.poll_all(drives, timeout_s=30))


def test_likes_belong_to_their_drives(tools):
    tools.smartctl(answer_of_smartctl())
    collect.poll_all([SATA, USB], likes=[collect.poll(SATA), None])
    assert sorted(tools.calls()[1:]) == [
        "smartctl --json=cv -i -A -H -d sat /dev/sdz",
        "smartctl --json=cv -x -d auto /dev/sdy",
    ]


def test_a_defect_of_ours_is_not_swallowed(tools, monkeypatch):
    monkeypatch.setattr(collect, "_add_smartctl", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        collect.poll_all([SATA])


numbers = (
    st.integers() | st.integers(2**53, 2**140) | st.floats(allow_nan=False, allow_infinity=False) | st.just(10**400)
)
few = st.lists(numbers, max_size=3) | st.dictionaries(st.text(max_size=4), numbers, max_size=2)
wrong = st.none() | st.booleans() | numbers | st.text(max_size=6) | few
fields = st.sampled_from(
    [
        "smartctl",
        "device",
        "model_name",
        "serial_number",
        "firmware_version",
        "user_capacity",
        "in_smartctl_database",
        "model_family",
        "smart_status",
        "temperature",
        "power_on_time",
        "power_cycle_count",
        "nvme_smart_health_information_log",
        "ata_smart_attributes",
        "ata_device_statistics",
        "logical_block_size",
        "scsi_error_counter_log",
        "endurance_used",
        "spare_available",
        "nvme_pci_vendor",
    ]
)
inner = st.dictionaries(
    st.sampled_from(
        [
            "data_units_written",
            "data_units_written_s",
            "percentage_used",
            "temperature",
            "table",
            "pages",
            "id",
            "raw",
            "value",
            "hours",
            "current",
            "passed",
            "protocol",
            "exit_status",
            "version",
            "messages",
            "bytes",
            "number",
            "name",
        ]
    ),
    wrong,
    max_size=6,
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(fields, wrong | inner | st.lists(inner, max_size=3), max_size=8),
    st.integers(0, 255),
    st.binary(max_size=600),
)
def test_no_answer_of_smartctl_or_the_drive_crashes_the_way_to_the_counters(tools, document, status, page):
    """A drive whose smartctl JSON has missing, wrong-typed and huge fields, and whose log pages are of any length."""
    try:
        json.dumps(document).encode()
    except ValueError:
        return  # Python itself refuses integers this long
    tools.smartctl({"smartctl": {"exit_status": status}} | document, status)
    tools.nvme({"id-ctrl": identity(), "02": page, "c0": (page * 600)[:512]})
    documents = collect.poll_all([NVME, SATA])
    for poll in documents:
        assert json.loads(json.dumps(poll)) == poll
        before = json.dumps(poll)
        counted = snapshot(poll)
        assert json.dumps(poll) == before
        written = counted["host_written_bytes"]
        assert written is None or (type(written) is int and written >= 0)
    if len(page) != 512:
        assert "log_02h" not in documents[0] and any(gap.startswith("log 02h: ") for gap in documents[0]["gaps"])
