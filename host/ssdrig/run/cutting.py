"""The options of `ssdrig run powerloss`, and what of a real drive or an NBD server it works on."""

import argparse
import os
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ssdrig.base.deferred import Deferred
from ssdrig.base.errors import DriveError, UnsafeTarget, UsageError
from ssdrig.base.overprovisioning import whole_MiB
from ssdrig.base.terminal import printable
from ssdrig.drive import inventory, slot
from ssdrig.drive.inventory import Drive
from ssdrig.plan.expand import Act
from ssdrig.plan.kinds import cut_filesystems
from ssdrig.powerloss import filesystems
from ssdrig.switch import switch

if TYPE_CHECKING:
    from ssdrig.powerloss import supply, target
    from ssdrig.run import bench
else:
    bench = Deferred("ssdrig.run.bench")
    supply, target = Deferred("ssdrig.powerloss.supply"), Deferred("ssdrig.powerloss.target")

PLAN = "powerloss"
NBD = ("nbd://", "nbd+unix://")
FIRST_S = 30.0  # for a server that listens to answer
# a virtual drive is small and fast: a second shows what five of a real one do
VIRTUAL = {
    "aims": '{ random = 30, flush = 5, fua = 5, "bytes:0..1" = 5, age = 5, recovery = 5 }',  # bursts would take minutes
    **{"cuts": "60", "write": "1 s", "off_time": "0.6 s", "window": "64 MiB"},
}


SWITCH = "switch of the drive's power: usb:HUB.PORT, slot:NAME, scpi:RESOURCE (host/docs/use/meters.md)"


class Switched(argparse.Action):
    """--switch is short for --power-off and --power-on with the same URL."""

    def __call__(self, parser, namespace, values: Any, option_string=None):
        namespace.switch = namespace.power_off = namespace.power_on = values


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("power loss (run powerloss)").add_argument
    add("--cuts", type=int, metavar="N", help="number of cuts (control sessions come on top)")
    add("--until", metavar="BOUND", help='stop once the chance of a failing cut is known to be below this: "p<1%%"')
    add(
        "--stop",
        choices=("last", "first"),
        help="stop at the first cut that breaks a promise, or after the last cut (default)",
    )
    add("--only-cut", type=int, metavar="N", help="repeat only session N; give the --seed of that run")
    add(
        "--target",
        metavar="TARGET",
        help="drive to test without a rig: nbd+unix:///?socket=…, nbd://host:port/export or /dev/disk/by-id/…; all data"
        " on it is destroyed",
    )
    add("--power-off", metavar="CMD", help="shell command that switches the power off and returns when it is off")
    add("--power-on", metavar="CMD", help="shell command that switches it on again")
    add("--switch", action=Switched, default=None, metavar="URL", help=SWITCH)
    add(
        "--plp-claimed",
        action="store_true",
        help="the drive is claimed to have power-loss protection: it must keep every acknowledged write",
    )
    add(
        "--filesystems",
        metavar="NAMES",
        help="make these file systems at the end of the drive, and have a log and two SQLite databases write to each:"
        ' "ext4 xfs btrfs"; mount options follow a colon',
    )
    add(
        "--bridge-is-part",
        action="store_true",
        help="test the drive together with the bridge between it and this kernel (a USB or RAID bridge, a virtual"
        " machine): its cache counts as the drive's",
    )


