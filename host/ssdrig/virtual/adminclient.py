"""The virtual drive's admin and truth sockets, asked: one JSON object on a line each way."""

import json
import re
import socket
import time

from ssdrig.base.errors import DriveError

POLL_TIMEOUT_S = 10.0
TIMEOUT_S = 60.0  # of what the drive has to do, on a machine with much else to do
PAGE_BYTES = 512  # of the log pages that the virtual drive has
NO_PAGE = "no log page"  # how the virtual drive reports so


def ask(admin_socket, request: dict, timeout_s: float = TIMEOUT_S) -> dict:
    """One request to the virtual drive's admin socket, a JSON object on a line each way: its answer.

    Raises DriveError without an answer, or when the drive answers {"error": words}."""
    return _checked(_exchange(admin_socket, request, timeout_s), request)


def poll(admin_socket, timeout_s: float = POLL_TIMEOUT_S) -> dict:
    """Poll the virtual drive through its admin socket.

    Returns the smart/<nnn>.json document without "n" and "reason", which the run adds: {"t_start_ns", "t_end_ns",
    "simulated", "smartctl", "log_02h", "log_c0h", "log_09h"}, pages as hex; C0h and 09h are null if the drive has none.
    The pages are read one right after the other, because write amplification compares two of them.
    Raises DriveError when the drive does not answer."""
    t_start_ns = time.monotonic_ns()
    pages = {f"log_{lid:02x}h": _page(admin_socket, lid, timeout_s) for lid in (0x02, 0xC0, 0x09)}
    if pages["log_02h"] is None:
        raise DriveError("log page 02h, which every NVMe drive has", "none", "see the drive server's log")
    smartctl = ask(admin_socket, {"op": "smartctl"}, timeout_s)
    return {"t_start_ns": t_start_ns, "t_end_ns": time.monotonic_ns(), "simulated": True, "smartctl": smartctl, **pages}


def pace(admin_socket, since: int, timeout_s: float = POLL_TIMEOUT_S) -> dict | None:
    """How late the virtual drive answered against its model, from second `since` on: its bench health record
    (virtual/device/device.py). None where it does not answer: a load does not end for that."""
    try:
        answer = ask(admin_socket, {"op": "pace", "since": since}, timeout_s)
    except DriveError:
        return None
    return answer if answer.get("rows") else None


def _page(admin_socket, lid: int, timeout_s: float) -> str | None:
    """The page as hex, None if the drive does not have it. Any other error is raised: a page that exists but could
    not be read must not look like a drive without a NAND counter."""
    request = {"op": "log", "lid": lid}
    answer = _exchange(admin_socket, request, timeout_s)
    if str(answer.get("error", "")).startswith(NO_PAGE):
        return None
    page = _checked(answer, request).get("hex")
    if not isinstance(page, str) or not re.fullmatch(f"[0-9a-f]{{{2 * PAGE_BYTES}}}", page):
        raise DriveError(
            f"{PAGE_BYTES} bytes as hex in answer to {request}", str(answer)[:80], "see the drive server's log"
        )
    return page


def _checked(answer: dict, request: dict) -> dict:
    if "error" in answer:
        raise DriveError(
            f"the virtual drive to do {request}", str(answer["error"]), "see whether it has power and knows the request"
        )
    return answer


def _exchange(admin_socket, request: dict, timeout_s: float) -> dict:
    line = b""
    try:
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(timeout_s)
            link.connect(str(admin_socket))
            link.sendall(json.dumps(request).encode() + b"\n")
            while not line.endswith(b"\n"):
                more = link.recv(1 << 16)
                if not more:
                    raise ConnectionError("the connection ended before the answer did")
                line += more
        answer = json.loads(line)
        if not isinstance(answer, dict):
            raise ValueError(f"not a JSON object: {line[:80]!r}")
    except (OSError, ValueError) as error:
        raise DriveError(
            f"the virtual drive to answer {request}",
            f"{type(error).__name__}: {error}",
            f"see whether it still runs: {admin_socket}",
        ) from error
    return answer
