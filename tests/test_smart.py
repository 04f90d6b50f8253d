"""SMART pages and documents: against pages laid out by hand, real smartctl output, and a drive that answers badly."""

import json
import os
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdrig import smart
from ssdrig.errors import DriveError


def page(fields: dict) -> bytes:
    """512 bytes with the little-endian integers {offset: (bytes, value)}."""
    out = bytearray(512)
    for at, (size, value) in fields.items():
        out[at : at + size] = value.to_bytes(size, "little")
    return bytes(out)


PAGE_02H = page({
    0: (1, 4), 1: (2, 313), 3: (1, 97), 4: (1, 10), 5: (1, 101), 32: (16, 15_794_760), 48: (16, 2**70), 64: (16, 97), 80: (16, 98),
    96: (16, 463), 112: (16, 12), 128: (16, 4321), 144: (16, 5), 160: (16, 6), 176: (16, 7), 192: (4, 8), 196: (4, 9),
    200: (2, 314), 204: (2, 260),
})  # fmt: skip
PAGE_C0H = page({
    0: (16, 3 * 2**65), 16: (16, 17), 32: (6, 2**40), 38: (2, 99), 56: (8, 3), 88: (4, 321), 92: (4, 123), 96: (1, 2), 112: (4, 4),
    120: (1, 77), 128: (2, 100), 136: (8, 55), 160: (16, 1), 176: (16, 10**15), 224: (8, 222), 494: (2, 3),
    496: (16, int.from_bytes(smart.C0_GUID, "little")),
})  # fmt: skip
PAGE_09H = page({3: (1, 100), 5: (1, 2), 48: (16, 40), 64: (16, 50), 80: (16, 120), 128: (16, 1)})


def document(**more) -> dict:
    return {"n": 3, "reason": "poll", "t_start_ns": 1_000, "t_end_ns": 3_000, "simulated": True, "smartctl": {}, "log_02h": PAGE_02H.hex(),
            "log_c0h": PAGE_C0H.hex(), "log_09h": PAGE_09H.hex()} | more  # fmt: skip


def test_02h():
    got = smart.decode_02h(PAGE_02H)
    assert got["temperature_K"] == 313 and got["temp_C"] == 40 and got["temp_sensors_C"] == [41, -13]
    assert got["host_bytes_read"] == 15_794_760 * 512_000 and got["host_bytes_written"] == 2**70 * 512_000
    assert (got["critical_warning"], got["spare_percent"], got["spare_threshold_percent"], got["percentage_used"]) == (4, 97, 10, 101)
    assert (got["host_reads"], got["host_writes"], got["controller_busy_min"], got["power_cycles"]) == (97, 98, 463, 12)
    assert (got["power_on_hours"], got["unsafe_shutdowns"], got["media_errors"], got["error_log_entries"]) == (4321, 5, 6, 7)
    assert (got["warning_temp_min"], got["critical_temp_min"]) == (8, 9)


def test_temperature_that_is_not_reported():
    assert smart.decode_02h(bytes(512))["temp_C"] is None


def test_c0h():
    got = smart.decode_c0h(PAGE_C0H)
    assert got["nand_bytes_written"] == 3 * 2**65 and got["nand_bytes_read"] == 17
    assert (got["bad_user_blocks"], got["bad_user_blocks_normalised"], got["uncorrectable_reads"]) == (2**40, 99, 3)
    assert (got["erases_max"], got["erases_min"], got["throttle_events"], got["incomplete_shutdowns"]) == (321, 123, 2, 4)
    assert (got["free_blocks_percent"], got["capacitor_health_percent"], got["unaligned_io"], got["plp_starts"]) == (77, 100, 55, 1)
    assert got["endurance_estimate"] == 10**15 and "erases_mean" not in got
    assert smart.decode_c0h(PAGE_C0H[:494] + b"\x05\x00" + PAGE_C0H[496:])["erases_mean"] == 222


def test_c0h_of_another_maker_is_refused():
    with pytest.raises(DriveError, match="GUID"):
        smart.decode_c0h(PAGE_C0H[:511] + b"\0")
    with pytest.raises(DriveError, match="GUID"):
        smart.decode_c0h(PAGE_C0H[:496] + smart.C0_GUID[::-1])


def test_09h():
    got = smart.decode_09h(PAGE_09H)
    assert (got["host_bytes_read"], got["host_bytes_written"], got["nand_bytes_written"]) == (40 * 10**9, 50 * 10**9, 120 * 10**9)
    assert (got["spare_percent"], got["percentage_used"], got["media_errors"]) == (100, 2, 1)


