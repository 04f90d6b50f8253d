"""A poll of one drive: which pages and tools are asked, and what becomes of their answers."""

import json
import sys

import pytest
from collecting import NVME, PAGE, SATA, USB, tools  # noqa: F401  fixtures
from fake_tools import Tools, answer_of_smartctl, identity
from pages import PAGE_02H, PAGE_C0H

from ssdrig.base.errors import JournalError
from ssdrig.drive.smart import collect, units


def asked(tools: Tools) -> list[str]:
    """What was asked, short: "id-ctrl", "02", "c0 --lsi=1", "smartctl -x"."""
    short = []
    for call in tools.calls():
        words = call.split()
        if words[0] == "smartctl":
            short.append(f"smartctl {' '.join(words[2:-3])}")
        elif words[1] == "get-log":
            short.append(" ".join([words[3].removeprefix("--log-id=0x"), *words[6:]]))
        else:
            short.append(words[1])
    return short


def test_document_of_a_sata_drive(tools):
    tools.smartctl(answer_of_smartctl(4, model_name="X"), 4)
    document = collect.poll(SATA)
    assert list(document) == [
        "t_start_ns",
        "t_end_ns",
        "simulated",
        "drive",
        "smartctl",
        "smartctl_text",
        "tools",
        "gaps",
        "units",
    ]
    assert document["drive"] == {
        "model": "TEST",
        "serial": "0001",
        "firmware": "1.0",
        "by_id": "/dev/disk/by-id/nvme-TEST_0001",
        "node": "/dev/sdz",
        "interface": "SATA",
        "capacity_bytes": 10**9,
        "smartctl_type": "sat",
    }
    assert document["smartctl"]["model_name"] == "X" and document["smartctl_text"] is None and document["units"] == {}
    (tool,) = document["tools"]
    assert (
        tool["argv"] == ["smartctl", "--json=cv", "-x", "-d", "sat", "/dev/sdz"]
        and tool["exit_code"] == 4
        and tool["why"] is None
    )
    assert document["t_start_ns"] <= tool["t_ns"] <= document["t_end_ns"]
    (gap,) = document["gaps"]
    assert (
        gap
        == "smartctl, exit status bit 2: a SMART or other command to the drive failed, or a SMART structure has a wrong"
        " checksum"
    )
    json.dumps(document)


@pytest.mark.parametrize("status", [8, 16, 32, 64, 128, 248])
def test_what_the_drive_says_of_itself_is_no_gap(tools, status):
    tools.smartctl(answer_of_smartctl(status), status)
    assert collect.poll(SATA)["gaps"] == []


def test_pages_are_read_together_before_smartctl(tools):
    tools.nvme({"id-ctrl": identity(), "02": PAGE_02H, "c0": PAGE_C0H})
    tools.smartctl(answer_of_smartctl())
    document = collect.poll(NVME)
    assert asked(tools) == ["id-ctrl", "02", "c0", "c3", "smartctl -x"]
    assert document["log_02h"] == PAGE_02H.hex() and document["log_c0h"] == PAGE_C0H.hex() and document["gaps"] == []
    assert document["log_c3h"] is None and [tool["exit_code"] for tool in document["tools"]][:3] == [0, 0, 0]


def test_latency_monitor_is_asked_of_ocps_drives_alone(tools):
    uuids = bytearray(4096)
    uuids[48:64] = bytes.fromhex("C194D55BE0944794A21D29998F56BE6F")
    pages = {"02": PAGE_02H, "c0": PAGE_C0H, "c3": PAGE}
    tools.nvme({"id-ctrl": identity(ctratt=1 << 9), "id-uuid": bytes(uuids), **pages})
    tools.smartctl(answer_of_smartctl())
    document = collect.poll(NVME)
    assert document["log_c3h"] == PAGE.hex()
    (tools.folder / "calls").unlink()
    collect.poll(NVME, like=document)
    assert asked(tools) == ["02", "c0 --uuid-index=1", "c3 --uuid-index=1", "smartctl -i -A -H"]
    (tools.folder / "calls").unlink()
    tools.nvme({"id-ctrl": identity(), "02": PAGE_02H, "c0": PAGE, "c3": PAGE})
    assert "log_c3h" not in collect.poll(NVME) and "c3" not in asked(tools)


