"""The health of a drive as one verdict with its reasons."""

import pytest
from ata_documents import drive, snap

from ssdrig.drive.smart import counters, health

GB = 10**9


def kinds(got: dict) -> set:
    return {(reason["kind"], reason["state"]) for reason in got["health_reasons"]}


def nvme(log=(), **more) -> dict:
    base = {"critical_warning": 0, "temperature": 40, "available_spare": 100, "available_spare_threshold": 10}
    base |= {"percentage_used": 1, "data_units_written": 10**6, "power_on_hours": 1000, "media_errors": 0}
    smartctl = {"device": {"protocol": "NVMe"}, "smart_status": {"passed": True}}
    return counters.snapshot({"smartctl": smartctl | {"nvme_smart_health_information_log": base | dict(log)} | more})


def ata(attributes=(), **more) -> dict:
    document = drive("Crucial/Micron Client SSDs", **({"smart_status": {"passed": True}} | more))
    document["smartctl"]["ata_smart_attributes"]["table"] = [
        {"id": 202, "name": "X", "value": 50, "worst": 50, "thresh": 1, "when_failed": ""} | one for one in attributes
    ]
    return counters.snapshot(document)


def self_test(value, passed=False, kind="standard") -> dict:
    row = {"status": {"value": value, "string": "s", "passed": passed}}
    return {"ata_smart_self_test_log": {kind: {"table": [row]}}}


def test_drive_without_a_fault_is_ok():
    for got in (nvme(), ata([{}])):
        assert (got["health"], got["health_reasons"]) == ("ok", [])
    assert snap("Samsung based SSDs")["health"] == "unknown"


@pytest.mark.parametrize(
    "got, state, reason",
    [
        (ata([{"when_failed": "now"}]), "failing", "attribute_now"),
        (ata([{"value": 1}]), "failing", "attribute_now"),
        (ata([{"when_failed": "past"}]), "warning", "attribute_past"),
        (ata(smart_status={"passed": False}), "failing", "smart_status"),
        (ata(**self_test(0x70)), "warning", "self_test"),
        (ata(**self_test(0x30, kind="extended")), "warning", "self_test"),
        (ata(ata_smart_error_log={"extended": {"count": 57}}), "warning", "error_log"),
        (ata(smartctl={"exit_status": 16}), "failing", "attribute_now"),
        (ata(smartctl={"exit_status": 32}), "warning", "attribute_past"),
        (ata(smartctl={"exit_status": 64}), "warning", "error_log"),
        (ata(smartctl={"exit_status": 128}), "warning", "self_test"),
        (ata(smartctl={"exit_status": 8}), "failing", "smart_status"),
        (nvme({"critical_warning": 1}), "failing", "spare"),
        (nvme({"critical_warning": 2}), "warning", "temperature"),
        (nvme({"critical_warning": 4}), "failing", "reliability"),
        (nvme({"critical_warning": 8}), "failing", "read_only"),
        (nvme({"critical_warning": 0x40}), "failing", "critical_warning"),
        (nvme({"available_spare": 9}), "failing", "spare"),
        (nvme({"percentage_used": 100}), "warning", "worn_out"),
        (nvme({"media_errors": 1}), "warning", "media_errors"),
        (nvme({"temperature": 84}, nvme_composite_temperature_threshold={"warning": 84}), "warning", "temperature"),
        (nvme({"temperature": 90}, nvme_composite_temperature_threshold={"critical": 85}), "failing", "temperature"),
        (nvme(nvme_self_test_log={"table": [{"self_test_result": {"value": 7}}]}), "warning", "self_test"),
    ],
)
def test_each_fault_is_a_reason(got, state, reason):
    assert got["health"] == state and (reason, state) in kinds(got) and len(got["health_reasons"]) == 1


@pytest.mark.parametrize(
    "got",
    [
        ata(**self_test(0x10)),  # aborted by the host
        ata(**self_test(0, passed=True)),
        nvme(smartctl={"exit_status": 64}),  # NVMe logs commands that it does not know
        nvme(nvme_self_test_log={"table": [{"self_test_result": {"value": 1}}]}),
        nvme({"percentage_used": 99}),
        nvme({"available_spare": 10}),
        ata([{"value": 1, "thresh": 0}]),
    ],
)
def test_what_is_no_fault_is_none(got):
    assert (got["health"], got["health_reasons"]) == ("ok", [])


def log_of(*rows) -> dict:
    """Self-tests of an ATA drive, the newest first: (type, value of the status)."""
    table = [
        {"type": {"value": kind, "string": "s"}, "status": {"value": value, "string": "s", "passed": value == 0}}
        for kind, value in rows
    ]
    return {"ata_smart_self_test_log": {"extended": {"table": table}}}


SHORT, EXTENDED, CAPTIVE = 1, 2, 0x82


