"""Calibration: units from counts, worked by hand and for any unit, offset and write amplification; and once with a real
fio on a real device."""

import argparse
import contextlib
import json
import os
import subprocess
import sys

import pytest
from drives import a_drive
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_device import loop_device
from purging import ByName

from ssdrig.base.errors import DriveError, JournalError, UsageError
from ssdrig.base.progress import Progress
from ssdrig.commands import units as count_units
from ssdrig.drive import guard, inventory
from ssdrig.drive.smart import units as units_file

GIB, MIB = 1 << 30, 1 << 20
N = 32 * GIB


def document(counters: dict[int, int], known=False, **pages) -> dict:
    table = [
        {"id": number, "name": f"Attribute_{number}", "raw": {"value": value, "string": str(value)}}
        for number, value in counters.items()
    ]
    return {"smartctl": {"in_smartctl_database": known, "ata_smart_attributes": {"table": table}}, **pages}


def units(before, after, written=N):
    return {f["key"]: f for f in count_units.find_units(before, after, written)}


def counted(number: int, counts: int, written=N, start=1000) -> dict:
    return units(document({number: start}), document({number: start + counts}), written)[f"ata:{number}"]


# ---- worked by hand


@pytest.mark.parametrize(
    ("number", "counts", "unit"),
    [
        (241, 32 * GIB // 512, 512),  # total LBAs written, as drives with a known unit have it
        (241, 1024, 32 * MIB),  # 32 GiB are 1024 times 32 MiB
        (249, 1110, 32 * MIB),  # NAND at a write amplification of 1.084
        (241, 32, GIB),
        (241, 34, 10**9),  # 34.36 GB
        (249, 36000, MIB),
        (246, 8 * MIB, 4096),
        (247, 2 * MIB, 16384),
        (249, 520, 64 * MIB),
        (249, 256, 128 * MIB),
    ],
)
def test_units_by_hand(number, counts, unit):
    units_ = counted(number, counts)
    assert (units_["unit_bytes"], units_["candidates"], units_["more_bytes"]) == (unit, [unit], None)


def test_a_known_good_drive_in_lbas_calibrates_to_512():
    """As a Samsung 850 shows its attribute 241: the raw value is sectors of 512 bytes, exactly."""
    before, after = (
        document({241: 58_202_114_331, 9: 20_000}, known=True),
        document({241: 58_202_114_331 + N // 512, 9: 20_001}, known=True),
    )
    units_ = count_units.find_units(before, after, N)
    assert [(f["key"], f["unit_bytes"], f["in_database"], f["name"]) for f in units_] == [
        ("ata:241", 512, True, "Attribute_241")
    ]


def test_one_gigabyte_or_one_gibibyte_of_nand_cannot_be_told():
    unit = counted(233, 34)
    assert unit["unit_bytes"] is None and unit["candidates"] == [10**9, GIB] and unit["more_bytes"] is None
    assert "1 GB or 1 GiB" in unit["words"] and "however much" in unit["words"]


def test_of_host_writes_they_can_be_told_after_30_GB():
    unit = counted(241, 10, 10 * 10**9)
    assert unit["unit_bytes"] is None and unit["candidates"] == [10**9, GIB]
    assert (
        unit["more_bytes"]
        == count_units.bytes_to_tell(10**9, GIB, 1.0) - 10 * 10**9
        == pytest.approx(19.12e9, rel=1e-3)
    )


def test_too_few_counts_say_how_much_more():
    unit = counted(241, 4, 4 * GIB)
    assert unit["unit_bytes"] is None and "too few" in unit["words"]
    assert unit["more_bytes"] == 2 * GIB  # six counts of the largest unit that fits
    assert counted(241, 1, GIB)["unit_bytes"] is None


@pytest.mark.parametrize("counts", [100, 3000, 1200])  # 1200 would be 32 MiB at a write amplification of 1.17
def test_a_counter_of_something_else_gets_no_unit(counts):
    unit = counted(249, counts)
    assert unit["unit_bytes"] is None and unit["candidates"] == [] and "not a known unit" in unit["words"]


def test_host_writes_have_no_write_amplification():
    assert counted(249, 1100)["unit_bytes"] == 32 * MIB
    assert counted(241, 1100)["unit_bytes"] is None


def test_what_went_back_stood_still_or_is_no_write_counter():
    units_ = units(
        document({241: 5000, 233: 7, 194: 30, 9: 100, 242: 0}), document({241: 10, 233: 7, 194: 34, 9: 101, 242: 1024})
    )
    assert (
        set(units_) == {"ata:241"}
        and units_["ata:241"]["unit_bytes"] is None
        and "went back" in units_["ata:241"]["words"]
    )


def test_pages_of_nvme_drives_are_no_counters_without_a_unit():
    """Whether a word that moved by what was written counts the host's bytes or the NAND's, no sequential write
    tells."""
    before, after = bytes(512), bytes(40) + (1024).to_bytes(8, "little") + bytes(464)
    for name in ("log_02h", "log_c0h", "log_cah"):
        assert count_units.raw_counters({name: after.hex()}) == {} == units({name: before.hex()}, {name: after.hex()})


# ---- for anything


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(count_units.UNITS),
    st.floats(1.0, 1.1),
    st.integers(0, 10**15),
    st.integers(1, 256 * 1024),
    st.booleans(),
)
def test_the_true_unit_always_fits_and_no_other_is_ever_said(unit, wa, start, written_mib, is_host):
    written = written_mib * MIB
    nand = written if is_host else int(written * wa)
    counts = (start + nand) // unit - start // unit
    number = 241 if is_host else 249
    fitted = units(document({number: start // unit}), document({number: start // unit + counts}), written).get(
        f"ata:{number}"
    )
    if counts == 0:
        assert fitted is None
        return
    assert unit in fitted["candidates"]
    assert fitted["unit_bytes"] in (None, unit)
    if counts < count_units.FEWEST_COUNTS:
        assert fitted["unit_bytes"] is None and fitted["more_bytes"] > 0


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(count_units.UNITS), st.integers(0, 10**12), st.integers(1, 64 * 1024))
def test_the_bytes_that_are_asked_for_suffice(unit, start, written_mib):
    """Host counter: after writing more_bytes more there are enough counts, and after at most one more round the unit is
    known."""
    written = written_mib * MIB
    for _ in range(3):
        counts = (start + written) // unit - start // unit
        if not counts:
            return  # it did not move: nothing can be said
        fitted = counted(241, counts, written)
        if fitted["unit_bytes"]:
            break
        written += fitted["more_bytes"]
    assert fitted["unit_bytes"] == unit


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "name", "raw", "value", "table", "smartctl", "log_cah", "x"]), inner, max_size=4
        )
    ),
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(JSON, JSON, JSON, st.integers(1, 10**13))
def test_odd_documents_give_no_unit_and_no_crash(table, rest, page, written):
    odd = {"smartctl": {"ata_smart_attributes": {"table": table}, "in_smartctl_database": rest}, "log_cah": page}
    for before, after in (
        (odd, document({241: 5})),
        (document({241: 5}), odd),
        ({"smartctl": rest}, {"smartctl": table}),
        (odd, odd),
    ):
        assert count_units.find_units(before, after, written) == []


