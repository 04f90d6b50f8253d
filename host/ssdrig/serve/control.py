"""Asking a run that goes on, over the socket that it owns in its folder (run/control.py). The server sends no
signals: the run decides which requests it obeys."""

import json
import os
import socket
from pathlib import Path

from ssdrig.base.errors import UsageError
from ssdrig.runs.integrity import CONTROL

LIMIT_S = 5.0
MOST_BYTES = 4096
MOST_NOTE = 300
MOST_TOKEN = 64
WORDS = f"a note of up to {MOST_NOTE} characters, stop, arm, or cut with its token"
ANSWER = {"token": str, "hold_s": int | float, "off_s": int | float}  # further fields of a response


def ask(folder: Path, body: dict) -> dict:
    """{"ok", "why"} of {"do": "note", "text"}, {"do": "stop"}, {"do": "arm"} (with ANSWER) or {"do": "cut", "token"}.
    Raises UsageError for anything else, and where no run listens."""
    do, text, token = body.get("do"), body.get("text"), body.get("token")
    if do == "note" and isinstance(text, str) and 0 < len(text.strip()) <= MOST_NOTE:
        request = {"do": "note", "text": text.strip()}
    elif do in ("stop", "arm"):
        request = {"do": do}
    elif do == "cut" and isinstance(token, str) and 0 < len(token) <= MOST_TOKEN:
        request = {"do": "cut", "token": token}
    else:
        raise UsageError(WORDS, repr(do)[:40], "ask for one of them")
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
                s.settimeout(LIMIT_S)
                s.connect(f"/proc/self/fd/{fd}/{CONTROL}")  # the path itself may be longer than a socket's
                s.sendall(json.dumps(request).encode() + b"\n")
                answer = json.loads(s.makefile("rb").readline(MOST_BYTES))
        finally:
            os.close(fd)
    except (OSError, ValueError) as error:
        seen = getattr(error, "strerror", None) or str(error)
        raise UsageError("a run of this user that goes on", seen, "see whether it still runs, and as whom") from error
    more = {key: answer[key] for key, kind in ANSWER.items() if isinstance(answer.get(key), kind)}
    return {"ok": bool(answer.get("ok")), "why": str(answer.get("why") or "")[:300], **more}