@pytest.mark.parametrize("decode", [smart.decode_02h, smart.decode_c0h, smart.decode_09h])
@pytest.mark.parametrize("size", [0, 511, 513, 4096])
def test_length(decode, size):
    with pytest.raises(DriveError, match=f"{size}"):
        decode(bytes(size))


@given(st.binary(min_size=512, max_size=512))
def test_any_page_decodes(data):
    got = smart.decode_02h(data)
    assert got["data_units_written"] == sum(b << 8 * i for i, b in enumerate(data[48:64]))
    smart.decode_09h(data)
    assert smart.decode_c0h(data[:496] + smart.C0_GUID)["nand_bytes_written"] == sum(b << 8 * i for i, b in enumerate(data[:16]))


def test_fields_do_not_overlap():
    for fields in (smart.FIELDS_02H, smart.FIELDS_C0H | smart.FIELDS_C0H_V5, smart.FIELDS_09H):
        spans = sorted(fields.values())
        assert all(a + size <= b for (a, size), (b, _) in zip(spans, spans[1:], strict=False))
        assert spans[-1][0] + spans[-1][1] <= 512


def test_snapshot_from_pages():
    assert smart.snapshot(document()) == {
        "t_ns": 2_000, "t_start_ns": 1_000, "t_end_ns": 3_000, "reason": "poll", "simulated": True,
        "host_bytes_written": 2**70 * 512_000, "host_bytes_read": 15_794_760 * 512_000, "host_unit_bytes": 512_000,
        "nand_bytes_written": 3 * 2**65, "nand_unit_bytes": 1, "nand_source": "c0h", "percentage_used": 101, "spare_percent": 97,
        "temp_C": 40, "power_on_hours": 4321, "power_cycles": 12, "unsafe_shutdowns": 5, "media_errors": 6,
    }  # fmt: skip


def test_snapshot_takes_the_best_nand_counter():
    got = smart.snapshot(document(log_c0h=None))
    assert (got["nand_bytes_written"], got["nand_unit_bytes"], got["nand_source"]) == (120 * 10**9, 10**9, "09h")
    got = smart.snapshot(document(log_c0h=bytes(512).hex()))  # a layout that is not OCP's
    assert got["nand_source"] == "09h"
    got = smart.snapshot(document(log_c0h=None, log_09h=None))
    assert (got["nand_bytes_written"], got["nand_unit_bytes"], got["nand_source"]) == (None, None, None)


def test_snapshot_of_a_drive_that_says_nothing():
    got = smart.snapshot({"smartctl": {"ata_smart_attributes": {"table": []}}})
    assert got["host_bytes_written"] is None and got["host_unit_bytes"] is None and got["t_ns"] is None and got["simulated"] is False


def test_integers_past_2_53_come_from_their_strings():
    log = {"data_units_written": 2**63, "data_units_written_s": str(2**70 + 1), "percentage_used": 3}
    got = smart.snapshot({"smartctl": {"nvme_smart_health_information_log": log}})
    assert got["host_bytes_written"] == (2**70 + 1) * 512_000 and got["percentage_used"] == 3 and got["temp_C"] is None


def samples() -> list[Path]:
    folder = os.environ.get("SSDRIG_SAMPLES")
    return sorted(Path(folder).rglob("*.json")) if folder else []


@pytest.mark.skipif(not samples(), reason="SSDRIG_SAMPLES names no folder with smartctl outputs of real drives")
def test_real_smartctl_outputs():
    """What smartctl itself says of the drive in other places must agree."""
    nvme = 0
    for path in samples():
        smartctl = json.loads(path.read_text())
        got = smart.snapshot({"smartctl": smartctl})
        log = smartctl.get("nvme_smart_health_information_log")
        if log is None:
            assert got["host_bytes_written"] is None
            continue
        nvme += 1
        assert got["host_bytes_written"] == log["data_units_written"] * 512_000 > 0, path.name
        assert got["host_bytes_read"] == log["data_units_read"] * 512_000
        assert got["power_on_hours"] == smartctl["power_on_time"]["hours"] and got["power_cycles"] == smartctl["power_cycle_count"]
        assert got["temp_C"] == smartctl["temperature"]["current"] and 0 <= got["spare_percent"] <= 100
        assert got["nand_bytes_written"] is None and got["nand_source"] is None
    assert nvme > 0


