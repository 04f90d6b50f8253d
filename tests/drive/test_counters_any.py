"""SMART documents reduced to wear numbers: any document, and pages that are cut off."""

import math

from counter_documents import CAH
from hypothesis import given, settings
from hypothesis import strategies as st
from no_tables import no_table_of_the_user  # noqa: F401  autouse
from pages import PAGE_02H, PAGE_09H, PAGE_22H, PAGE_C0H, page

from ssdrig.drive.smart import counters

numbers = st.one_of(
    st.integers(-3, 300),
    st.integers(2**60, 2**130),
    st.just(10**400),
    st.builds(lambda: -(10**5000)),
    st.floats(),
    st.booleans(),
    st.none(),
)
junk = st.recursive(
    numbers | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "current",
                    "hours",
                    "bytes",
                    "exit_status",
                    "id",
                    "passed",
                    "protocol",
                    "units",
                    "bytes_per_unit",
                    "write",
                    "gigabytes_processed",
                    "data_units_written",
                    "data_units_written_s",
                    "data_units_written_le",
                    "temperature",
                    "power_cycles",
                    "critical_warning",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
TOP = [
    "smartctl",
    "device",
    "model_name",
    "model_family",
    "user_capacity",
    "temperature",
    "power_on_time",
    "power_cycle_count",
    "smart_status",
    "nvme_smart_health_information_log",
    "nvme_pci_vendor",
    "scsi_error_counter_log",
    "scsi_grown_defect_list",
    "endurance_used",
    "host_writes",
]


@settings(max_examples=120, deadline=None)
@given(
    st.dictionaries(st.sampled_from(TOP), junk, max_size=8) | junk,
    st.sampled_from(["NVMe", "ATA", "SCSI", None]),
    st.dictionaries(
        st.sampled_from(
            ["t_start_ns", "t_end_ns", "tools", "units", "drive", "reason", "log_02h", "log_c0h", "log_cah"]
        ),
        junk,
        max_size=4,
    ),
)
def test_any_document(smartctl, protocol, more):
    """Never an exception, always all keys, never a number that is negative or not finite."""
    if protocol and isinstance(smartctl, dict):
        smartctl = {**smartctl, "device": {"protocol": protocol}}
    got = counters.snapshot({"smartctl": smartctl, **more})
    assert tuple(got) == counters.KEYS
    for name, value in got.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and not name.startswith("temperature"):
            assert value >= 0 and (isinstance(value, int) or math.isfinite(value))
    assert all(isinstance(words, str) and len(words) < 400 for words in got["unknown"])


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["log_02h", "log_c0h", "log_09h", "log_22h", "log_cah", "log_d0h"]),
    st.integers(0, 511),
    st.sampled_from([0x8086, 0x1344, 0x15B7]),
)
def test_a_page_that_is_cut_off(name, size, maker):
    """What was cut off is not there, and words say so, except for pages whose content ends before their cut."""
    pages = {
        "log_02h": PAGE_02H,
        "log_c0h": PAGE_C0H,
        "log_09h": PAGE_09H,
        "log_22h": PAGE_22H,
        "log_cah": CAH,
        "log_d0h": page({176: (8, 5 * 10**12)}),
    }
    got = counters.snapshot({"smartctl": {"nvme_pci_vendor": {"id": maker}}, name: pages[name][:size].hex()})
    needed = {"log_22h": 64, "log_cah": 32 if maker == 0x15B7 else 12, "log_d0h": 184 if maker == 0x1344 else 0x68}.get(
        name, 512
    )
    if size < needed:
        assert (
            got["nand_written_bytes"] is None and got["host_written_bytes"] is None and got["percentage_used"] is None
        )
        assert any(words.startswith(("log ", "NAND bytes", "health", "everything")) for words in got["unknown"])
