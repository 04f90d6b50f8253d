"""The forms in which people have SMART documents, brought to the one that counters.py reads. Pure.

smartctl's JSON, smart/<nnn>.json of a run, `smartd -j` state, ceph's `get-health-metrics`, `nvme smart-log` and `nvme
id-ctrl` with `-o json`, arrays and lines of these, and smartctl's text."""

import json
import re
from datetime import UTC, datetime

from ssdrig.base.errors import UsageError
from ssdrig.drive.smart import smartctl_text
from ssdrig.drive.smart.json_numbers import text as words

EXPECTED = "a SMART document: smartctl's JSON or text, nvme-cli's JSON, or smart/<nnn>.json of a run"
DO = "save it with: smartctl --json=cv -x DEVICE > FILE"
CEPH_TIME = re.compile(r"\d{8}-\d{6}")
NVME_CLI = {  # key of `nvme smart-log -o json`: key of smartctl's log
    "critical_warning": "critical_warning",
    "avail_spare": "available_spare",
    "spare_thresh": "available_spare_threshold",
    "percent_used": "percentage_used",
    "percentage_used": "percentage_used",
    "data_units_read": "data_units_read",
    "data_units_written": "data_units_written",
    "host_read_commands": "host_reads",
    "host_write_commands": "host_writes",
    "controller_busy_time": "controller_busy_time",
    "power_cycles": "power_cycles",
    "power_on_hours": "power_on_hours",
    "unsafe_shutdowns": "unsafe_shutdowns",
    "media_errors": "media_errors",
    "num_err_log_entries": "num_err_log_entries",
    "warning_temp_time": "warning_temp_time",
    "critical_comp_time": "critical_comp_time",
    "thm_temp1_trans_count": "thermal_mgmt_temperature_1_transition_count",
    "thm_temp2_trans_count": "thermal_mgmt_temperature_2_transition_count",
    "thm_temp1_total_time": "thermal_mgmt_temperature_1_total_time",
    "thm_temp2_total_time": "thermal_mgmt_temperature_2_total_time",
}
ZERO_C_K = 273
MOST_BEGINNINGS = 10  # places at which JSON may begin
IDENTITY = "identity"  # key of a document that is an Identify Controller only


def documents(content: bytes, name: str) -> list[dict]:
    """The SMART documents in a file's content, in its order; an Identify Controller is {IDENTITY: {...}}. `name`: for
    words. Raises UsageError for anything else, and where there is none."""
    documents_read = _documents(content, name)
    if not documents_read:
        raise UsageError(EXPECTED, f"an empty list: {name}", DO)
    return documents_read


def _documents(content: bytes, name: str) -> list[dict]:
    if not content.strip():
        raise UsageError(EXPECTED, f"an empty file: {name}", DO)
    try:
        return _classified(json.loads(content), name)
    except ValueError as error:
        fault = error
    except RecursionError as error:
        raise UsageError(EXPECTED, f"{name}: nested too deeply", DO) from error
    text = _decoded(content)
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and _is_json(lines[0]):
        out = []
        for number, line in enumerate(lines, 1):
            try:
                out += _classified(json.loads(line), f"{name}, line {number}")
            except (ValueError, RecursionError) as error:
                raise UsageError(EXPECTED, f"line {number} of {name} is cut off or not JSON: {error}", DO) from error
        return out
    document = smartctl_text.parse(text)
    if document is not None:
        return [{"smartctl": document}]
    for begin in list(re.finditer(r"[{\[]", text))[:MOST_BEGINNINGS]:  # after what sudo or ssh printed
        try:
            return _classified(json.loads(text[begin.start() :]), name)
        except (ValueError, RecursionError):
            continue
    raise UsageError(EXPECTED, f"a document that is cut off or not JSON: {name}: {fault}", DO) from fault