@pytest.mark.parametrize(
    "vid, pages",
    [
        (0x8086, ["ca"]),
        (0x025E, ["ca"]),
        (0x1C5F, ["ca"]),
        (0x1344, ["d0", "fb", "e1"]),
        (0x1B96, ["ca", "d0", "fb"]),
        (0x15B7, ["ca", "d0", "fb"]),
        (0x144D, []),
        (0x1E0F, []),
        (0x1C5C, []),
        (0x1B36, []),
    ],
)
def test_pages_by_maker(tools, vid, pages):
    tools.nvme({"id-ctrl": identity(vid), "02": PAGE, **dict.fromkeys(pages, PAGE)})
    tools.smartctl(answer_of_smartctl())
    document = collect.poll(NVME)
    assert asked(tools) == ["id-ctrl", "02", "c0", *pages, "smartctl -x"]
    assert document["drive"]["pci_vendor_id"] == f"{vid:04x}"
    assert (
        document["log_c0h"] is None
        and all(document[f"log_{name}h"] == PAGE.hex() for name in pages)
        and document["gaps"] == []
    )


def test_endurance_group_and_fdp(tools):
    namespace = bytearray(4096)
    namespace[102] = 5
    tools.nvme(
        {
            "id-ctrl": identity(ctratt=1 << 19 | 1 << 4, endgidmax=8),
            "id-ns": bytes(namespace),
            "02": PAGE,
            "09": PAGE,
            "20": bytes(4096),
            "22": bytes(64),
            "23": bytes(4096),
        }
    )
    tools.smartctl(answer_of_smartctl())
    document = collect.poll(NVME)
    pages = ["02", "c0", "09 --lsi=5", "22 --lsi=5", "23 --lsi=5", "23 --lsp=1 --lsi=5", "20 --lsi=5", "21 --lsi=5"]
    assert asked(tools) == ["id-ctrl", "id-ns", *pages, "smartctl -x"]
    assert document["log_23h"] == document["log_23h_host"] == document["log_20h"] == bytes(4096).hex()
    assert document["log_21h"] is None
    (tools.folder / "calls").unlink()
    collect.poll(NVME, like=document)
    assert asked(tools) == ["02", "09 --lsi=5", "22 --lsi=5", "23 --lsi=5", "23 --lsp=1 --lsi=5", "smartctl -i -A -H"]
    assert (
        document["log_22h"] == bytes(64).hex()
        and document["log_09h"] == PAGE.hex()
        and document["drive"]["endurance_group"] == 5
    )


def test_a_namespace_in_no_group_is_asked_of_the_first(tools):
    tools.nvme({"id-ctrl": identity(endgidmax=1), "02": PAGE, "09": PAGE})  # Identify Namespace fails
    tools.smartctl(answer_of_smartctl())
    document = collect.poll(NVME)
    assert "09 --lsi=1" in asked(tools) and document["gaps"][0].startswith("Identify Namespace: ")


def test_the_list_of_pages_is_believed(tools):
    """Log page 00h has 02h and D0h but not C0h, FBh, E1h: those are not asked, for that would raise the drive's error
    count."""
    listed = b"".join((1 if lid in (0x00, 0x02, 0xD0) else 0).to_bytes(4, "little") for lid in range(256))
    tools.nvme({"id-ctrl": identity(0x1344, lpa=1 << 5), "00": listed, "02": PAGE, "d0": PAGE})
    tools.smartctl(answer_of_smartctl())
    document = collect.poll(NVME)
    assert asked(tools) == ["id-ctrl", "00", "02", "d0", "smartctl -x"]
    assert (
        document["log_c0h"] is document["log_fbh"] is document["log_e1h"] is None and document["log_d0h"] == PAGE.hex()
    )


def test_without_a_list_of_pages_all_are_asked(tools):
    tools.nvme({"id-ctrl": identity(lpa=1 << 5), "02": PAGE})  # says that it has log 00h, and refuses it
    tools.smartctl(answer_of_smartctl())
    assert (
        asked(tools) == []
        and "log_00h" not in collect.poll(NVME)
        and asked(tools) == ["id-ctrl", "00", "02", "c0", "smartctl -x"]
    )


def test_ocps_page_is_asked_by_ocps_uuid(tools):
    uuids = bytearray(4096)
    uuids[48:64], uuids[80:96] = b"V" * 16, bytes.fromhex("C194D55BE0944794A21D29998F56BE6F")
    tools.nvme({"id-ctrl": identity(ctratt=1 << 9), "id-uuid": bytes(uuids), "02": PAGE, "c0": PAGE})
    tools.smartctl(answer_of_smartctl())
    document = collect.poll(NVME)
    assert (
        asked(tools) == ["id-ctrl", "id-uuid", "02", "c0 --uuid-index=2", "smartctl -x"]
        and document["drive"]["ocp_uuid_index"] == 2
    )
    collect.poll(NVME, like=document)
    assert asked(tools)[-3:] == ["02", "c0 --uuid-index=2", "smartctl -i -A -H"]


