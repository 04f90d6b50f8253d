"""The steps of a first power-up that have passed, kept after each one: Ctrl-C, a kill or a closed terminal loses at
most the step under way. Forgotten when there is a certificate.

$XDG_STATE_HOME/ssdrig/bring-up/<build>-<board>.json     the latest of each build"""

import json
import re
from pathlib import Path

from ssdrig.base import owner
from ssdrig.base.files import write_atomically
from ssdrig.meter.pico.certificate import Check
from ssdrig.rig import bring_up
from ssdrig.rig.bring_up import Done, Reading

SCHEMA = 1


def path(build: dict, board: str | None) -> Path:
    """Where the steps of a build are kept. board: as of bring_up.readings()."""
    name = f"{build['build']}-{board or bring_up.board_of(build)}"
    folder = owner.base("XDG_STATE_HOME", ".local/state") / "ssdrig" / "bring-up"
    return folder / f"{re.sub(r'[^A-Za-z0-9._-]', '-', name).lstrip('.')}.json"


def keep(build: dict, board: str | None, done: list[Done]) -> None:
    """Store the steps in place of the earlier ones. Raises OSError."""
    target = path(build, board)
    document = {
        "schema": SCHEMA,
        "asked": _asked(bring_up.readings(build, board)),
        "steps": [one.document() for one in done],
    }
    with owner.of_new_files():
        owner.new(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, json.dumps(document, indent=1).encode() + b"\n")


def read(build: dict, board: str | None) -> list[Done]:
    """The steps that are stored; none where nothing is, where it cannot be read, or where other readings or limits are
    asked for now."""
    readings = bring_up.readings(build, board)
    try:
        document = json.loads(path(build, board).read_bytes())
        if document["schema"] != SCHEMA or document["asked"] != json.loads(json.dumps(_asked(readings))):
            return []
        done = [Done(**one)._replace(checks=[Check(**check) for check in one["checks"]]) for one in document["steps"]]
        whole = [one.step for one in done] == sorted({reading.step for reading in readings})[: len(done)]
        return done if whole and all(_is_whole(one, readings) for one in done) else []
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def forget(build: dict, board: str | None) -> None:
    """Remove the stored steps. Raises OSError."""
    path(build, board).unlink(missing_ok=True)


def _asked(readings: list[Reading]) -> list:
    """The readings that the steps' checks rest on: another version of ssdrig may ask for other readings."""
    return [[one.step, one.key, one.rail, one.unit, one.low, one.high] for one in readings]


def _is_whole(done: Done, readings: list[Reading]) -> bool:
    """Whether a step has every reading, none of them outside its limits."""
    seen = {(check.name, check.rail) for check in done.checks}
    return not done.failed and {(one.key, one.rail) for one in readings if one.step == done.step} <= seen