@pytest.mark.parametrize(
    "rows, count",
    [
        ([(EXTENDED, 0), (SHORT, 0x79)], 0),  # outdated, as smartctl counts
        ([(SHORT, 0), (CAPTIVE, 0), (EXTENDED, 0x79)], 0),
        ([(SHORT, 0), (EXTENDED, 0x79)], 1),
        ([(SHORT, 0x79), (EXTENDED, 0), (SHORT, 0x79)], 1),
        ([(EXTENDED, 0x10), (SHORT, 0x79)], 1),  # aborted
        ([(EXTENDED, 0xF9), (SHORT, 0x79)], 1),  # under way
        ([(EXTENDED, 0x79), (SHORT, 0x31)], 2),
    ],
)
def test_failed_self_test_counts_until_an_extended_one_succeeds(rows, count):
    got = ata(**log_of(*rows))
    assert [reason["kind"] for reason in got["health_reasons"]] == ["self_test"] * bool(count)
    assert len(health._failed_self_tests(log_of(*rows))) == count
    results = [
        {"self_test_code": {"value": kind & 3}, "self_test_result": {"value": {0x79: 7, 0x31: 5, 0: 0}.get(value, 1)}}
        for kind, value in rows
    ]
    assert len(health._failed_self_tests({"nvme_self_test_log": {"table": results}})) == count


def test_latest_self_test_counts_where_no_log_has_it():
    data = {"ata_smart_data": {"self_test": {"status": {"value": 0x79, "string": "s", "passed": False}}}}
    assert kinds(ata(**data)) == {("self_test", "warning")}
    assert kinds(ata(**data, **log_of((EXTENDED, 0), (SHORT, 0x79)))) == set()
    assert kinds(ata(ata_smart_data={"self_test": {"status": {"value": 0xF9, "passed": False}}})) == set()


def test_failing_status_of_nvme_counts_whatever_its_warnings():
    got = nvme(smart_status={"passed": False})
    assert (got["health"], kinds(got)) == ("failing", {("smart_status", "failing")})


def test_faults_are_in_order_of_severity():
    got = ata([{"when_failed": "now"}], ata_smart_error_log={"summary": {"count": 3}}, **self_test(0x70))
    assert [reason["kind"] for reason in got["health_reasons"]] == ["attribute_now", "self_test", "error_log"]
    assert health.sentence(got["health_reasons"]).count(";") == 2


def test_page_of_all_ones_gives_no_percentage():
    got = nvme(dict.fromkeys(("data_units_written", "power_on_hours"), 2**128 - 1) | {"percentage_used": 255})
    assert got["percentage_used"] is None


def test_capacity_is_that_of_the_drive():
    got = nvme(user_capacity={"bytes": 1000 * GB}, nvme_total_capacity=2000 * GB)
    assert (got["capacity_bytes"], got["namespace_bytes"]) == (2000 * GB, 1000 * GB)
    got = nvme(user_capacity={"bytes": 6400 * GB}, nvme_unallocated_capacity=1280 * GB)
    assert got["capacity_bytes"] == 7680 * GB


@pytest.mark.parametrize("nsid, count, of", [(2, 4, 2), (1, 2, 1), (1, 1, None), (-1, 4, None), (2**32 - 1, 4, None)])
def test_log_of_a_namespace_is_not_the_drives(nsid, count, of):
    got = nvme({"nsid": nsid}, nvme_number_of_namespaces=count)
    assert got["namespace"] == of
    host, namespace = got["host_written_bytes"], got["namespace_written_bytes"]
    assert (host, namespace) == ((None, 512_000 * 10**6) if of else (512_000 * 10**6, None))
    assert (got["sources"]["percentage_used"]["source"] == "log 02h") == (of is None)


def test_thermal_counters_of_smartctl_8():
    level = {"transition_count": 3, "total_time": 33}
    log = {f"thermal_mgmt_temperature_{n}_{key}": n * value for n in (1, 2) for key, value in level.items()}
    got = nvme(log)
    names = ("throttle_1_count", "throttle_1_s", "throttle_2_count", "throttle_2_s")
    assert [got[name] for name in names] == [3, 33, 6, 66]


def test_temperature_of_the_environmental_page():
    sas = {"device": {"protocol": "SCSI"}, "rotation_rate": 0, "temperature": {"current": 0}}
    reports = {"temperature_1": {"current": 38, "lifetime_maximum": 61}, "temperature_2": {"current": 36}}
    got = counters.snapshot({"smartctl": sas | {"scsi_environmental_reports": reports}})
    assert (got["temperature_C"], got["temperature_max_C"]) == (38, 61)
    got = counters.snapshot({"smartctl": sas | {"temperature": {"current": 40}, "scsi_environmental_reports": reports}})
    assert (got["temperature_C"], got["temperature_max_C"]) == (40, 61)
