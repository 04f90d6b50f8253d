"""`watch --metrics`: OpenMetrics text that the official client library parses; what is not known is absent."""

import copy
import json
import math
import os
import signal

import pytest
from pages import page_c0h
from watching import NOVEMBER_NS, ata_document, drives, finish, history, look, start, tools
from wear_documents import DAY, NVME, no_table_of_the_user

from ssdrig.base.errors import JournalError
from ssdrig.commands import watch as watch_command
from ssdrig.drive.smart import counters
from ssdrig.drive.smart.watch_folder import keep
from ssdrig.publish.watch import metrics

parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="no prometheus_client (extra lake-test)")

__all__ = ["drives", "history", "no_table_of_the_user", "tools"]  # fixtures
DRIVE = {"model": "Samsung SSD 980 PRO 1TB", "serial": "S5GXNX0R000001", "node": "/dev/nvme0n1", "interface": "NVMe"}
WHO = {"model": DRIVE["model"], "serial_no": DRIVE["serial"]}


def parsed(text: bytes) -> dict[tuple, float]:
    """(sample, labels) -> value, by the official library."""
    assert text.endswith(b"# EOF\n")
    families = parser.text_string_to_metric_families(text.decode())
    return {(s.name, *sorted(s.labels.items())): s.value for family in families for s in family.samples}


def of(samples: dict, name: str, **labels: str) -> float | None:
    return samples.get((f"ssdrig_{name}", *sorted({**WHO, **labels}.items())))


def document(units: int, percent: int = 1, at_s: int = 0, nand: int | None = None, **more) -> dict:
    """A poll of an NVMe drive that has written so many units of 512 000 B, and so many bytes to its flash."""
    inner = copy.deepcopy(NVME)
    inner["nvme_smart_health_information_log"] |= {"data_units_written": units, "percentage_used": percent, **more}
    document_ = {"utc_ns": NOVEMBER_NS + at_s * 10**9, "drive": DRIVE, "smartctl": inner, "simulated": False}
    page = {} if nand is None else {"log_c0h": page_c0h(nand).hex()}
    return document_ | page | {"t_start_ns": at_s, "t_end_ns": at_s}


def result(record: dict) -> dict:
    return {"utc_ns": record["utc_ns"], "drive": DRIVE, "snapshot": counters.snapshot(record), "record": record}


def written(tmp_path, *rounds: list[dict]) -> dict[tuple, float]:
    writer = metrics.Metrics(tmp_path / "ssd.prom", tmp_path / "watch")
    for results in rounds:
        writer.write(results)
    return parsed((tmp_path / "ssd.prom").read_bytes())


def test_values_are_those_of_the_poll(tmp_path):
    record = document(2_000_000, 7, temperature=41)
    snapshot = counters.snapshot(record)
    metrics = written(tmp_path, [result(record)])
    assert of(metrics, "up") == 1 and of(metrics, "poll_time_seconds") == NOVEMBER_NS / 1e9
    assert of(metrics, "host_written_bytes_total") == 2_000_000 * 512_000 == snapshot["host_written_bytes"]
    assert of(metrics, "temperature_celsius") == 41
    assert of(metrics, "tbw_rated_bytes") == 600e12
    assert of(metrics, "life_used_ratio", limit="tbw") == pytest.approx(1.024e12 / 600e12)
    assert of(metrics, "life_left_ratio", limit="percentage_used") == pytest.approx(0.93)
    assert of(metrics, "power_on_seconds_total") == 3600 * snapshot["power_on_hours"]
    assert of(metrics, "drive_info", device="/dev/nvme0n1", interface="NVMe") == 1


def test_unknown_values_are_absent_and_never_zero(tmp_path):
    metrics = written(tmp_path, [result(document(1000))])
    names = {key[0].removeprefix("ssdrig_") for key in metrics}
    assert not names & {"nand_written_bytes_total", "write_amplification_ratio", "pe_cycles_mean", "life_left_seconds"}
    assert all(math.isfinite(value) for value in metrics.values())


def test_write_amplification_is_of_the_life_and_of_the_watch(tmp_path):
    """Over its life 3, since the first poll 2."""
    (tmp_path / "watch").mkdir()
    first = document(1_000_000, nand=1_000_000 * 512_000 * 4)
    keep(tmp_path / "watch", first)
    last = document(2_000_000, at_s=3 * DAY, nand=2_000_000 * 512_000 * 3)
    metrics = written(tmp_path, [result(last)])
    assert of(metrics, "write_amplification_ratio", period="life") == pytest.approx(3)
    assert of(metrics, "write_amplification_ratio", period="watched") == pytest.approx(2)
    assert 0 < of(metrics, "write_amplification_error_ratio", period="watched") < 0.001
    assert of(metrics, "watched_since_seconds") == NOVEMBER_NS / 1e9
    assert of(metrics, "nand_written_bytes_total") == 3 * of(metrics, "host_written_bytes_total")


