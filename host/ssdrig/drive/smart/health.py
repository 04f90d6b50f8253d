"""The health of a drive as one verdict with its reasons, the same in `drives`, `wear`, `watch`, points and pages. Pure.

A drive is "failing" if it or its attributes report that now, "warning" if something has failed, is worn out or exceeds
its limit, "ok" if its own overall status is good and none of this holds, otherwise "unknown"."""

from typing import NamedTuple

from ssdrig.drive.smart.json_numbers import inside, objects, text, whole

OK, WARNING, FAILING, UNKNOWN = "ok", "warning", "failing", "unknown"
WORN_PERCENT = 100
NVME_WARNINGS = {  # bits of critical warning: (kind, state, words)
    0: ("spare", FAILING, "the spare is below its threshold"),
    1: ("temperature", WARNING, "a temperature is beyond its limit"),
    2: ("reliability", FAILING, "its reliability is degraded by media or internal errors"),
    3: ("read_only", FAILING, "its media are read-only"),
    4: ("backup", FAILING, "its volatile memory backup has failed"),
    5: ("persistent_memory", FAILING, "its persistent memory region is read-only or unreliable"),
}
EXIT_BITS = {  # of smartctl, if the document itself does not show their cause: (kind, state, words)
    3: ("smart_status", FAILING, "smartctl: the drive reports that it is failing"),
    4: ("attribute_now", FAILING, "smartctl: a pre-failure attribute is at or below its threshold"),
    5: ("attribute_past", WARNING, "smartctl: an attribute was at or below its threshold in the past"),
    6: ("error_log", WARNING, "smartctl: the error log has entries"),
    7: ("self_test", WARNING, "smartctl: the self-test log has failed tests"),
}
RANK = {OK: 0, WARNING: 1, FAILING: 2}


class Reason(NamedTuple):
    """kind: for programs; state: "failing" or "warning"; words: for people."""

    kind: str
    state: str
    words: str


def verdict(snapshot: dict, smartctl: dict) -> tuple[str, list[dict]]:
    """(state, reasons by severity as dicts) of one reading.

    snapshot: counters.snapshot's figures. smartctl: its JSON, or {}."""
    reasons = [
        *_of_drive(snapshot, smartctl),
        *_of_attributes(smartctl),
        *_of_logs(snapshot, smartctl),
        *_of_wear(snapshot),
        *_of_temperature(snapshot, smartctl),
    ]
    kinds = {reason.kind for reason in reasons}
    for bit in snapshot["exit_status_bits"]:
        # bit 3 of an NVMe drive means its critical warnings
        covered = bit == 3 and snapshot["critical_warning"] or bit in (3, 4) and "attribute_now" in kinds
        covered = covered or bit == 6 and snapshot["protocol"] == "NVMe"
        if bit in EXIT_BITS and EXIT_BITS[bit][0] not in kinds and not covered:
            reasons.append(Reason(*EXIT_BITS[bit]))
    reasons.sort(key=lambda reason: -RANK[reason.state])
    state = reasons[0].state if reasons else OK if snapshot["health_ok"] is True else UNKNOWN
    return state, [reason._asdict() for reason in reasons]


def sentence(reasons: list[dict]) -> str:
    """The reasons on one line; "" without any."""
    return "; ".join(reason["words"] for reason in reasons)


def _of_drive(snapshot: dict, smartctl: dict) -> list[Reason]:
    warning = snapshot["critical_warning"]
    if warning:
        out = [Reason(*row) for bit, row in NVME_WARNINGS.items() if warning >> bit & 1]
        other = warning & ~sum(1 << bit for bit in NVME_WARNINGS)
        return out + ([Reason("critical_warning", FAILING, f"critical warning {other:#04x}")] if other else [])
    # an NVMe drive's is made of its critical warnings, and smartctl's may be of another reading
    if snapshot["health_ok"] is False or inside(smartctl, "smart_status", "passed") is False:
        return [Reason("smart_status", FAILING, "the drive reports that it is failing")]
    return []


def _of_attributes(smartctl: dict) -> list[Reason]:
    out = []
    for row in objects(inside(smartctl, "ata_smart_attributes", "table")):
        when = row.get("when_failed")
        value, least = whole(row, "value", [], ""), whole(row, "thresh", [], "")
        below = value is not None and least is not None and 0 < least < 254 and 0 < value <= least
        if when in ("now", "FAILING_NOW") or below:
            name = f"attribute {row.get('id')} {text(row.get('name')) or ''}".strip()
            out.append(Reason("attribute_now", FAILING, f"{name} fails now: {value}, threshold {least}"))
        elif when in ("past", "In_the_past"):
            name = f"attribute {row.get('id')} {text(row.get('name')) or ''}".strip()
            worst = whole(row, "worst", [], "")
            out.append(Reason("attribute_past", WARNING, f"{name} failed in the past: {worst}, threshold {least}"))
    return out


