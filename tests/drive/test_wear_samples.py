"""`ssdrig wear` on smartctl outputs of real drives, and on documents with odd fields."""

import copy
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wear_documents import NVME, REQUIRED, no_table_of_the_user, run  # noqa: F401  fixtures

from ssdrig.commands import wear as wear_command
from ssdrig.drive.smart import saved
from ssdrig.drive.wear import screen as wear_screen
from ssdrig.drive.wear import standing

ODD = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=5)
    | st.lists(st.integers(), max_size=2)
    | st.just({})
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([*NVME, *NVME["nvme_smart_health_information_log"]]), ODD), max_size=5))
def test_odd_fields_never_break_it(changes):
    """Whatever a field is: an object with all keys, and a screen."""
    document = copy.deepcopy(NVME)
    for name, value in changes:
        if name in document:
            document[name] = value
        elif isinstance(document.get("nvme_smart_health_information_log"), dict):
            document["nvme_smart_health_information_log"][name] = value
    wrapped = {"smartctl": document}
    snapshot = wear_command.counters.snapshot(wrapped) | {"utc_ns": saved.utc_ns(wrapped)}
    report = standing.report(snapshot, wrapped, wear_command.endurance.Limits(tbw_TB=100, years=5), [], None, 25.0)
    assert all(key in report for key in (*REQUIRED, "limits", "projection", "retention", "wa", "unknown"))
    json.dumps(report, default=str, allow_nan=False)
    assert wear_screen.screen(report, 80, False)


# figures computed by hand from the raw JSON of each file: data units x 512 000 B, LBAs x 512 B
SAMPLES = {
    "INTEL_SSDPE2KX080T8_1.json": dict(
        host_written_bytes=184_919_244 * 512_000,
        host_read_bytes=20_126_802 * 512_000,
        percentage_used=0,
        power_on_hours=12164,
    ),
    "KXG60ZNV512G_TOSHIBA_2.json": dict(
        host_written_bytes=3_861_802 * 512_000, percentage_used=1, power_on_hours=12173
    ),
    "SAMSUNG_MZ7WD240HAFV-00003_21.json": dict(
        host_written_bytes=216_456_537_880 * 512,
        power_on_hours=84619,
        power_cycles=6,
        pe_cycles_mean=1661,
        temperature_C=27,
    ),
    "SAMSUNG_MZQLB1T9HAJR-00007_19.json": dict(
        host_written_bytes=44_965_392 * 512_000, percentage_used=0, power_on_hours=20701
    ),
    "SAMSUNG_MZVL21T0HCLR-00B00_23.json": dict(
        host_written_bytes=113_662_783 * 512_000, percentage_used=16, power_on_hours=10423, power_cycles=6
    ),
    "WDC_WD20EFRX-68EUZN0_17.json": dict(
        protocol="ATA",
        power_on_hours=47657,
        power_cycles=3,
        temperature_C=34,
        percentage_used=None,
        nand_written_bytes=None,
    ),
    "nvme-null-CT250P2SSD8-nvme0.json": dict(
        host_written_bytes=1_002_900 * 512_000,
        host_read_bytes=4_932_757 * 512_000,
        power_cycles=8,
        unsafe_shutdowns=5,
        temperature_C=26,
    ),
    "nvme-null-INTEL_SSDPEDMD400G4-nvme0.json": dict(
        host_written_bytes=655_012_839 * 512_000, percentage_used=5, power_on_hours=41951
    ),
    "nvme-null-Micron_7300_MTFDHBE1T6TDG-nvme0.json": dict(
        host_written_bytes=338_104 * 512_000, percentage_used=0, power_on_hours=5100
    ),
    "scrutiny-smart-ata.json": dict(
        model="WDC WD140EDFZ-11A0VA0",
        protocol="ATA",
        power_on_hours=1730,
        power_cycles=9,
        host_written_bytes=None,
        temperature_C=32,
    ),
    "scrutiny-smart-fail.json": dict(model=None, exit_status_bits=[1], host_written_bytes=None, power_on_hours=None),
    "scrutiny-smart-nvme.json": dict(
        model="INTEL SSDPEKNW010T8", host_written_bytes=7_773_431 * 512_000, percentage_used=0, power_on_hours=2401
    ),
    "scrutiny-smart-sat.json": dict(
        model=None, protocol="ATA", host_written_bytes=None, power_cycles=354, temperature_C=29
    ),
    "scrutiny-smart-scsi.json": dict(
        model="SEAGATE ST4000NM0043",
        protocol="SCSI",
        host_written_bytes=86_472_611_000_000,
        host_read_bytes=176_987_332_000_000,
        power_on_hours=43549,
        temperature_C=34,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_samples_of_real_drives(name, capsys):
    folder = Path(os.environ.get("SSDRIG_SAMPLES") or Path(__file__).resolve().parents[3] / "shared/data/smartctl")
    if not (folder / name).is_file():
        pytest.skip(f"no {name}: set SSDRIG_SAMPLES to a folder of smartctl outputs of real drives")
    code, out, _ = run(capsys, "--json", "--smartctl", str(folder / name))
    got = json.loads(out)
    assert code == (4 if name == "scrutiny-smart-fail.json" else 0) and all(
        key in got for key in (*REQUIRED, "exit_status_bits")
    )
    assert {key: got[key] for key in SAMPLES[name]} == SAMPLES[name]
    assert run(capsys, "--smartctl", str(folder / name))[1]
