"""drive/nvme_cli.py: bytes as they came, and the two kinds of nothing: a page that the drive does not have, and one
that failed."""

import shutil

import pytest
from fake_tools import NO_PAGE_2_3, Tools, identity
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.drive import nvme_cli

PAGE = bytes(range(256)) * 2


@pytest.fixture
def tools(tmp_path, monkeypatch) -> Tools:
    return Tools(tmp_path / "bin", monkeypatch)


def test_a_page_comes_as_bytes(tools):
    tools.nvme({"c0": PAGE})
    page, record = nvme_cli.log_page("/dev/nvme7", 0xC0)
    assert page == PAGE and record["exit_code"] == 0 and record["why"] is None
    assert tools.calls() == ["nvme get-log /dev/nvme7 --log-id=0xc0 --log-len=512 --raw-binary"]
    assert record["argv"] == tools.calls()[0].split()


def test_every_selector_is_a_word_of_the_command(tools):
    tools.nvme({"09": PAGE})
    nvme_cli.log_page("/dev/nvme7", 9, 512, lsp=1, lsi=2, nsid=3, uuid_index=4)
    assert tools.calls()[0].endswith(
        "--log-id=0x09 --log-len=512 --raw-binary --lsp=1 --lsi=2 --namespace-id=3 --uuid-index=4"
    )


@pytest.mark.parametrize(
    "refusal",
    [
        NO_PAGE_2_3,  # nvme-cli 2.3; 2.13 and later print the same
        # the "more" bit instead of "do not retry"
        "NVMe status: Invalid Log Page: The log page indicated is invalid(0x2109)",
        # QEMU 7.2
        (
            "NVMe status: Invalid Field in Command: A reserved coded value or an unsupported value in a defined"
            " field(0x4002)"
        ),
        (  # 1.12
            "NVMe status: INVALID_LOG_PAGE: The log page indicated is invalid. This error condition is also returned if"
            " a reserved log page is requested(0x4109)"
        ),
        "NVMe Status:INVALID_LOG_PAGE(2109)",  # 1.6, as in nvme-cli's issue 391
        # 1.9, issue 703
        "NVMe Status:INVALID_FIELD: A reserved coded value or an unsupported value in a defined field(4002)",
    ],
)
def test_a_page_that_the_drive_does_not_have_is_no_failure(tools, refusal):
    tools.nvme({}, refusal)
    page, record = nvme_cli.log_page("/dev/nvme7", 0xC0)
    assert page is None and record["why"] is None and record["exit_code"] == 1 and record["stderr"] == refusal + "\n"


@pytest.mark.parametrize(
    "refusal",
    [
        "NVMe status: Internal Error: The command was not completed successfully due to an internal error(0x6)",
        "NVMe status: Namespace Not Ready: The namespace is not ready to be accessed(0x82)",
        "NVMe status: Asymmetric Access Inaccessible: The command was not completed(0x4302)",  # code 2, but of type 3
        "log page: Inappropriate ioctl for device",  # nvme-cli 2.3 on what is no NVMe controller
        "log page: Input/output error",
        "/dev/nvme7: No such file or directory",
        "/dev/nvme7: Permission denied",
    ],
)
def test_any_other_refusal_is_a_failure_with_its_words(tools, refusal):
    tools.nvme({}, refusal)
    page, record = nvme_cli.log_page("/dev/nvme7", 0xC0)
    assert page is None and refusal in record["why"]


@pytest.mark.parametrize("came", [b"", PAGE[:511], PAGE + b"\0"])
def test_a_page_of_another_length_is_a_failure(tools, came):
    tools.nvme({"c0": came})
    page, record = nvme_cli.log_page("/dev/nvme7", 0xC0)
    assert page is None and record["why"] == f"{len(came)} bytes came, 512 were asked for"


def test_a_hang_and_a_missing_program_are_failures(tools, monkeypatch):
    tools.put("nvme", "sleep 300")
    page, record = nvme_cli.log_page("/dev/nvme7", 0xC0, timeout_s=0.3)
    assert page is None and record["exit_code"] is None and "killed" in record["why"]
    (tools.folder / "nvme").unlink()
    monkeypatch.setenv("PATH", str(tools.folder))
    page, record = nvme_cli.log_page("/dev/nvme7", 0xC0)
    assert page is None and record["exit_code"] is None and record["why"] == "the program nvme was not found"


