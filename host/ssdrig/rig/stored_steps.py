"""The readings of a first power-up, kept after each answer: Ctrl-C, a kill or a closed terminal loses at most the
answer under way, and after a repair it goes on at the step that had failed. Forgotten when the rig has passed.

$XDG_STATE_HOME/ssdrig/bring-up/<build>-<board>[-<mark>].json    the latest of each build and mark

A rig has no name before its Pico is in its socket. Until then two rigs of one build differ by what their builder has
marked on them (`--mark`); from the moment when the board answers, the file has its serial too."""

import contextlib
import json
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ssdrig.base import files, owner, system
from ssdrig.base.errors import UsageError
from ssdrig.base.files import write_atomically
from ssdrig.meter.pico.certificate import Check
from ssdrig.rig import bring_up
from ssdrig.rig.bring_up import Done, Reading

SCHEMA = 3
LATEST_ns = 2**63  # of a time


class Key(NamedTuple):
    """A rig before it has a serial.

    build: its document
    board: as of bring_up.readings()
    mark: written on the rig by its builder; "": none"""

    build: dict
    board: str | None = None
    mark: str = ""

    def named(self) -> dict:
        board = self.board or bring_up.board_of(self.build)
        return {"build": self.build["build"], "board": board, "mark": self.mark}


class Stored(NamedTuple):
    """The stored steps, and the serial of the board if it has answered. The last step may be under way, or have
    failed."""

    done: list[Done]
    serial: str | None


def path(key: Key) -> Path:
    """Where the steps of a rig are kept."""
    name = "-".join(str(part) for part in key.named().values() if part)
    folder = owner.base("XDG_STATE_HOME", ".local/state") / "ssdrig" / "bring-up"
    return folder / f"{re.sub(r'[^A-Za-z0-9._-]', '-', name).lstrip('.')}.json"


@contextlib.contextmanager
def held(key: Key) -> Iterator[None]:
    """Wraps a first power-up: no other process stores steps under this key meanwhile. Where the folder takes no file
    nothing is held. Raises UsageError if another one is under way."""
    fd = None
    try:
        target = path(key).with_suffix(".lock")
        with owner.of_new_files():
            owner.new(target)
            target.parent.mkdir(parents=True, exist_ok=True)
            fd = files.lock_file(target)
        system.lock(fd, wait=False)
    except BlockingIOError:
        assert fd is not None
        os.close(fd)
        do = "end it, or name this rig: --mark NAME, as written on it"
        raise UsageError("one first power-up of this build and mark", "another is under way", do) from None
    except OSError:
        pass  # a folder that takes no file
    try:
        yield
    finally:
        if fd is not None:
            os.close(fd)


def keep(key: Key, done: list[Done], serial: str | None = None) -> None:
    """Store the steps in place of the earlier ones. Raises OSError."""
    target = path(key)
    document = {
        "schema": SCHEMA,
        **key.named(),
        "serial": serial,
        "asked": _asked(bring_up.readings(key.build, key.board)),
        "steps": [one.document() for one in done],
    }
    with owner.of_new_files():
        owner.new(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, json.dumps(document, indent=1).encode() + b"\n")


def read(key: Key) -> Stored:
    """The stored steps; none without a file, where it cannot be read, or where other readings or limits are
    asked for now."""
    nothing = Stored([], None)
    readings = bring_up.readings(key.build, key.board)
    try:
        document = json.loads(path(key).read_bytes())
        serial = document["serial"]
        same = {name: document[name] for name in key.named()} == key.named()
        if document["schema"] != SCHEMA or not same or not (serial is None or isinstance(serial, str)):
            return nothing
        if document["asked"] != json.loads(json.dumps(_asked(readings))):
            return nothing
        done = [_done(one) for one in document["steps"]]
        in_turn = [one.step for one in done] == sorted({reading.step for reading in readings})[: len(done)]
        whole = [_is_whole(one, readings) for one in done[:-1]] + [_is_begun(one, readings) for one in done[-1:]]
        return Stored(done, serial) if in_turn and all(whole) else nothing
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return nothing


def forget(key: Key) -> None:
    """Remove the stored steps. Raises OSError."""
    path(key).unlink(missing_ok=True)


def _asked(readings: list[Reading]) -> list:
    """The readings that the steps' checks rest on: another version of ssdrig may ask for other readings."""
    return [[one.step, one.key, one.rail, one.unit, one.low, one.high] for one in readings]


def _done(document: dict) -> Done:
    checks_, repaired = ([Check(**check) for check in document[name]] for name in ("checks", "repaired"))
    return Done(**document)._replace(checks=checks_, repaired=tuple(repaired))


def _is_begun(done: Done, readings: list[Reading]) -> bool:
    """Whether what a step has of its readings is as their own values make it, and nothing of another kind."""
    texts = (done.photo, done.photo_sha256)
    if type(done.step) is not int or not all(text is None or isinstance(text, str) for text in texts):
        return False
    if not (done.utc_ns is None or type(done.utc_ns) is int and 0 <= done.utc_ns < LATEST_ns):
        return False
    asked = {(one.key, one.rail): one for one in readings if one.step == done.step}
    return all(_is_judged(check, asked.get((check.name, check.rail))) for check in [*done.checks, *done.repaired])


def _is_whole(done: Done, readings: list[Reading]) -> bool:
    """Whether a step has ended, with every reading, each inside its limits by its own value."""
    asked = {(one.key, one.rail) for one in readings if one.step == done.step}
    seen = {(check.name, check.rail) for check in done.checks}
    return _is_begun(done, readings) and done.utc_ns is not None and asked <= seen and not done.failed


def _is_judged(check: Check, reading: Reading | None) -> bool:
    """Whether a check is the one that its value makes. reading: None of one that is made from several readings"""
    if reading is None:
        numbers = (check.value, check.low, check.high, check.bound)
        texts = (check.unit, check.why, check.do)
        right = all(type(one) is float for one in numbers) and all(isinstance(one, str) for one in texts)
        return check.name in bring_up.DERIVED.values() and right and check.ok in (True, False, None)
    if check.ok is None:
        return reading.optional and check.value is None
    value = math.inf if check.why == "open" else check.value
    if reading.unit == "yes":
        value = float(check.why == "yes")
    return type(value) is float and check == bring_up.judged(reading, value)
