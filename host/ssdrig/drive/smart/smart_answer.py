"""Whether a drive answered: for smartctl's JSON, and for a whole SMART document. Pure."""

import re

NO_DATA_MASK = 0b11  # smartctl's exit status: only bits 0 and 1 mean that data is missing
COUNTERS = (  # keys that only a response of the drive contains
    "ata_smart_attributes",
    "ata_device_statistics",
    "nvme_smart_health_information_log",
    "scsi_error_counter_log",
    "scsi_percentage_used_endurance_indicator",
    "power_on_time",
)
LOG_KEY = re.compile("log_[0-9a-f]{2}h")


def has_data(document) -> bool:
    """Whether this JSON of smartctl holds an answer of a drive: its exit status has neither bit 0 nor 1, or counters
    are there all the same; a file without an exit status names its device. False for anything else."""
    if not isinstance(document, dict):
        return False
    head = document.get("smartctl")
    if not isinstance(head, dict) or "exit_status" not in head:
        return isinstance(document.get("device"), dict)
    status = head["exit_status"]
    if type(status) is not int:
        return False
    return not status & NO_DATA_MASK or any(document.get(key) for key in COUNTERS)


def messages(document) -> list[str]:
    """smartctl's own words in its JSON (smartctl.messages[].string), errors and all."""
    head = document.get("smartctl") if isinstance(document, dict) else None
    listed = head.get("messages") if isinstance(head, dict) else None
    strings = [entry.get("string") for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    return [words for words in strings if isinstance(words, str)]


def answered(document: dict) -> bool:
    """Whether there is anything of the drive in the document: a log page, or smartctl's JSON with data."""
    return has_data(document.get("smartctl")) or any(document[key] for key in document if LOG_KEY.fullmatch(key))