def test_that_identify_is_refused_is_always_a_failure(tools):
    tools.nvme({})
    page, record = nvme_cli.identify("/dev/nvme7")
    assert page is None and NO_PAGE_2_3 in record["why"]


def test_identify_structures(tools):
    tools.nvme({"id-ctrl": identity(), "id-ns": bytes(4096), "id-uuid": bytes(4096)})
    assert nvme_cli.identify("/dev/nvme7")[0] == identity()
    assert nvme_cli.identify_namespace("/dev/nvme7", 3)[0] == nvme_cli.identify_uuids("/dev/nvme7")[0] == bytes(4096)
    assert tools.calls() == [
        "nvme id-ctrl /dev/nvme7 --raw-binary",
        "nvme id-ns /dev/nvme7 --namespace-id=3 --raw-binary",
        "nvme id-uuid /dev/nvme7 --raw-binary",
    ]


def test_capabilities():
    """By hand: CTRATT 8_0210h has bits 19, 9 and 4; LPA 2Eh has bits 5, 3, 2, 1."""
    has = nvme_cli.capabilities(identity(vid=0x1344, serial="XY 12", lpa=0x2E, ctratt=0x80210, endgidmax=0x102))
    assert has == {
        "pci_vendor_id": 0x1344,
        "serial": "XY 12",
        "has_log_00h": True,
        "has_uuids": True,
        "has_fdp": True,
        "endurance_groups": 258,
    }
    none = nvme_cli.capabilities(identity(lpa=0xDF, ctratt=0xFFF7FDFF))
    assert not (none["has_log_00h"] or none["has_uuids"] or none["has_fdp"]) and none["endurance_groups"] == 0


def test_endurance_group_of_a_namespace():
    page = bytearray(4096)
    page[102:104] = b"\x03\x01"
    assert nvme_cli.endurance_group(page) == 0x103


def test_index_of_ocps_uuid():
    uuids = bytearray(4096)
    assert nvme_cli.ocp_uuid_index(bytes(uuids)) is None
    uuids[32 + 16 : 64] = b"V" * 16  # the vendor's own, index 1
    assert nvme_cli.ocp_uuid_index(bytes(uuids)) is None
    uuids[64 + 16 : 96] = nvme_cli.OCP_UUID
    assert nvme_cli.ocp_uuid_index(bytes(uuids)) == 2
    uuids[32 + 16 : 64] = bytes(16)  # a zero UUID ends the list
    assert nvme_cli.ocp_uuid_index(bytes(uuids)) is None


@settings(max_examples=100, deadline=None)
@given(st.sets(st.integers(0, 255)), st.integers(0, 2**31 - 1))
def test_supported_pages(lids, other_bits):
    page = b"".join((other_bits << 1 | (lid in lids)).to_bytes(4, "little") for lid in range(256))
    assert nvme_cli.supported(page) == lids


@settings(max_examples=100, deadline=None)
@given(st.binary(min_size=1, max_size=600))
def test_no_identify_structure_is_too_strange(some):
    page = (some * 4096)[:4096]
    nvme_cli.capabilities(page)
    assert nvme_cli.ocp_uuid_index(page) in (None, *range(1, 128))


def test_real_nvme_cli_on_what_is_no_controller():
    """nvme-cli 2.3: "log page: Inappropriate ioctl for device", status 1. Also shows that it knows all options."""
    if not shutil.which("nvme"):
        pytest.skip("nvme-cli is not installed")
    page, record = nvme_cli.log_page("/dev/null", 9, lsp=0, lsi=1, nsid=1, uuid_index=0, timeout_s=90)
    assert page is None and record["exit_code"] == 1 and "ioctl" in record["why"]
    for ask in (nvme_cli.identify, nvme_cli.identify_uuids):
        page, record = ask("/dev/null", timeout_s=90)
        assert page is None and record["why"]
