"""Half-plausible documents: no crash, nothing outside its bounds, no wear of a hard disk. A tenth of `selfcheck
smart-documents`."""

import json
import re

from no_tables import no_table_of_the_user  # noqa: F401  autouse

from selfcheck import smart_documents
from ssdrig.drive.smart import counters
from ssdrig.drive.wear import endurance, standing
from ssdrig.drive.wear import screen as wear_screen


def test_nothing_outside_its_bounds():
    known: dict[str, set] = {}
    for number, (kind, document) in enumerate(smart_documents.documents(1000, seed=7)):
        snapshot = counters.snapshot(document)
        assert smart_documents.faults(kind, snapshot) == [], (number, document)
        known.setdefault(kind, set()).update(name for name in counters.FIGURES if snapshot[name] is not None)
        if number % 10 == 0:
            limits = endurance.Limits(tbw_TB=100, years=5, pe_cycles=3000, drive_class="client")
            report = standing.report(snapshot | {"utc_ns": None}, document, limits, [], None, 25.0)
            json.dumps(report, default=str, allow_nan=False)
            text = wear_screen.screen(report, 80, False)
            assert not re.search(r"\b(nan|inf)\b", text), (number, text)
    # the generator reaches what it is to test
    assert {"host_written_bytes", "nand_written_bytes", "percentage_used", "pe_cycles_mean"} <= known["ata"]
    assert {"host_written_bytes", "percentage_used"} <= known["nvme"] & known["sas"]


def test_the_check_finds_what_is_wrong():
    kind, document = next(smart_documents.documents(1))
    good = counters.snapshot(document)
    for wrong in (
        {"percentage_used": 256},
        {"host_written_bytes": 10**30},
        {"host_written_bytes": 10**12, "nand_written_bytes": 10**15, "nand_written_unit_bytes": 1},
        {"pe_cycles_mean": 100_001},
        {"pe_cycles_mean": 10, "pe_cycles_max": 5},
        {"temperature_C": 300},
        {"warning_temp_min": 10**9},
        {"sources": {"power_cycles": {"source": "", "error": 0}}},
    ):
        assert smart_documents.faults(kind, good | wrong), wrong
    assert smart_documents.faults("hard disk", good | {"hard_disk": True, "percentage_used": 3})