def test_a_recorded_smartctl_output():
    """smartctl 7.3 of a 512 GB Toshiba KXG60ZNV512G; a public sample, serial number left out."""
    log = {"available_spare": 100, "available_spare_threshold": 10, "controller_busy_time": 463, "critical_comp_time": 0, "critical_warning": 0,
           "data_units_read": 15794760, "data_units_written": 3861802, "host_reads": 97929810, "host_writes": 99025670, "media_errors": 0,
           "num_err_log_entries": 0, "percentage_used": 1, "power_cycles": 30, "power_on_hours": 12173, "temperature": 37,
           "temperature_sensors": [37], "unsafe_shutdowns": 15, "warning_temp_time": 0}  # fmt: skip
    got = smart.snapshot({"smartctl": {"nvme_smart_health_information_log": log}})
    assert got["host_bytes_written"] == 1_977_242_624_000 and got["host_bytes_read"] == 8_086_917_120_000
    assert (got["temp_C"], got["power_cycles"], got["spare_percent"], got["power_on_hours"]) == (37, 30, 100, 12173)
    assert (got["percentage_used"], got["unsafe_shutdowns"], got["media_errors"], got["nand_bytes_written"]) == (1, 15, 0, None)


# polling


class Drive(threading.Thread):
    """Answers an admin socket with `answer(request) -> bytes`; keeps what it was asked."""

    def __init__(self, path, answer):
        super().__init__(daemon=True)
        self.asked, self.answer = [], answer
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        self.socket.listen()

    def run(self):
        while True:
            try:
                link, _ = self.socket.accept()
            except OSError:
                return
            with link:
                self.asked.append(json.loads(link.makefile().readline()))
                try:
                    link.sendall(self.answer(self.asked[-1]))
                except OSError:
                    pass

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.join(5)


PAGES = {0x02: PAGE_02H, 0xC0: PAGE_C0H, 0x09: PAGE_09H}


def good(request: dict) -> bytes:
    if request["op"] == "log":
        return json.dumps({"hex": PAGES[request["lid"]].hex()}).encode() + b"\n"
    return b'{"model_name": "SIMULATED", "smartctl": {"exit_status": 0}}\n'


def test_poll_makes_the_document(tmp_path):
    with Drive(tmp_path / "admin", good) as drive:
        got = smart.poll_virtual(tmp_path / "admin")
    assert drive.asked == [{"op": "log", "lid": 2}, {"op": "log", "lid": 192}, {"op": "log", "lid": 9}, {"op": "smartctl"}]
    assert set(got) == {"t_start_ns", "t_end_ns", "simulated", "smartctl", "log_02h", "log_c0h", "log_09h"}
    assert got["smartctl"]["model_name"] == "SIMULATED" and got["simulated"] is True
    assert 0 < got["t_start_ns"] < got["t_end_ns"]
    assert smart.snapshot(json.loads(json.dumps(got)))["nand_bytes_written"] == 3 * 2**65


def test_a_drive_without_c0h(tmp_path):
    def answer(request):
        return b'{"error": "no log page 192; there are [2]"}\n' if request.get("lid") in (0xC0, 0x09) else good(request)

    with Drive(tmp_path / "admin", answer):
        got = smart.poll_virtual(tmp_path / "admin")
    assert got["log_c0h"] is None and got["log_09h"] is None and got["log_02h"] == PAGE_02H.hex()


@pytest.mark.parametrize("lid", [0x02, 0xC0, 0x09])
def test_a_page_that_cannot_be_made_is_not_a_page_that_is_missing(tmp_path, lid):
    def answer(request):
        return b'{"error": "KeyError"}\n' if request.get("lid") == lid else good(request)

    with Drive(tmp_path / "admin", answer), pytest.raises(DriveError, match="KeyError"):
        smart.poll_virtual(tmp_path / "admin")


@pytest.mark.parametrize("answer", [b"", b'{"hex": "00', b"nonsense\n", b"[1]\n", b"{}\n", b'{"hex": "00"}\n', b'{"hex": 7}\n', b'{"error": "the drive has no power"}\n'])
def test_a_drive_that_answers_badly(tmp_path, answer):
    with Drive(tmp_path / "admin", lambda request: answer), pytest.raises(DriveError, match="admin|no power|bytes as hex"):
        smart.poll_virtual(tmp_path / "admin")


def test_a_drive_that_does_not_answer(tmp_path):
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "admin"))
        silent.listen()
        with pytest.raises(DriveError, match="(?i)time"):
            smart.poll_virtual(tmp_path / "admin", timeout_s=0.2)
    with pytest.raises(DriveError):
        smart.poll_virtual(tmp_path / "none")


def test_ask(tmp_path):
    with Drive(tmp_path / "admin", lambda request: b'{"model": "x"}\n'):
        assert smart.ask(tmp_path / "admin", {"op": "identify"}) == {"model": "x"}
    with Drive(tmp_path / "admin2", lambda request: b'{"error": "unknown op"}\n'), pytest.raises(DriveError, match="unknown op"):
        smart.ask(tmp_path / "admin2", {"op": "x"})
