"""Raw pages of NVMe drives through nvme-cli: log pages and Identify structures as bytes.

How nvme-cli reports that a drive does not have a page, in the sources of 1.x, 2.3 (Debian 12) and of 2.13 and later:
exit status 1 (2.3; 1.x and others an errno) and one line on stderr, `NVMe status: Invalid Log Page: The log page
indicated is invalid(0x4109)`. 1.x wrote `NVMe Status:INVALID_LOG_PAGE: …(4109)` without 0x. The number is the
completion's status field; its low 11 bits are type and code, the rest (4000h do not retry, 2000h more, 1800h retry
delay) vary from drive to drive. A command that did not reach the drive has no such line, but words such as `log page:
Inappropriate ioctl for device`.
"""

import re

from ssdrig.drive import program

LOG_BYTES = 512
IDENTIFY_BYTES = 4096
STATUS_MASK = 0x7FF
# Invalid Log Page; Invalid Field in Command, which drives of NVMe 1.x and QEMU answer to a page that they do not know.
NOT_THERE = {0x109, 0x002}
STATUS = re.compile(r"NVMe status:.*\((?:0x)?([0-9a-f]{1,5})\)", re.IGNORECASE)
NOT_THERE_WORDS = re.compile(r"invalid[ _]log[ _]page|invalid[ _]field", re.IGNORECASE)
OCP_UUID = bytes.fromhex("C194D55BE0944794A21D29998F56BE6F")  # names OCP's log pages in a drive's UUID list


def log_page(
    controller: str,
    lid: int,
    size: int = LOG_BYTES,
    *,
    lsp: int | None = None,
    lsi: int | None = None,
    nsid: int | None = None,
    uuid_index: int | None = None,
    timeout_s: float = 10.0,
) -> tuple[bytes | None, dict]:
    """`nvme get-log` of `size` bytes from /dev/nvmeN: (page, tool record as in smart/<nnn>.json).

    page None with the record's `why` None: the drive reports that it lacks the page. With a `why`: the query was
    impossible, or failed."""
    words = [f"--log-id={lid:#04x}", f"--log-len={size}", "--raw-binary"]
    for name, value in (("lsp", lsp), ("lsi", lsi), ("namespace-id", nsid), ("uuid-index", uuid_index)):
        if value is not None:
            words.append(f"--{name}={value}")
    call = program.run(["nvme", "get-log", controller, *words], timeout_s)
    return _bytes(call, size, may_be_absent=True)


def identify(controller: str, timeout_s: float = 10.0) -> tuple[bytes | None, dict]:
    """Identify Controller, 4096 bytes, and the tool record."""
    return _bytes(program.run(["nvme", "id-ctrl", controller, "--raw-binary"], timeout_s), IDENTIFY_BYTES)


def identify_namespace(controller: str, nsid: int, timeout_s: float = 10.0) -> tuple[bytes | None, dict]:
    """Identify Namespace, 4096 bytes, and the tool record."""
    return _bytes(
        program.run(["nvme", "id-ns", controller, f"--namespace-id={nsid}", "--raw-binary"], timeout_s), IDENTIFY_BYTES
    )


def namespace_list(controller: str, cns: int, timeout_s: float = 10.0) -> tuple[bytes | None, dict]:
    """Identify with a CNS that lists namespaces (02h the active ones, 10h all that are allocated), 4096 bytes, and the
    tool record. (`nvme list-ns` prints other words in each version.)"""
    words = ["--opcode=0x06", "--namespace-id=0", f"--cdw10={cns:#x}", "--data-len=4096", "--read", "--raw-binary"]
    return _bytes(program.run(["nvme", "admin-passthru", controller, *words], timeout_s), IDENTIFY_BYTES)


def identify_uuids(controller: str, timeout_s: float = 10.0) -> tuple[bytes | None, dict]:
    """The UUID List, 4096 bytes, and the tool record."""
    return _bytes(program.run(["nvme", "id-uuid", controller, "--raw-binary"], timeout_s), IDENTIFY_BYTES)


def io_management(
    node: str, nsid: int, operation: int, size: int, timeout_s: float = 10.0
) -> tuple[bytes | None, dict]:
    """I/O Management Receive (12h) of a namespace: `size` bytes of an operation's answer, and the tool record."""
    words = ["--opcode=0x12", f"--namespace-id={nsid}", f"--cdw10={operation}", f"--cdw11={size // 4 - 1}"]
    words += [f"--data-len={size}", "--read", "--raw-binary"]
    return _bytes(program.run(["nvme", "io-passthru", node, *words], timeout_s), size)


def capabilities(id_ctrl: bytes) -> dict:
    """The log page capabilities in Identify Controller (NVMe Base Specification 2.0, figure 275).

    {"pci_vendor_id": int, "serial": str, "has_log_00h": bool (LPA bit 5), "has_uuids": bool (CTRATT bit 9),
    "has_fdp": bool (CTRATT bit 19), "endurance_groups": int (ENDGIDMAX; 0: no groups)}"""
    attributes = int.from_bytes(id_ctrl[96:100], "little")
    return {
        "pci_vendor_id": int.from_bytes(id_ctrl[0:2], "little"),
        "serial": id_ctrl[4:24].decode("ascii", errors="replace").strip(" \0"),
        "has_log_00h": bool(id_ctrl[261] & 1 << 5),
        "has_uuids": bool(attributes & 1 << 9),
        "has_fdp": bool(attributes & 1 << 19),
        "endurance_groups": int.from_bytes(id_ctrl[340:342], "little"),
    }


def endurance_group(id_ns: bytes) -> int:
    """ENDGID of an Identify Namespace structure; 0: in none."""
    return int.from_bytes(id_ns[102:104], "little")


def ocp_uuid_index(uuids: bytes) -> int | None:
    """The index by which this drive's log pages C0h… are OCP's, from its UUID list (entries of 32 bytes from byte 32,
    UUID in the upper half, first index 1, a zero UUID ends it); None if OCP's is not in it."""
    for index in range(1, len(uuids) // 32):
        uuid = uuids[32 * index + 16 : 32 * index + 32]
        if uuid == OCP_UUID:
            return index
        if not any(uuid):
            return None
    return None


def supported(log_00h: bytes) -> set[int]:
    """The log pages that log page 00h (NVMe 2.0, 256 entries of 4 bytes, bit 0: supported) lists."""
    return {lid for lid in range(len(log_00h) // 4) if log_00h[4 * lid] & 1}


def _bytes(call: program.Call, size: int, may_be_absent: bool = False) -> tuple[bytes | None, dict]:
    record = program.record(call)
    if call.why:
        return None, record
    if call.exit_code == 0 and len(call.stdout) == size:
        return call.stdout, record
    if call.exit_code == 0:
        record["why"] = f"{len(call.stdout)} bytes came, {size} were asked for"
        return None, record
    status = STATUS.search(call.stderr)
    if status:
        code = int(status[1], 16) & STATUS_MASK
        absent = code in NOT_THERE
    else:
        absent = bool(NOT_THERE_WORDS.search(call.stderr))
    if not (may_be_absent and absent):
        message = next((line.strip() for line in call.stderr.splitlines() if line.strip()), "nothing")
        record["why"] = f"nvme ended with {call.exit_code} and printed: {message[:200]}"
    return None, record
