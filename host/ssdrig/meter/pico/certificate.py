"""A rig's certificate: what its self-test (doctor.py) found, kept on the host so that each run can quote it.

$XDG_STATE_HOME/ssdrig/doctor/<rig's serial>.json     the latest of each rig
"""

import hashlib
import json
import os
import re
import time
from pathlib import Path
from typing import NamedTuple

from ssdrig.base import owner
from ssdrig.base.errors import RigError, UsageError, reason
from ssdrig.base.files import write_atomically
from ssdrig.base.words import digits

SCHEMA = 1
OF_THE_RIG = ("board", "serial", "revision", "build", "firmware", "protocol", "simulated")


def stated(value: float, bound: float, unit: str) -> str:
    """A value with its bound, if it has one."""
    return f"{digits(value, 4)}{f' ± {digits(bound, 2)}' if bound else ''} {unit}".rstrip()


class Check(NamedTuple):
    """One figure of a rig: `ok` None where it was not checked or is too uncertain, for the reason `why`."""

    name: str
    rail: int | None
    value: float | None
    unit: str
    low: float | None
    high: float | None
    ok: bool | None
    why: str
    do: str
    bound: float = 0.0  # the value is right within it

    def words(self) -> str:
        """One line: expected, seen, do."""
        where = "" if self.rail is None else f"rail {self.rail}: "
        if self.ok is None:
            return f"--    {where}{self.name}: not looked at: {self.why}"
        seen = self.why or (stated(self.value, self.bound, self.unit) if self.value is not None else "nothing")
        if self.ok:
            return f"ok    {where}{self.name}: {seen}, expected {self.expected()}"
        return f"FAIL  {where}{self.name}: expected {self.expected()}; seen {seen}; do: {self.do}"

    def expected(self) -> str:
        if self.low is None and self.high is None:
            return "so"
        if self.low is None:
            return f"{digits(self.high, 4)} {self.unit} or less".replace("  ", " ")
        if self.high is None:
            return f"{digits(self.low, 4)} {self.unit} or more".replace("  ", " ")
        return f"{digits(self.low, 4)} to {digits(self.high, 4)} {self.unit}".rstrip()


def folder() -> Path:
    """Where the certificates are kept."""
    return owner.base("XDG_STATE_HOME", ".local/state") / "ssdrig" / "doctor"


def made(
    hello: dict, checks_: list[Check], resistor: tuple[int, float] | None, utc_ns: int, steps: list[dict] | None = None
) -> dict:
    """The certificate: the rig, when, each check's figure and limits; "id" is the SHA-256 of all the rest, cut. steps:
    those of a first power-up (bring_up.py), with their checks."""
    out = {
        "schema": SCHEMA,
        **{name: hello.get(name) for name in OF_THE_RIG},
        "utc_ns": utc_ns,
        "utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(utc_ns / 1e9)),
        "resistor": None if resistor is None else {"rail": resistor[0], "ohm": resistor[1]},
        "passed": not any(check.ok is False for check in checks_),
        "failed": [_name(check) for check in checks_ if check.ok is False],
        "not_looked_at": [_name(check) for check in checks_ if check.ok is None],
        "checks": [check._asdict() for check in checks_],
        "bring_up": steps,
    }
    return {"id": id_of(out), **out}


def _name(check: Check) -> str:
    return check.name if check.rail is None else f"rail {check.rail}: {check.name}"


def id_of(certificate: dict) -> str:
    """Digest of a certificate without its "id"."""
    rest = {name: value for name, value in certificate.items() if name != "id"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()[:16]


def keep_others(to: Path) -> None:
    """Raises UsageError if the file is not a certificate."""
    try:
        document = json.loads(to.read_bytes() or b"{}") if to.is_file() else None
    except (OSError, ValueError, RecursionError):
        document = None
    if os.path.lexists(to) and not (
        isinstance(document, dict) and (not document or {"schema", "checks", "id"} <= {*document})
    ):
        raise UsageError(f"--to with a new file or an earlier certificate, {to}", "something else", "name another file")


def keep(certificate: dict, to: Path | None = None) -> Path:
    """Write it where runs find it, and to a file of the person's own. Raises RigError."""
    path = _path(str(certificate["serial"]))
    text = json.dumps(certificate, indent=1).encode() + b"\n"
    for target in [path, *([to] if to else [])]:
        try:
            with owner.of_new_files():
                owner.new(target)
                target.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(target, text)
        except OSError as error:
            do = "name another file: --to"
            raise RigError(f"to keep the certificate in {target}", str(error.strerror), do) from error
    return path


def read(serial: str) -> dict:
    """The latest certificate of a rig. Raises OSError, ValueError, KeyError, TypeError or RecursionError for a file
    that is not one."""
    document = json.loads(_path(serial).read_bytes())
    if document["schema"] != SCHEMA or document["id"] != id_of(document):
        raise ValueError("it was changed, or has another version")
    return document


def quote(hello: dict, now_ns: int) -> dict:
    """A run's entry of its rig's certificate: {"id", "utc_ns", "age_s", "passed", "resistor", "differs": what of the
    rig is not as it was then}, or {"id": None, "why"}."""
    if hello.get("simulated"):
        return {"id": None, "why": "a SIMULATED rig"}
    serial = hello.get("serial")
    if not serial:
        return {"id": None, "why": "the rig has no serial"}
    try:
        document = read(str(serial))
        age_s = (now_ns - document["utc_ns"]) / 1e9
        differs = [name for name in OF_THE_RIG if document[name] != hello.get(name)]
        of_it = {name: document[name] for name in ("id", "utc_ns", "passed", "resistor")}
    except FileNotFoundError:
        return {"id": None, "why": "never made: ./ssdrig rig doctor"}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        return {"id": None, "why": f"cannot be read: {reason(error)}"}
    if age_s < 0:
        return {"id": None, "why": "made in the future: a clock was wrong"}
    return {**of_it, "age_s": round(age_s), "differs": differs}


def _path(serial: str) -> Path:
    return folder() / f"{re.sub(r'[^A-Za-z0-9._-]', '-', serial).lstrip('.')}.json"
