"""smartctl's JSON as it came. Its exit status is a bit mask of facts, not success or failure. (It prints the version of
its drive database itself: smartctl.drive_database_version, since 7.3, of ATA drives.)"""

import json
import math
import re
import time
from dataclasses import dataclass

from ssdrig.base.errors import ToolMissing
from ssdrig.drive import program
from ssdrig.drive.smart.smart_answer import has_data

# The meaning of the exit status as smartctl(8) 7.3 lists it. Only bits 0 and 1 mean that data is missing.
EXIT_BITS = {
    0: "the command line was not understood, or the kind of device was not recognised",
    1: "the device could not be opened or did not identify itself, or is in a low-power mode",
    2: "a SMART or other command to the drive failed, or a SMART structure has a wrong checksum",
    3: "the drive reports that it is FAILING",
    4: "a pre-failure attribute is at or below its threshold",
    5: "an attribute has been at or below its threshold in the past",
    6: "the drive's error log has entries",
    7: "the drive's self-test log has failed tests",
}
FULL = ["-x"]
# -i makes smartctl ask the drive nothing more (it identifies it anyway) but to print model, in_smartctl_database and
# the block size, without which no attribute has a unit: `-A` alone leaves them out.
LIGHT = ["-i", "-A", "-H"]
# ATA device statistics are the one standardised host write counter of SATA drives: without them in each poll there is
# no series of it. Two or three READ LOG commands more per poll, so only for a drive that is known to have them.
DEVICE_STATISTICS = ["-l", "devstat"]

OLDEST = (7, 0)  # the first with --json
TEXT_KEPT = 256 << 10  # bytes of non-JSON output that are stored in a run folder

# The NVMe commands of USB bridges are each maker's own: a bridge is only asked in its maker's words, or as SATA.
BRIDGES = {"152d": ["sntjmicron", "sat"], "0bda": ["sntrealtek", "sat"], "174c": ["sntasmedia", "sat"]}
UNKNOWN_BRIDGE = ["sat", "sntasmedia", "sntrealtek", "sntjmicron"]


@dataclass(frozen=True)
class Answer:
    """The result of smartctl. document is its JSON object; without one, text is its output, and `why` is the defect.
    exit_code None: killed, see why. Other fields as in program.Call."""

    argv: list[str]
    exit_code: int | None
    document: dict | None
    text: str | None
    stderr: str
    t_ns: int
    wall_ms: float
    cpu_ms: float
    why: str | None


def bits(status: int) -> list[int]:
    """The bits that are set in an exit status, lowest first."""
    return [bit for bit in EXIT_BITS if status >> bit & 1]


def run(node: str, type_: str, words: list[str], timeout_s: float = 20.0) -> Answer:
    """`smartctl --json=cv WORDS -d TYPE NODE`; c: compact, v: integers that JSON readers may round also as strings.

    Raises ToolMissing when smartctl is not there or older than 7.0; nothing else that goes wrong is raised."""
    if program.is_missing("smartctl"):
        raise ToolMissing("smartctl in PATH", "none", "install the package smartmontools")
    call = program.run(["smartctl", "--json=cv", *words, "-d", type_, node], timeout_s)
    document, why = _parse(call.stdout)
    text = None if document is not None else call.stdout[:TEXT_KEPT].decode(errors="backslashreplace")
    if text is not None and len(call.stdout) > TEXT_KEPT:
        why = f"{why} ({TEXT_KEPT} of its {len(call.stdout)} bytes are kept)"
    version = _version(document, text)
    if version and version < OLDEST:
        raise ToolMissing(
            "smartctl 7.0 or later, which prints JSON",
            f"smartctl {version[0]}.{version[1]}",
            "install a newer package smartmontools",
        )
    why = "; ".join(words for words in (call.why, why) if words) or None
    return Answer(call.argv, call.exit_code, document, text, call.stderr, call.t_ns, call.wall_ms, call.cpu_ms, why)


def run_any(
    node: str, type_: str, usb_id: str, words: list[str], timeout_s: float = 20.0
) -> tuple[Answer, str, list[Answer]]:
    """Like run; for a drive behind a USB bridge (usb_id "0bda:9210"; "" is none) that does not answer to `type_` go on
    with the types that bridges speak. smartctl's "Unknown USB bridge" and "Please specify device type" are both exit
    bit 0, a wrong guess is bit 1.

    Returns (the answer with data, otherwise the first, its type, all answers in order). timeout_s is for all
    together."""
    deadline = time.monotonic() + timeout_s
    types = [type_]
    if usb_id:
        types += [t for t in BRIDGES.get(usb_id.split(":")[0].lower(), UNKNOWN_BRIDGE) if t != type_]
    answers = []
    for candidate in types:
        answers.append(run(node, candidate, words, deadline - time.monotonic()))
        if has_data(answers[-1].document):
            return answers[-1], candidate, answers
        if answers[-1].exit_code is None:
            break  # it hung: a bridge that is stuck is not asked again
    return answers[0], type_, answers


def _parse(stdout: bytes) -> tuple[dict | None, str | None]:
    """(object, None) or (None, defect)."""

    def finite(number: str) -> float:
        value = float(number)
        if not math.isfinite(value):
            raise ValueError(f"{number} cannot be represented in JSON")
        return value

    if not stdout.strip():
        return None, "smartctl printed nothing"
    try:
        document = json.loads(stdout.decode(), parse_float=finite, parse_constant=finite)
        if b"\\ud" in stdout.lower():  # half a surrogate pair could not be written to a file again
            json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        return None, f"smartctl printed no JSON: {str(error)[:120]}"
    if not isinstance(document, dict):
        return None, f"smartctl printed JSON that is not an object but {type(document).__name__}"
    return document, None


def _version(document: dict | None, text: str | None) -> tuple[int, int] | None:
    """The version of smartctl, from its first line or its JSON, or None."""
    if document is None:
        match = re.match(r"smartctl (\d{1,4})\.(\d{1,4})\b", text or "")
        return (int(match[1]), int(match[2])) if match else None
    head = document.get("smartctl")
    listed = head.get("version") if isinstance(head, dict) else None
    if isinstance(listed, list) and len(listed) >= 2 and all(type(n) is int for n in listed[:2]):
        return listed[0], listed[1]
    return None
