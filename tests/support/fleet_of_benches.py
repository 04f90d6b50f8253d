"""`ssdrig run` for drives that are virtual benches which run already, named by their serials as real ones are: the
program of a fleet and of each of its children. $SSDRIG_TEST_BENCHES has {serial: {"drive", "folder"}} as JSON."""

import contextlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from drives import a_drive

from ssdrig import cli
from ssdrig.blockio.nbd import NbdClient
from ssdrig.drive import guard, inventory
from ssdrig.run import bench, fleet, matching
from ssdrig.virtual.bench import VirtualBench

NAME = "SSDRIG_TEST_BENCHES"
PROGRAM = (sys.executable, "-P", "-m", "fleet_of_benches")


def environ(benches: Mapping[str, VirtualBench]) -> dict[str, str]:
    """What the program needs of {serial: running bench}."""
    known = {serial: {"drive": one.drive, "folder": str(one.folder)} for serial, one in benches.items()}
    return os.environ | {NAME: json.dumps(known), "PYTHONPATH": os.pathsep.join(sys.path)}


def running(serial: str, port: str | None) -> VirtualBench:
    """The bench that a serial stands for, with this port's rig."""
    known = json.loads(os.environ[NAME])[serial]
    folder = Path(known["folder"])
    process = cast(Any, SimpleNamespace(poll=lambda: None))
    return VirtualBench(folder, known["drive"], port, process, None, folder / "truth", folder / "board.json")


def drive_of(serial: str) -> inventory.Drive:
    """What the inventory shows of it."""
    size = json.loads(os.environ[NAME])[serial]["drive"]["capacity_bytes"]
    return a_drive(name=serial, serial=serial, capacity_bytes=size, controller=None, interface="SATA", smartctl_type="")


@contextlib.contextmanager
def real(drive, limits, serial, purge, raw, port, *how, **more):
    """The virtual bench in the place of a drive that the guard holds."""
    made = bench.virtual(running(drive.serial, port))
    yield replace(made, drive=made.drive | {"serial": drive.serial, "model": drive.model}, simulated=False)


def main(words: list[str]) -> int:
    bench.real = real
    inventory.find = drive_of  # type: ignore[assignment]
    guard.refusals = lambda *_, **__: []
    held = lambda drive, consent: contextlib.nullcontext(SimpleNamespace(path=drive.serial))
    guard.hold = held  # type: ignore[assignment]
    fleet.survey = lambda: None  # type: ignore[assignment]
    matching.connect_to = lambda path: lambda write: NbdClient(str(running(path, None).drive["socket"]))
    fleet.PROGRAM = PROGRAM
    return cli.main(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