def test_the_light_poll_asks_only_what_there_was(tools):
    namespace = bytearray(4096)
    namespace[102] = 2
    tools.nvme(
        {"id-ctrl": identity(0x1344, endgidmax=2), "id-ns": bytes(namespace), "02": PAGE, "09": PAGE, "d0": PAGE}
    )
    tools.smartctl(answer_of_smartctl())
    first = collect.poll(NVME)
    assert [key for key in first if key.startswith("log_")] == [
        "log_02h",
        "log_c0h",
        "log_d0h",
        "log_fbh",
        "log_e1h",
        "log_09h",
    ]
    (tools.folder / "calls").unlink()
    second = collect.poll(NVME, like=json.loads(json.dumps(first)))
    assert asked(tools) == ["02", "d0", "09 --lsi=2", "smartctl -i -A -H"]
    assert {key: page for key, page in second.items() if key.startswith("log_")} == {
        "log_02h": PAGE.hex(),
        "log_c0h": None,
        "log_d0h": PAGE.hex(),
        "log_fbh": None,
        "log_e1h": None,
        "log_09h": PAGE.hex(),
    }
    assert second["drive"] == first["drive"]
    assert collect.poll(NVME, like=second)["drive"] == first["drive"]  # and so on


def test_the_light_poll_keeps_ata_device_statistics_and_the_bridges_type(tools):
    tools.smartctl(answer_of_smartctl(ata_device_statistics={"pages": []}))
    first = collect.poll(USB)
    first["drive"]["smartctl_type"] = "sat"
    collect.poll(USB, like=first)
    assert tools.calls()[-1] == "smartctl --json=cv -i -A -H -l devstat -d sat /dev/sdy"


def test_the_bridges_type_is_remembered(tools):
    (tools.folder / "no").write_text(json.dumps(answer_of_smartctl(1)))
    (tools.folder / "yes").write_text(json.dumps(answer_of_smartctl()))
    tools.put("smartctl", 'case "$*" in *"-d sntrealtek "*) cat yes;; *) cat no; exit 1;; esac')
    document = collect.poll(USB)
    assert document["drive"]["smartctl_type"] == "sntrealtek" and [tool["exit_code"] for tool in document["tools"]] == [
        1,
        0,
    ]
    assert document["gaps"] == []
    collect.poll(USB, like=document)
    assert len(tools.calls()) == 3 and "-d sntrealtek" in tools.calls()[-1]


def test_a_like_of_another_kind_or_broken_is_no_reason_to_stop(tools):
    tools.nvme({"02": PAGE})
    tools.smartctl(answer_of_smartctl())
    for like in (
        {"smartctl": None, "log_02h": "00"},
        {"drive": None, "log_xx": "1", "log_00h": "00", "log_02h": "00", "smartctl": []},
    ):
        assert collect.poll(NVME, like=like)["log_02h"] == PAGE.hex()


def test_like_a_poll_that_got_nothing_is_a_first_poll(tools):
    tools.nvme({"id-ctrl": identity(), "02": PAGE})
    tools.put("smartctl", "exit 2")
    nothing = {"drive": {"smartctl_type": "nvme"}, "smartctl": answer_of_smartctl(2), "log_c0h": None, "gaps": ["all"]}
    assert collect.poll(NVME, like=nothing)["log_02h"] == PAGE.hex()
    assert asked(tools) == ["id-ctrl", "02", "c0", "smartctl -x"]


def test_calibrated_units_are_put_in(tools, monkeypatch):
    tools.smartctl(answer_of_smartctl())

    def units_of_model(model, firmware):
        return {"ata:241": 33554432} if (model, firmware) == ("TEST", "1.0") else {}

    monkeypatch.setattr(units, "units_for", units_of_model)
    assert collect.poll(SATA)["units"] == {"ata:241": 33554432}

    def broken(model, firmware):
        raise JournalError("a table of units", "garbage", "delete it")

    monkeypatch.setattr(units, "units_for", broken)
    document = collect.poll(SATA)
    assert document["units"] == {} and "delete it" in document["gaps"][0]


def test_numpy_is_not_loaded():
    code = "import sys, ssdrig.drive.smart.collect; sys.exit('numpy' in sys.modules)"
    assert collect.program.run([sys.executable, "-c", code], 60).exit_code == 0
