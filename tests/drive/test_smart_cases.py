"""Small SMART files whose right values are known, which failed once. They are not part of this repository: set
SSDRIG_CASES to their folder."""

import os
from pathlib import Path

import pytest

from ssdrig.base.errors import UsageError
from ssdrig.drive.smart import counters, saved
from ssdrig.drive.smart.smart_answer import has_data

FOLDER = Path(os.environ.get("SSDRIG_CASES") or Path(__file__).resolve().parents[3] / "shared/data/cases/smart")
MIB, GB, GIB = 1 << 20, 10**9, 1 << 30
RIGHT = {
    "01-kioxia-devstat": {"host_written_bytes": 65_536_000_000 * 512, "host_read_bytes": 4_663_000_000 * 512},
    "01-kioxia-A-only": {"host_written_bytes": 1_000_000 * 32 * MIB},
    "05-7450pro-6.4TB-namespace": {"capacity_bytes": 7_681_501_126_656, "namespace_bytes": 6_400_000_000_000},
    "05-op-namespace-980pro": {"capacity_bytes": 2_000_398_934_016},
    "11-850pro": {"pe_cycles_mean": 5800},
    "14-thermal-8": {"throttle_1_count": 17, "throttle_1_s": 420, "throttle_2_count": 3, "throttle_2_s": 33},
    "15-smartd-state": {"model": "KIOXIA KCMYXVUG6T40", "capacity_bytes": 6400 * GB},
    "17-failing-now": {"health": "failing"},
    "18-per-namespace": {"namespace": 2, "host_written_bytes": None, "namespace_written_bytes": 512 * GB},
    "22-sas-env-temp": {"temperature_C": 38, "temperature_max_C": 61},
    "27-intel-unlisted": {"host_written_bytes": 5000 * 32 * MIB, "percentage_used": 12},
    "30-phison-s9": {"host_written_bytes": 2_000_000 * MIB},
    "30-phison-s9-A-only": {"host_written_bytes": 2_000_000 * MIB},
    "31-hynix-tnd": {"host_written_bytes": 3200 * GB, "host_read_bytes": 2700 * GB, "nand_written_bytes": 11_000 * GIB},
    "31-hynix-tnd-young": {"host_written_bytes": 288 * GB, "nand_written_bytes": 300 * GIB},
    "31-hynix-tnf-devstat": {"host_written_bytes": 562_500_000 * 512, "host_read_bytes": 976_562_500 * 512},
    "36-mx500-unlisted": {"host_written_bytes": 25_600 * GB, "nand_program_pages": 1_700_000_000},
    "52-jsonl": {"host_written_bytes": 572_000_000_000 * 512},
    "54-ceph": {"host_written_bytes": 572_000_000_000 * 512},
    "55-sudo-noise": {"host_written_bytes": 572_000_000_000 * 512},
    "61-nvme-smart-log": {"host_written_bytes": 2_000_000 * 512_000, "temperature_C": 40},
}


def file(name: str) -> str:
    path = FOLDER / f"{name}.json"
    if not path.exists():
        pytest.skip(f"no {path.name}: set SSDRIG_CASES to a folder of such files")
    return str(path)


@pytest.mark.parametrize("name", RIGHT)
def test_figures_of_a_file_that_failed_once(name):
    for _, document in saved.read([file(name)]):
        got = counters.snapshot(document)
        assert {key: got[key] for key in RIGHT[name]} == RIGHT[name]


def test_list_of_devices_is_refused():
    with pytest.raises(UsageError):
        saved.read([file("60-scan")])


@pytest.mark.parametrize("status, data", [(0, True), (7, True), (3, True)])
def test_counters_are_an_answer_whatever_the_exit_status(status, data):
    document = {"smartctl": {"exit_status": status}, "power_on_time": {"hours": 29_029}}
    assert has_data(document) == data
    assert has_data({"smartctl": {"exit_status": status}}) == (status == 0)