def _of_logs(snapshot: dict, smartctl: dict) -> list[Reason]:
    out = []
    failed = _failed_self_tests(smartctl)
    if failed:
        newest = f", the latest: {failed[0]}" if failed[0] else ""
        tests = "a self-test" if len(failed) == 1 else f"{len(failed)} self-tests"
        out.append(Reason("self_test", WARNING, f"{tests} failed{newest}"))
    errors = _logged_errors(smartctl)
    if errors:
        out.append(Reason("error_log", WARNING, f"{errors} {'error' if errors == 1 else 'errors'} in its error log"))
    if snapshot["media_errors"]:
        out.append(Reason("media_errors", WARNING, f"{snapshot['media_errors']} media errors"))
    return out


def _failed_self_tests(smartctl: dict) -> list[str]:
    """Words of each self-test that failed, the newest first. One that was aborted by the host has not failed. ATA and
    NVMe: not those before a successful extended test, which has read all of the drive since (as smartctl counts)."""
    log = smartctl.get("ata_smart_self_test_log")
    rows = objects(inside(log, "extended", "table")) or objects(inside(log, "standard", "table"))  # the same tests
    out = []
    for row in rows:
        words = text(inside(row, "status", "string")) or ""
        if inside(row, "status", "passed") is False and _ata_failed(row.get("status")):
            out.append(words)
        elif inside(row, "status", "passed") is True and _is_extended(row.get("type")):
            break
    # of the latest test, where the file has no log of them
    status = inside(smartctl, "ata_smart_data", "self_test", "status")
    if not rows and inside(status, "passed") is False and _ata_failed(status):
        out.append(text(inside(status, "string")) or "")
    for row in objects(inside(smartctl, "nvme_self_test_log", "table")):
        result = inside(row, "self_test_result", "value")
        if result in (5, 6, 7):  # fatal error, failed in an unknown segment, failed in one or more segments
            out.append(text(inside(row, "self_test_result", "string")) or "")
        elif result == 0 and _is_extended(row.get("self_test_code")):
            break
    for name in sorted(key for key in smartctl if key.startswith("scsi_self_test_")):
        result = inside(smartctl[name], "result", "value")
        if type(result) is int and 3 <= result <= 7:
            out.append(text(inside(smartctl[name], "result", "string")) or "")
    return out


def _is_extended(kind) -> bool:
    """Whether a self-test was an extended one: type 2 of ATA, 82h captive, code 2 of NVMe."""
    return inside(kind, "value") in (2, 0x82) or (text(inside(kind, "string")) or "").startswith("Extended")


def _ata_failed(status) -> bool:
    """The high four bits of the status: 1 and 2 are aborted or interrupted by the host, 3 to 8 failed."""
    value = inside(status, "value")
    return type(value) is not int or 3 <= value >> 4 <= 8


def _logged_errors(smartctl: dict) -> int:
    """Errors in the log of an ATA drive. NVMe drives log commands that they do not support as errors, so theirs prove
    nothing."""
    log = smartctl.get("ata_smart_error_log")
    counts = [whole(inside(log, kind), "count", [], "") for kind in ("extended", "summary")]
    return max((count for count in counts if count), default=0)


def _of_wear(snapshot: dict) -> list[Reason]:
    out = []
    used, spare, least = (
        snapshot[name] for name in ("percentage_used", "available_spare_percent", "available_spare_threshold_percent")
    )
    if used is not None and used >= WORN_PERCENT:
        out.append(Reason("worn_out", WARNING, f"{used:g} % of its rated life is used"))
    below = spare is not None and least is not None and least > 0 and spare < least
    if below and not (snapshot["critical_warning"] or 0) & 1:
        out.append(Reason("spare", FAILING, f"spare {spare:g} %, threshold {least:g} %"))
    return out


def _of_temperature(snapshot: dict, smartctl: dict) -> list[Reason]:
    now = snapshot["temperature_C"]
    limits = (
        ("critical", FAILING, (inside(smartctl, "nvme_composite_temperature_threshold"), "critical")),
        ("warning", WARNING, (inside(smartctl, "nvme_composite_temperature_threshold"), "warning")),
        ("trip", FAILING, (smartctl.get("temperature"), "drive_trip")),
        ("critical", WARNING, (smartctl.get("temperature"), "critical_limit_max")),
        ("highest", WARNING, (smartctl.get("temperature"), "op_limit_max")),
    )
    if now is None or (snapshot["critical_warning"] or 0) >> 1 & 1:
        return []
    for name, state, (table, field) in limits:
        limit = whole(table, field, [], "", at_least=1, at_most=200)
        if limit is not None and now >= limit:
            return [Reason("temperature", state, f"{now:g} °C, {name} limit {limit:g} °C")]
    return []