# ---- what is kept


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data/ssdrig/units.json"


def test_units_are_kept_by_model_and_firmware(home):
    assert units_file.units_for("M", "F1") == {}
    stored = list(units(document({241: 0, 233: 0, 249: 0}), document({241: 1024, 233: 34, 249: 36000})).values())
    units_file.save_units("M", "F1", "S1", stored, N)
    assert units_file.units_for("M", "F1") == {"ata:241": 32 * MIB, "ata:249": MIB}  # and not 233, which two units fit
    assert units_file.units_for("M", "F2") == {} and units_file.units_for("M2", "F1") == {}
    units_file.save_units("M", "F2", "S2", list(units(document({241: 0}), document({241: 32})).values()), N)
    units_file.save_units("M", "F1", "S3", list(units(document({241: 0}), document({241: 32})).values()), N)
    assert units_file.units_for("M", "F1") == {"ata:241": GIB, "ata:249": MIB} and units_file.units_for("M", "F2") == {
        "ata:241": GIB
    }
    rows = json.loads(home.read_text())["units"]
    assert (
        len(rows) == 3
        and {"serial": "S3", "written_bytes": N, "counts": 32}.items() <= rows[-1].items()
        and rows[-1]["utc"].endswith("Z")
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"units": 3}',
        '{"units": [{"model": "M"}]}',
        '{"units": [{"model":"M","firmware":"F","key":"ata:241","unit_bytes":0}]}',
    ],
)
def test_a_damaged_file_is_said_and_not_taken_for_no_units(home, text):
    home.parent.mkdir(parents=True)
    home.write_text(text)
    with pytest.raises(JournalError, match="units.json"):
        units_file.units_for("M", "F")
    with pytest.raises(JournalError):
        units_file.save_units("M", "F", "S", [], N)
    assert home.read_text() == text


