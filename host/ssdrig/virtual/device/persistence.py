"""A virtual drive that outlives its server: when the run that it belongs to is killed or interrupted, the server dies
with it and writes down what the drive holds and has counted, so that `ssdrig resume` finds the drive as a real one
would be found. A kill -9 of the server itself leaves nothing: the drive is gone, which resume reports.

    drive/flash.npz    VirtualDrive.save(): map, NAND, wear, age, counters, which pages cannot be read; what the cache
                       held is programmed first
    drive/store.npz    the check of each page, of a drive that keeps those
    drive/store.bin    all bytes, of a drive that keeps those in a private file; sparse
    drive/faults.npz   what lasts of its faults from one cut to the next (virtual/device/injector.py), if it has any
    drive/device.json  what the device has counted, and what resume compares before it starts the drive

The folder appears whole or not at all. Next to it is .drive.lock, which the server holds while it lives.
"""

import contextlib
import fcntl
import json
import os
import shutil
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

from ssdrig.base import files, kernels
from ssdrig.base.errors import DriveError
from ssdrig.base.files import replace_folder, write_atomically
from ssdrig.runs import integrity
from ssdrig.virtual.flash import ageing
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.presets import PRESETS

COUNTED = (
    "serial",
    "power_cycles",
    "unsafe_shutdowns",
    "plp_starts",
    "cuts",
    "error_log_entries",
    "over_C",
    "under_C",
    "unaligned_commands",
    "pages_lost",
    "media_errors",
    "thermal",
    "power_on_s",
    "reported_J",
    "latency_ns",
    "slow",
)
SAID = {"drive_bytes": int, "firmware": str, "host_written_bytes": int, "counted": dict}  # of device.json
UNIT_BYTES = 512_000  # of the NVMe counter of host writes
WAIT_S = 60.0  # for a server that is still writing


def lock(folder: Path) -> int:
    """Hold the lock next to `folder` until the descriptor is closed. Raises OSError."""
    fd = files.lock_file(_lock_of(folder))
    fcntl.flock(fd, fcntl.LOCK_EX)
    return fd


def save(device, folder: Path) -> None:
    """Write the drive of `device` into `folder`. Raises OSError."""
    partial = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        device.drive.save(partial / "flash.npz")
        device.store.save(partial)
        written = int(device.drive.ledger()["host_write_bytes"])
        document = {
            "simulator": kernels.DIGEST,
            "preset": device.preset.name,
            "drive_bytes": device.identity()["drive_bytes"],
            "firmware": device.identity()["firmware"],
            "host_written_bytes": written // UNIT_BYTES * UNIT_BYTES,
            "counted": {name: getattr(device, name) for name in COUNTED},
            "capacitors": device.reserve and device.reserve.saved_state(device.advanced_ns),
        }
        if device.faults:
            device.faults.save(partial)
        write_atomically(partial / "device.json", json.dumps(document, default=lambda number: number.item()).encode())
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)  # the rest of the disk is the run's
        raise
    replace_folder(partial, folder)


def age(state: Path, profile: Sequence[tuple[float, float]]) -> dict:
    """A kept drive, or a snapshot of one (VirtualDrive.save), is stored without power for a profile of (hours, C).
    Returns {"simulated", "state", "equivalent_hours": at 30 C, "pages", "bad_pages", "slow_pages", "slow_units"}:
    counts of it afterwards. Raises UsageError for an invalid storage, DriveError for a folder that is not a drive or is
    in use."""
    ageing.checked(profile)
    with contextlib.ExitStack() as stack:
        if state.is_dir():
            _unused(stack, state)
        flash = state / "flash.npz" if state.is_dir() else state
        drive = VirtualDrive.load(flash, latency=False, known=PRESETS)
        hours = ageing.age(drive, profile)
        drive.save(flash)
        if state.is_dir():
            document = integrity.document_of(state / "device.json")
            document["counted"]["power_cycles"] += 1
            write_atomically(state / "device.json", json.dumps(document).encode())
    truth = ageing.truth(drive, ageing.levels(drive))
    return {
        "simulated": True,
        "state": str(state),
        "equivalent_hours": hours,
        "pages": truth["pages"],
        "bad_pages": len(truth["bad_pages"]),
        "slow_pages": truth["slow_pages"],
        "slow_units": len(truth["units"]),
    }


def _unused(stack: contextlib.ExitStack, folder: Path) -> None:
    """Hold the lock of a drive that was kept in full and whose server has ended. Raises DriveError."""
    do = "give the folder of a kept drive (RUN/drive)"
    try:
        integrity.document_of(folder / "device.json")["counted"]["power_cycles"]
        held = files.lock_file(_lock_of(folder))
        stack.callback(os.close, held)
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DriveError("a drive without power", f"the server of {folder} runs", "end it first") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DriveError(f"a kept drive in {folder}", f"{type(error).__name__}: {error}", do) from error


def facts(folder: Path) -> dict | None:
    """device.json of a stored drive; None without one that this simulator can continue. A
    server that is still writing is waited for. Raises DriveError if it does not end."""
    deadline = time.monotonic() + WAIT_S
    while files.is_locked(_lock_of(folder)):
        if time.monotonic() > deadline:
            raise DriveError(
                f"the SIMULATED drive of {folder.parent} to end",
                f"its server still runs after {WAIT_S:g} s",
                "end it (ssdrig.virtual.serve), then repeat",
            )
        time.sleep(0.05)
    try:
        document = integrity.document_of(folder / "device.json")
        fine = document["simulator"] == kernels.DIGEST and document["preset"] in PRESETS
        fine = fine and all(type(document[name]) is kind for name, kind in SAID.items())
        return document if fine and document["drive_bytes"] > 0 <= document["host_written_bytes"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def restore(device, folder: Path) -> None:
    """Give a device, made with the flash of `folder`, what the other two files hold. Raises DriveError."""
    try:
        document = integrity.document_of(folder / "device.json")
        device.store.restore(folder)
        for name in COUNTED:
            setattr(device, name, document["counted"][name])
        if device.reserve and document.get("capacitors"):
            device.reserve.restore(document["capacitors"])
        if device.faults and (folder / device.faults.FILE).exists():
            device.faults.restore(folder, device.drive.pages)
    except (OSError, EOFError, zipfile.BadZipFile, ValueError, KeyError, TypeError) as error:
        raise DriveError(
            f"a kept drive in {folder}", f"{type(error).__name__}: {error}", "begin the run again"
        ) from error


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.lock")
