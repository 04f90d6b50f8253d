"""What a campaign works on: a link to the drive that may break, what the drive promises, and how it goes and comes back
when its power does."""

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ssdrig.base.errors import DriveError, SsdrigError, UnsafeTarget
from ssdrig.blockio.slots import Transport
from ssdrig.drive import ata_security, block, nvme_cli, sysfs
from ssdrig.drive import slot as slots
from ssdrig.drive.guard import Held, lost_mark
from ssdrig.drive.identity import IDENTIFY
from ssdrig.drive.inventory import Drive
from ssdrig.drive.slot import Slot
from ssdrig.powerloss import promise
from ssdrig.powerloss.filesystems import Filesystems
from ssdrig.powerloss.promise import ACK, FLUSH, Promise
from ssdrig.powerloss.targets import connected

NBD_BLOCK_BYTES = 4096
KERNEL_S = 120.0  # a kernel gives up on a command after 30 s, and may repeat it
SERVER_S = 30.0  # commands to a server are not repeated
IDENTIFY_S = 60.0  # a starved host takes long to start nvme-cli
VIRTUAL_DISKS = ("QEMU", "VMware", "VBOX", "Msft", "Xen", "Virtual", "LIO-ORG")  # how such disks name themselves
ATOMIC = "atomic writes of more than one block: {}"
QUEUE = ("write_cache", "fua", "max_sectors_kb", "max_segments", "nomerges", "chunk_sectors")


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Target:
    """`open` links to the drive (OSError or SsdrigError while it is not there), by several queues if it is given how
    many, `promise` returns its guarantees, `away`
    lets go of it before its power returns, `back` takes hold of it again (SsdrigError while it is not there),
    `announce` announces the loss of power; None: this bench cannot. `ended`: it will not come back, whatever is done,
    for the process that simulates it has ended. `settle_s`: a command that has not ended by then hangs.
    `queues_deleted`: the drive cannot know a command from before its power returned. `commands`: of a shell, that take
    its power and give it back; None: the rig does.
    `cannot`: what cannot be tested here, and why. `remember` reads some places, byte offsets, that must not have
    changed when a later step writes after an absence; `exchanged` makes the error for a drive that shows nothing of
    the written data; None: no other drive can be in its place. `slot`: of the drive of this machine, which may have to
    be made to give it back; None: no kernel between. `others`: the disks of this machine whose power is not to be
    cut."""

    open: Callable[..., Transport]
    promise: Callable[[], Promise]
    away: Callable[[], None] = _nothing
    back: Callable[[], None] = _nothing
    announce: Callable[[], None] | None = None
    ended: Callable[[], bool] = lambda: False
    settle_s: float = KERNEL_S
    queues_deleted: bool = True
    commands: tuple[str, str] | None = None
    cannot: tuple[str, ...] = ()
    remember: Callable[[Sequence[int]], object] = lambda offsets: None
    exchanged: Callable[[int], SsdrigError] | None = None
    slot: Slot | None = None
    filesystems: Callable[[Sequence[Sequence[str]]], Filesystems] | None = None
    others: Callable[[], Sequence[Drive]] = list


def remember(held: Held, offsets: Sequence[int], proven: bool = False) -> dict[int, str] | None:
    """Read 4 KiB at each byte offset as marks of the drive that is held, without what cannot be read: Held.digests().

    proven: as for Held.mark()"""
    with contextlib.suppress(DriveError, UnsafeTarget):
        contents = block.read(held.path, list(offsets))
        blocks = {at: content for at, content in zip(offsets, contents, strict=True) if content is not None}
        held.mark(blocks, proven)
    return held.digests()


def of_virtual(
    uri: str, drive: Mapping, announce: Callable[[], None], ended: Callable[[], bool] = lambda: False
) -> Target:
    """The virtual drive over NBD. Its block there is 4 KiB, its atomic unit."""
    volatile = bool(drive["write_cache_bytes"]) and not drive["plp"]
    why = "its cache is volatile" if volatile else "it keeps acknowledged data"
    guarantee = Promise(
        FLUSH if volatile else ACK, NBD_BLOCK_BYTES, 1, 0, 0, "zeros", True, f"the SIMULATED drive: {why}"
    )
    cannot = (ATOMIC.format("NBD promises none"),)
    link = lambda queues=1: connected(uri, queues)
    return Target(link, lambda: guarantee, announce=announce, ended=ended, settle_s=SERVER_S, cannot=cannot)


def of_nbd(uri: str, commands: tuple[str, str], claimed: bool) -> Target:
    """An NBD server: FLUSH and FUA as it offers them."""
    mode = ACK if claimed else FLUSH
    why = (
        "the user claims that it keeps all that it acknowledges" if claimed else "NBD: what FLUSH or FUA covers is kept"
    )
    guarantee = Promise(mode, NBD_BLOCK_BYTES, 0, 0, 0, None, not claimed, why)
    cannot = (
        "whether a block under way is whole: NBD promises it of none, however small",
        "how trimmed blocks read: not defined by NBD",
        "an announced loss of power: NBD knows none",
        "what the drive counts: NBD has no SMART",
    )
    link = lambda queues=1: connected(uri, queues)
    return Target(link, lambda: guarantee, settle_s=SERVER_S, commands=commands, cannot=cannot)