def test_a_poll_does_not_wait_for_numpy():
    code = (
        "import sys; from ssdrig.commands import units as units_command; from ssdrig.drive import purge;"
        " from ssdrig.drive.smart import units; units.units_for('M', 'F');"
        " sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# ---- the whole, with real fio, a real device, and a smartctl that counts what the kernel wrote

SMARTCTL = """#!{python} -SE
# Prints as smartctl 7.3 does (--json=cv), for a drive that is not in its database. 241: what the kernel has written, in
# 1 MiB; 249: 1.05 times that, in 64 KiB, which is no unit that drives are known to use; 233 moves by itself.
import json, sys
sectors = int(open("/sys/block/{name}/stat").read().split()[6])
polls = open("{folder}/polls", "a+"); polls.write("x"); polls.seek(0); n = len(polls.read())
rows = {{9: 1000, 241: 7 + (sectors * 512 >> 20), 249: sectors * 512 * 21 // 20 >> 16, 233: n}}
name = lambda i: "Power_On_Hours" if i == 9 else "Unknown_Attribute"
table = [{{"id": i, "name": name(i), "raw": {{"value": v, "string": str(v)}}}} for i, v in rows.items()]
said = {{"smartctl": {{"version": [7, 3], "exit_status": 0}}, "in_smartctl_database": False}}
print(json.dumps({{**said, "ata_smart_attributes": {{"table": table}}}}))
"""


@pytest.fixture
def drive(tmp_path, monkeypatch):
    """A loop device over 96 MiB."""
    backing = tmp_path / "disk.img"
    backing.touch()
    os.truncate(backing, 96 * MIB)
    with loop_device(backing) as node:
        name = os.path.basename(node)
        smartctl = tmp_path / "bin" / "smartctl"
        smartctl.parent.mkdir()
        smartctl.write_text(SMARTCTL.format(python=sys.executable, name=name, folder=tmp_path))
        smartctl.chmod(0o755)
        monkeypatch.setenv("PATH", f"{smartctl.parent}:{os.environ['PATH']}")
        yield a_drive(
            name=name,
            node=node,
            by_id=None,
            model="UNKNOWN SSD",
            serial="S1",
            firmware="F1",
            capacity_bytes=96 * MIB,
            logical_block_bytes=512,
            interface="other",
            controller=None,
            nsid=None,
            smartctl_type="auto",
        )


def test_calibration_of_a_real_device(drive, home):
    result = count_units.calibrate(ByName(drive), 64 * MIB, "discard", 0.0, Progress(quiet=True))
    assert result["purge"]["method"] == "discard" and result["purge"]["ok"] and result["settled"]
    by_key = {f["key"]: f for f in result["units"]}
    assert set(by_key) == {"ata:241", "ata:249", "ata:233"}
    assert (by_key["ata:241"]["counts"], by_key["ata:241"]["unit_bytes"]) == (64, MIB)
    assert by_key["ata:249"]["unit_bytes"] is None and by_key["ata:249"]["candidates"] == []
    assert by_key["ata:233"]["unit_bytes"] is None and "too few" in by_key["ata:233"]["words"]
    units_file.save_units(drive.model, drive.firmware, drive.serial, result["units"], 64 * MIB)
    assert units_file.units_for("UNKNOWN SSD", "F1") == {"ata:241": MIB}


@pytest.mark.parametrize("size", [MIB + 512, 0, 97 * MIB])
def test_sizes_that_do_not_fit(drive, size):
    with pytest.raises(UsageError, match="96 MiB"):
        count_units.calibrate(ByName(drive), size, None, 0.0, Progress(quiet=True))


def test_a_drive_that_counts_nothing_is_not_written(drive, tmp_path):
    (tmp_path / "bin/smartctl").write_text('#!/bin/sh\necho \'{"smartctl": {"version": [7, 3], "exit_status": 0}}\'\n')
    before = open(f"/sys/block/{drive.name}/stat").read().split()[6]
    with pytest.raises(DriveError, match="attributes"):
        count_units.calibrate(ByName(drive), 64 * MIB, None, 0.0, Progress(quiet=True))
    assert open(f"/sys/block/{drive.name}/stat").read().split()[6] == before


# ---- the command


@pytest.mark.parametrize(("unit", "code"), [(MIB, 0), (None, DriveError.exit_code)])
def test_the_command_says_what_it_costs_and_keeps_what_it_found(home, tmp_path, monkeypatch, capsys, unit, code):
    (tmp_path / "ssdrig").mkdir()
    (tmp_path / "ssdrig/warranty.toml").write_text('[[drive]]\nmodel = "UNKNOWN SSD"\ntbw_TB = 1\nsource = "a test"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    drive = a_drive(model="UNKNOWN SSD", serial="S1", firmware="F1", by_id=None, node="/dev/nothing")
    by_key = {
        "key": "ata:241",
        "name": "Host_Writes",
        "counts": 7,
        "unit_bytes": unit,
        "more_bytes": None,
        "words": "moved by 7",
    }
    asked = []
    monkeypatch.setattr(inventory, "find", lambda word: drive)
    monkeypatch.setattr(guard, "hold", lambda drive, serial: contextlib.nullcontext(serial))
    monkeypatch.setattr(
        count_units, "calibrate", lambda *words: asked.append(words) or {"units": [by_key], "settled": True}
    )
    parser = argparse.ArgumentParser()
    count_units.add_arguments(parser)
    assert (
        count_units.command(
            parser.parse_args(["S1", "--write", "10GB", "--destroy-data", "S1", "--purge", "none", "--json"])
        )
        == code
    )
    out, err = capsys.readouterr()
    assert asked == [("S1", 10**10, None, 60)] and "writes 10.0 GB, 1 % of its rated 1.00 TB" in err
    assert units_file.units_for("UNKNOWN SSD", "F1") == ({"ata:241": MIB} if unit else {})
    assert json.loads(out)["kept_in"] == (str(home) if unit else None)