def check(args: argparse.Namespace) -> None:
    """Raises UsageError; a target that is a node of this machine becomes the --drive."""
    given = {f"--{name.replace('_', '-')}": getattr(args, name) for name in ("cuts", "until", "stop", "only_cut")}
    given |= {"--power-off": args.power_off, "--power-on": args.power_on, "--target": args.target}
    given |= {"--filesystems": args.filesystems}
    given |= {"--plp-claimed": args.plp_claimed or None, "--bridge-is-part": args.bridge_is_part or None}
    for option, value in given.items():
        if value is not None and args.plan != PLAN and not str(args.plan).endswith(".toml"):
            raise UsageError(f"{option} only with {PLAN}", f"{option} with {args.plan}", f"leave {option} out")
    for option in ("--cuts", "--only-cut"):
        if given[option] is not None and given[option] < 1:
            raise UsageError(f"{option} of at least 1", str(given[option]), "correct it")
    if args.switch:
        if args.power_off != args.switch or args.power_on != args.switch:
            raise UsageError("--switch, or --power-off and --power-on", "both", "leave one out")
        switch.check(args.switch)
    if bool(args.power_off) != bool(args.power_on):
        raise UsageError("--power-off and --power-on together", "one of them", "give both commands")
    if args.target and args.target.startswith(inventory.BY_ID + "/"):
        if args.drive:
            raise UsageError("--drive or --target", "both", "leave one out")
        args.drive, args.target = args.target, None
    if args.target and not args.target.startswith(NBD):
        raise UsageError(
            f"--target {NBD[1]}/?socket=…, {NBD[0]}host:port/export or {inventory.BY_ID}/…",
            args.target,
            "name a drive by its by-id path: ./ssdrig drives",
        )
    if args.target and not args.power_off:
        raise UsageError(
            "--power-off and --power-on with --target", "neither", "name the commands for its power: --power-off CMD"
        )
    if args.filesystems not in (None, cut_filesystems.NONE) and (args.virtual or args.target):
        filesystems.refuse_server([args.filesystems])
    if args.virtual and args.power_off:
        raise UsageError("--power-off without --virtual", "both", "the virtual bench has a rig: leave it out")


def commands(args: argparse.Namespace) -> tuple[str, str] | None:
    """The two commands that switch the supply."""
    return (args.power_off, args.power_on) if args.power_off else None


def data(acts: Iterable[Act]) -> str:
    """Data that a virtual drive stores (virtual/bench.py): all of it if the plan reads back."""
    return "sparse" if any(act.do in ("cuts", "retain", "recall") for act in acts) else "crc"


def refuse(drive: Drive, args: argparse.Namespace) -> None:
    """Raises UnsafeTarget or DriveError where a verdict would not be the drive's own."""
    if args.plan == PLAN:
        target.refuse(drive, args.bridge_is_part, args.plp_claimed)


def refuse_switch(drive: Drive, commands: tuple[str, str] | None, root: str | os.PathLike = "/") -> None:
    """Raises UnsafeTarget for a switch that takes the power of another disk, or of a slot that the drive is not in.
    What a shell command or an instrument switches is unknown: the first cut shows whether it is the drive."""
    url = commands[0] if commands and commands[0] == commands[1] and switch.is_url(commands[0]) else ""
    folders = switch.feeds(url, root) if url else ()
    if not folders:
        return
    disks = slot.disks_at(folders, root)
    own = [disk for disk in disks if disk.name == drive.name or disk.unit and disk.unit == drive.unit]
    named = f"{printable(drive.model)} {printable(drive.serial)}".strip()
    do = "name the drive's own switch, or connect the drive apart from other disks"
    if others := [disk for disk in disks if disk not in own]:
        seen = ", ".join(f"{disk.node} ({printable(disk.model) or 'model unknown'})" for disk in others)
        raise UnsafeTarget(f"a switch of the power of {named} alone", f"{url} also feeds {seen}", do)
    if url.startswith("slot:") and not own:
        raise UnsafeTarget(f"the slot of {named}", f"{url}, which holds another device", do)


def refuse_rig(hello: Mapping, bench: "bench.Bench", acts: Iterable[Act], may_cut: bool = False) -> None:
    """Raises UsageError where acts, or the run's owner (`may_cut`), cut by a rig that cannot. hello: the rig's."""
    by_acts = any(act.do == "cuts" and not act.not_run for act in acts) and not (bench.target and bench.target.commands)
    if not (by_acts or may_cut):
        return
    if not any(row["rail"] == supply.RAIL for row in (hello.get("switch") or {}).get("rails") or ()):
        do = "leave --allow-cut out" if may_cut and not by_acts else "give --power-off and --power-on"
        do = f"use a board with one (hardware/README.md), or {do}"
        raise UsageError(f"a rig that switches rail {supply.RAIL}", "one that only measures", do)