def of_held(held: Held, commands: tuple[str, str] | None, claimed: bool) -> Target:
    """A block device of this machine, held by the guard."""

    slot = Slot(held.drive, held.root)

    def away() -> None:
        slot.away()
        held.let_go()

    def back() -> None:
        slot.look()
        try:
            now = held.recheck(follow=True)
        except UnsafeTarget:
            slot.refuse_stranger()
            raise
        slot.seen(now)

    def promised() -> Promise:
        with held.named() as drive:
            return of_drive(drive, claimed)

    nvme = held.drive.interface.startswith("NVMe")
    announced = slots.announces(slot.place, held.drive, held.root)
    return Target(
        lambda queues=1: connected(held.path, queues),
        promised,
        away,
        back,
        slot.drop if announced else None,
        queues_deleted=nvme,
        commands=commands,
        cannot=cannot(held.drive, announced),
        remember=lambda offsets: remember(held, offsets, proven=True),  # _prove() has read its stamps
        exchanged=lambda places: lost_mark(held.drive, places),
        slot=slot,
        filesystems=lambda asked: Filesystems(asked, held.drive.capacity_bytes, lambda: held.path),
        others=lambda: slots.bystanders(held.drive, held.root),
    )


def of_drive(drive: Drive, claimed: bool, root: str | os.PathLike = "/") -> Promise:
    """The guarantees of a local drive that can be tested through the kernel. Raises DriveError."""
    queue = {name: sysfs.text(sysfs.within(root, "sys/block", drive.name, "queue", name)) for name in QUEUE}
    if drive.controller:
        id_ctrl, of_controller = nvme_cli.identify(drive.controller, IDENTIFY_S)
        id_ns, of_namespace = nvme_cli.identify_namespace(drive.controller, drive.nsid or 1, IDENTIFY_S)
        if id_ctrl is None or id_ns is None:
            seen = str(of_controller["why"] or of_namespace["why"])
            raise DriveError(f"Identify of {drive.controller}", seen, "run it as root, with nvme-cli installed")
        from ssdrig.drive import features

        bits, _ = features.value(drive.controller, features.WRITE_CACHE)
        guarantee = promise.nvme(id_ctrl, id_ns, None if bits is None else bool(bits & 1), claimed)
    elif drive.interface == "SATA" or drive.serial_source == IDENTIFY:
        guarantee = promise.ata(ata_security.words(drive), claimed)
    else:
        folder = sysfs.within(root, "sys/block", drive.name, "device", "scsi_disk")
        cache_type = next((sysfs.text(folder, name, "cache_type") for name in sysfs.listing(folder)), "")
        sector_bytes = sysfs.number(sysfs.within(root, "sys/block", drive.name, "queue"), "physical_block_size")
        guarantee = promise.scsi(drive.logical_block_bytes, cache_type, claimed, sector_bytes or 0)
    return promise.heard(guarantee, queue)


def refuse(drive: Drive, bridge_is_part: bool, claimed: bool) -> Promise:
    """What the drive promises. Raises UnsafeTarget for one whose verdict would not be its own, DriveError where the
    kernel drops FLUSH."""
    named = f"{drive.model} {drive.serial}".strip()
    if not drive.serial:
        seen, do = "it shows no serial", "it could not be identified after a cut: use another"
        raise UnsafeTarget("a drive that is known by its serial", seen, do)
    virtual = drive.interface == "virtio" or any(drive.model.upper().startswith(w.upper()) for w in VIRTUAL_DISKS)
    if virtual and not bridge_is_part:
        do = "run it on the machine that has the drive, or judge the virtual machine with it: --bridge-is-part"
        raise UnsafeTarget("a drive, not the disk of a virtual machine", f"{named} ({drive.interface})", do)
    if not (drive.controller or drive.interface == "SATA") and not bridge_is_part:
        raise UnsafeTarget(
            "a drive that the kernel talks to itself",
            f"{named} on a bridge ({drive.interface}), whose cache and whose FLUSH are its own",
            "connect it by SATA or PCIe, or judge both together: --bridge-is-part",
        )
    return of_drive(drive, claimed)


def cannot(drive: Drive, announced: bool) -> tuple[str, ...]:
    """The tests impossible on a local drive, with reasons. `announced`: see slot.announces()."""
    reasons = [] if announced else ["an announced loss of power: the kernel does not announce a shutdown to this drive"]
    if sysfs.text(f"/sys/block/{drive.name}/queue/nomerges") != "2":
        reasons.append(ATOMIC.format(f"the kernel may merge commands (queue/nomerges of {drive.name} is not 2)"))
    if sysfs.text(f"/sys/block/{drive.name}/queue/fua") == "0":
        reasons.append("FUA: the kernel sends a write and a FLUSH in its place (queue/fua is 0)")
    if not drive.controller:
        reasons.append("GHOST with certainty: a SATA drive's queue outlives the link")
    return tuple(reasons)