def test_rate_of_the_history_gives_the_time_left(tmp_path):
    """1.024 TB a day of 600 TB: 598.976 TB are left after ten days."""
    writer = metrics.Metrics(tmp_path / "ssd.prom", tmp_path / "watch")
    for day in range(11):
        writer.write([result(document(2_000_000 * day, at_s=day * DAY))])
    samples = parsed(writer.path.read_bytes())
    left_s = of(samples, "life_left_seconds", limit="tbw")
    assert left_s == pytest.approx((600 - 10.24) / 1.024 * DAY, rel=0.01)


def test_history_holds_one_reading_a_day(tmp_path):
    writer = metrics.Metrics(tmp_path / "ssd.prom", tmp_path / "watch")
    for hour in range(72):
        writer.write([result(document(1000 + hour, at_s=hour * 3600))])
    (known,) = writer._known.values()
    assert len(known.days) in (3, 4)


def test_drive_that_fails_has_up_0_and_nothing_else(tmp_path):
    gone = {"utc_ns": 1, "drive": DRIVE, "snapshot": None, "failed": "it is no longer there", "record": {}}
    metrics = written(tmp_path, [result(document(1000))], [gone])
    assert [*metrics.values()] == [0] and of(metrics, "up") == 0


def test_drive_that_a_run_holds_keeps_its_reading_with_its_time(tmp_path):
    held = {"utc_ns": 1, "drive": DRIVE, "snapshot": None, "skipped": "a run holds the drive", "record": {}}
    metrics = written(tmp_path, [result(document(1000))], [held])
    assert of(metrics, "host_written_bytes_total") == 512_000_000
    assert of(metrics, "poll_time_seconds") == NOVEMBER_NS / 1e9


def test_twins_that_are_refused_are_one_line(tmp_path):
    twin = {"utc_ns": 1, "drive": DRIVE, "snapshot": None, "failed": "twins", "record": {}}
    assert of(written(tmp_path, [twin, dict(twin)]), "up") == 0


@pytest.mark.parametrize("name", ['a "quoted" \\ back', "line\nbreak", "Ω\udcff", ""])
def test_hostile_names_are_labels(tmp_path, name):
    record = document(1000)
    record["smartctl"]["model_name"] = name
    metrics = written(tmp_path, [result(record)])
    models = {dict(key[1:])["model"] for key in metrics}
    assert models == {name.encode("utf-8", "replace").decode() or DRIVE["model"]}


def test_hard_disk_has_no_life(tmp_path):
    record = document(1000)
    record["smartctl"] = ata_document() | {"rotation_rate": 7200}
    metrics = written(tmp_path, [result(record)])
    assert metrics and not [key for key in metrics if "life" in key[0] or "tbw" in key[0] or "amplification" in key[0]]


def test_file_cannot_be_written(tmp_path):
    writer = metrics.Metrics(tmp_path / "nowhere" / "ssd.prom", tmp_path / "watch")
    with pytest.raises(JournalError):
        writer.write([result(document(1000))])


def test_families_keep_the_rules_of_names():
    for name, family in metrics.FAMILIES.items():
        assert family.unit == "" or name.endswith(f"_{family.unit}")
        assert not name.endswith(("_total", "_info", "_count", "_sum")) and family.help


def test_once_writes_the_file(tools, drives, history, tmp_path):
    path = tmp_path / "ssd.prom"
    code, _, err = finish(start(history, "--once", "--metrics", path))
    assert code == 0, err
    metrics = parsed(path.read_bytes())
    assert metrics["ssdrig_up", ("model", "ACME X1"), ("serial_no", "S123")] == 1
    assert path.stat().st_mode & 0o444 == 0o444 & ~_umask()


def test_service_goes_on_where_the_file_cannot_be_written(tools, drives, history, tmp_path):
    process = start(history, "--json", "--interval", "1h", "--metrics", tmp_path / "nowhere" / "ssd.prom")
    assert json.loads(process.stdout.readline())["kept"]
    while "ssd.prom" not in (line := process.stderr.readline()):
        assert line
    while "drives polled" not in (line := process.stderr.readline()):
        assert line
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 0


def test_round_gives_the_record_to_the_metrics(tools, drives, history, tmp_path):
    results = look(history, tmp_path).round(pytest.fail)
    writer = metrics.Metrics(tmp_path / "ssd.prom", history)
    writer.write(results)
    assert (
        parsed(writer.path.read_bytes())["ssdrig_temperature_celsius", ("model", "ACME X1"), ("serial_no", "S123")]
        == 31
    )
    assert watch_command.Metrics is metrics.Metrics


def _umask() -> int:
    seen = os.umask(0)
    os.umask(seen)
    return seen
