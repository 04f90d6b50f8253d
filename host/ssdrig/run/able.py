"""Checks, before anything starts, that this bench can run a plan or the rest of a run."""

import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ssdrig.base import uring, words
from ssdrig.base.errors import JournalError, UsageError
from ssdrig.blockio import aio
from ssdrig.drive import conditions, placement, sysfs
from ssdrig.drive.inventory import Drive
from ssdrig.meter import meter
from ssdrig.plan import expand, grammar
from ssdrig.plan.expand import Act
from ssdrig.plan.kinds import set as set_
from ssdrig.run import prepare

SETTINGS = {key: spec.needs for key, spec in set_.KEYS.items() if spec.needs}
FORMAT = ("capacity_bytes", "logical_block_bytes")


def of_real(
    drive: Drive, rig: str | None, needs: frozenset[str], commands: tuple[str, str] | None = None
) -> frozenset[str]:
    """What the bench around a real drive can do, of grammar.CAPABILITIES.

    needs: what the plans need; the drive is asked for no other ability.
    commands: that switch its power."""
    can = {"rig"} if rig else set()
    can |= {"cut"} if (rig and meter.is_rig(rig)) or commands else set()
    can |= {"player"} if aio.known() else set()
    can |= {"fdp"} if "fdp" in needs and not placement.why_not(drive) else set()
    can |= {"zoned"} if drive.has_zones else set()
    can |= {"polled"} if _polls(drive) and uring.allowed() else set()
    asked = [key for key, need in SETTINGS.items() if need in needs]
    can |= {SETTINGS[key] for key in asked if conditions.can_set(key, drive.name, controller=drive.controller)}
    return prepare.REAL | can


WHY_NOT = {
    "zoned": "the drive has no zones (queue/zoned)",
    "polled": "the drive has no polled queues (queue/io_poll; of NVMe by nvme.poll_queues)",
    "hmb": "the kernel shows no host memory buffer of the drive (/sys/class/nvme/nvmeN/hmb, Linux 5.15)",
    "aspm": "the kernel has no PCIe ASPM policy to set (/sys/module/pcie_aspm/parameters/policy)",
    "alpm": "the drive's port has no SATA link power management (scsi_host/hostN/link_power_management_policy)",
    "apst": "the drive has no autonomous power states (feature 0Ch)",
    "power-states": "the drive has no power states (feature 02h)",
    "write-cache": "the drive has no write cache that can be switched",
    "rig": "no --rig",
    "player": "the kernel has no asynchronous I/O for the player",
    "cut": "nothing that switches the drive's power",
}


def reasons(drive: Drive, needs: Iterable[str]) -> str:
    """Why the bench around a real drive has none of these, of grammar.CAPABILITIES."""
    known = {need: placement.why_not(drive) if need == "fdp" else WHY_NOT.get(need) for need in needs}
    if "polled" in known and _polls(drive):
        known["polled"] = uring.FORBIDDEN
    return "; ".join(f"{need}: {why}" if why else f"no {need}" for need, why in known.items())


def _polls(drive: Drive) -> bool:
    return sysfs.text(f"/sys/block/{drive.name}/queue/io_poll") == "1"


def of_server() -> frozenset[str]:
    """What can be done with an NBD server whose power two commands switch."""
    return frozenset({"cut", "fua"})


def terminal(acts: Iterable[Act]) -> None:
    """Raises UsageError if a plan asks the user and there is no terminal."""
    asks = [act for act in acts if act.do == "ask" and not act.not_run]
    if asks and not sys.stdin.isatty():
        raise UsageError(f"a terminal, since {asks[0].path} asks the user", "none", "start it in a terminal")


def the_rest(plan: grammar.Plan, acts: Sequence[Act], drive: Mapping, can: frozenset[str]) -> None:
    """Raises UsageError if the bench has lost an ability that these acts need."""
    now = {act.label: act.not_run for act in expand.expand(plan, drive, can)}
    for act in acts:
        if not act.not_run and (why := now.get(act.label)):
            raise UsageError(f"the bench that the run began on, for {act.path}", why, "give --rig PORT, or connect it")


def same_jobs(begun: object, crc: str) -> None:
    """Raises UsageError if fio would get another job than when the run began: `begun` is the plan's jobs_crc in
    run.json, `crc` that of the same acts now."""
    if begun != crc:
        do = (
            "go on with the ssdrig that began it, with io_uring, CPUs and locked memory as then, or begin the run again"
        )
        raise UsageError("the fio jobs that the run began with", "other ones", do)


def same_rig(known: Mapping | None, rig: str | None, without: bool) -> None:
    """Raises UsageError where a run that measured power would go on without, unless that is asked for. `known`: the rig
    of its last part."""
    if rig and without:
        raise UsageError("--rig or --without-rig", "both", "leave one out")
    if known and not rig and not without:
        do = "give --rig PORT, or --without-rig: the rest then has no power and no energy"
        raise UsageError(f"the rig of the run, which was at {known.get('port')}", "no --rig", do)


def same_format(drive: Mapping, known: Mapping) -> None:
    """Raises UsageError for a drive that was formatted to another size since the run began."""
    for key in FORMAT:
        if known.get(key) is not None and drive[key] != known[key]:
            expected = f"the drive as when the run began, {key} {known[key]}"
            raise UsageError(expected, f"{drive[key]}", "format it as it was, or begin a run on it as it is")


def room(runs: str | os.PathLike, least_bytes: float) -> None:
    """Raises JournalError where no folder can be made at `runs`, or where the disk below it lacks room for what fio
    writes there at least: without it a run of days would end when the disk is full."""
    above = Path(runs).absolute()
    while not os.path.lexists(above) and above != above.parent:
        above = above.parent
    if not above.is_dir():
        raise JournalError(f"a folder for runs at {runs}", f"{above}, which is not a folder", "choose another --runs")
    if not os.access(above, os.W_OK | os.X_OK):
        raise JournalError(f"a folder for runs at {runs}", f"no right to write in {above}", "choose another --runs")
    try:
        free_bytes = shutil.disk_usage(above).free
    except OSError:
        return  # the run folder cannot be made there either, which reports the reason
    if free_bytes < least_bytes:
        do = "choose another --runs, or make room"
        raise JournalError(f"at least {words.size(least_bytes)} free in {runs}", words.size(free_bytes), do)