def with_identity(documents: list[tuple[str, dict]]) -> list[tuple[str, dict]]:
    """The documents without the Identify Controllers among them. One alone names the drive of those that have no
    identity of their own (`nvme smart-log`). Raises UsageError for an Identify Controller without a log next to it."""
    identities = [(name, document[IDENTITY]) for name, document in documents if IDENTITY in document]
    rest = [(name, document) for name, document in documents if IDENTITY not in document]
    if not identities:
        return rest
    bare = [document for _, document in rest if not document.get("drive") and _nameless(document.get("smartctl"))]
    if not bare or len(identities) > 1:
        what = "an Identify Controller without a SMART log" if not bare else f"{len(identities)} Identify Controllers"
        raise UsageError(EXPECTED, f"{what}: {identities[0][0]}", "give one, and: nvme smart-log -o json DEVICE > FILE")
    for document in bare:
        document["smartctl"] |= identities[0][1]
    return rest


def _nameless(smartctl) -> bool:
    return isinstance(smartctl, dict) and not any(smartctl.get(key) for key in ("model_name", "serial_number"))


def _decoded(content: bytes) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    return content.decode("utf-8-sig", "replace")


def _is_json(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _classified(content, name: str) -> list[dict]:
    if isinstance(content, list):
        return [document for index, one in enumerate(content) for document in _classified(one, f"{name}[{index}]")]
    if not isinstance(content, dict):
        raise UsageError(EXPECTED, f"other JSON in {name}", DO)
    if "tools" in content or "t_start_ns" in content:
        return [content]
    if isinstance(content.get("devices"), list) and not isinstance(content.get("device"), dict):
        raise UsageError(EXPECTED, f"a list of devices, as smartctl --scan prints it: {name}", DO)
    if content and all(CEPH_TIME.fullmatch(key) for key in content):
        return _of_ceph(content, name)
    head = content.get("smartctl")
    if isinstance(head, dict) and "exit_status" in head or isinstance(content.get("device"), dict):
        return [{"smartctl": content}]
    if "data_units_written" in content and ("percent_used" in content or "percentage_used" in content):
        return [{"smartctl": _of_nvme_cli(content)}]
    if all(isinstance(content.get(key), str) for key in ("mn", "sn", "fr")):
        return [{IDENTITY: _of_id_ctrl(content)}]
    raise UsageError(EXPECTED, f"other JSON in {name}", DO)


def _of_ceph(listing: dict, name: str) -> list[dict]:
    """The readings of `ceph device get-health-metrics`, whose keys are their UTC. One that holds an error instead of a
    reading is left out. Raises UsageError where that is all of them."""
    out, faults = [], []
    for key, one in sorted(listing.items()):
        try:
            (document,) = _classified(one, f"{name}, {key}")
            utc = datetime.strptime(key, "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
        except UsageError as error:
            faults.append(error)
            continue
        except ValueError:  # no such day, or several documents in one
            continue
        if "local_time" not in document.get("smartctl", {}):
            document["utc_ns"] = int(utc.timestamp()) * 10**9
        out.append(document)
    if not out and faults:
        raise faults[0]
    return out


def _of_nvme_cli(page: dict) -> dict:
    """smartctl's form of `nvme smart-log -o json`: temperatures there are in kelvin, later versions write 128-bit
    counts as text and the critical warning as an object."""
    log = {}
    for key, name in NVME_CLI.items():
        value = page.get(key)
        if isinstance(value, dict):
            value = value.get("value")
        if isinstance(value, str) and re.fullmatch(r"\d{1,39}", value.replace(",", "")):
            value = int(value.replace(",", ""))
        if value is not None:
            log[name] = value
    kelvin = page.get("temperature")
    if type(kelvin) is int:
        log["temperature"] = kelvin - ZERO_C_K
    return {"device": {"protocol": "NVMe"}, "nvme_smart_health_information_log": log}


def _of_id_ctrl(id_ctrl: dict) -> dict:
    """The drive's identity from `nvme id-ctrl -o json`, in smartctl's keys."""
    out: dict = {
        "model_name": words(id_ctrl["mn"]),
        "serial_number": words(id_ctrl["sn"]),
        "firmware_version": words(id_ctrl["fr"]),
    }
    for key, name in (("tnvmcap", "nvme_total_capacity"), ("unvmcap", "nvme_unallocated_capacity")):
        value = id_ctrl.get(key)
        if isinstance(value, str) and value.isdigit():
            value = int(value)
        if type(value) is int and value:
            out[name] = value
    if type(id_ctrl.get("vid")) is int:
        out["nvme_pci_vendor"] = {"id": id_ctrl["vid"]}
    return {key: value for key, value in out.items() if value}