def describe(
    drive: Drive, plp_claimed: bool, commands: tuple[str, str] | None, acts: Sequence[Act], say: Callable[[str], object]
) -> None:
    """What the drive promises, what of it cannot be tested, and how it comes back. Raises UnsafeTarget where its slot
    could not give it back, or where the switch would take the power of another disk too."""
    if not any(act.do == "cuts" for act in acts):
        return
    place = slot.refuse(drive)
    refuse_switch(drive, commands)
    say(f"slot: {place.words}; rehearsed before the first cut")
    for act in acts:
        if act.do == "cuts" and act.keys["filesystems"]:
            filesystems.refuse(act.keys["filesystems"], drive.capacity_bytes)
            filesystems.refuse_place(act.keys["filesystems"], place)
            say(filesystems.describe(act.keys["filesystems"]))
    promise = target.of_drive(drive, plp_claimed)
    say("\n".join(promise_words(promise, target.cannot(drive, slot.announces(place, drive)))))


def refuse_server(acts: Iterable[Act]) -> None:
    """Raises UsageError for file systems on an NBD drive."""
    for act in acts:
        if act.do == "cuts":
            filesystems.refuse_server(act.keys["filesystems"])


def say(bench: "bench.Bench", acts: Sequence[Act], tell: Callable[[str], object]) -> None:
    """The same for an existing bench. Raises UsageError for file systems that it does not support."""
    refuse_server(acts)
    if bench.target and any(act.do == "cuts" for act in acts):
        tell("\n".join(promise_words(bench.target.promise(), bench.target.cannot)))


def promise_words(promise: "target.Promise", cannot: Iterable[str]) -> list[str]:
    """The guarantees that a drive is judged by, and the others, one per line."""
    blocks = f"{promise.atomic_blocks} block{'s' * (promise.atomic_blocks > 1)} of {promise.block_bytes} B"
    trimmed = (
        f"trimmed blocks read as {promise.after_trim}" if promise.after_trim else "trimmed blocks read as anything"
    )
    whole = f"writes of {blocks} are whole" if promise.atomic_blocks else "a block under way may be left in parts"
    lines = [f"promise tested: {promise.why}; {whole}; {trimmed}"]
    return lines + [f"cannot be tested: {reason}" for reason in cannot]


def server(drive: Mapping) -> "bench.Bench":
    """The bench around an NBD server, as described() has it, its target and commands as they were typed."""
    return bench.nbd(drive["target"], dict(drive), (drive["power_off"], drive["power_on"]), drive["plp_claimed"])


def described(uri: str, power_off: str, power_on: str, plp_claimed: bool) -> dict:
    """The part of run.json. Raises DriveError without an answer; a listening server is asked for FIRST_S."""
    deadline = time.monotonic() + FIRST_S
    while True:
        try:
            link = target.of_nbd(uri, (power_off, power_on), plp_claimed).open()
            break
        except DriveError as error:  # a server without CPU time listens but does not answer yet
            if not isinstance(error.__cause__, TimeoutError) or time.monotonic() > deadline:
                raise
    try:
        size = link.size_bytes
    finally:
        link.close()
    return {
        "simulated": False,
        "model": "NBD server",
        "serial": uri,
        "firmware": None,
        "interface": "nbd",
        "logical_block_bytes": target.NBD_BLOCK_BYTES,
        "capacity_bytes": whole_MiB(size),
        "raw_nand_bytes": None,
        "rated_write_bytes": None,
        "time_dilation": 1,
        "target": uri,
        "power_off": power_off,
        "power_on": power_on,
        "plp_claimed": plp_claimed,
    }


def confirmed(args: argparse.Namespace) -> None:
    """Raises UsageError unless --destroy-data names the target: all of its data goes."""
    if args.destroy_data != args.target:
        expected = "the target named again, because all of its data is destroyed"
        seen = f"--destroy-data {args.destroy_data}" if args.destroy_data else "no --destroy-data"
        raise UsageError(expected, seen, f"add --destroy-data {printable(shlex.quote(args.target))}")


def sets(args: argparse.Namespace) -> dict[str, str]:
    """The parameters that the options set."""
    choices: dict[str, str] = {}
    if args.plan == PLAN and args.virtual and args.variant is None:
        choices |= VIRTUAL
    settings: dict[str, Any] = {"cuts": args.cuts, "bound": args.until, "stop": args.stop, "only": args.only_cut}
    settings["filesystems"] = args.filesystems
    return choices | {name: str(value) for name, value in settings.items() if value is not None}
