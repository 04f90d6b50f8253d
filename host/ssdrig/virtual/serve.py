"""ssdrig virtual: the SIMULATED drive alone as an NBD server, for any NBD client; its ledger; its ageing."""

import argparse
import ipaddress
import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from ssdrig.base import prctl
from ssdrig.base.arguments import Parser
from ssdrig.base.errors import DriveError, JournalError, SsdrigError, UsageError
from ssdrig.base.overprovisioning import tested_bytes
from ssdrig.base.words import parse_bytes, size
from ssdrig.virtual.flash import presets

MOST_HANDLES = 8  # of data placement
EXAMPLES = (
    ("virtual --list-presets", "which drives there are"),
    ("virtual --preset sata-tlc --socket /tmp/drive", "serve one over NBD, for any client"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--preset", metavar="PRESET", help="which drive (see --list-presets)")
    add(
        "--op",
        type=float,
        metavar="PERCENT",
        help="over-provisioning as a share of raw NAND (default: the preset's own)",
    )
    add("--socket", metavar="PATH", help="unix socket for NBD; PATH.admin and PATH.truth are next to it")
    add(
        "--nvme-tcp",
        metavar="ADDRESS:PORT",
        nargs="?",
        const="127.0.0.1:4420",
        help="serve NVMe/TCP at this address (default 127.0.0.1:4420; port 0: any free one); --socket is then optional",
    )
    add(
        "--placement-handles",
        type=int,
        default=0,
        metavar="N",
        help="over NVMe/TCP, with data placement (FDP) by this many handles",
    )
    add("--no-latency", action="store_true", help="answer immediately; work, wear and energy are still counted")
    add("--capacity", metavar="SIZE", help="user capacity, e.g. 4GiB (default: the preset's)")
    add(
        "--data",
        default="sparse",
        metavar="WHERE",
        help="sparse: private file on disk (default); crc: 4 bytes a page, reads"
        " give a pattern; otherwise the path of a file to keep",
    )
    add("--feed", metavar="FILE", help="power feed for the simulated sensor chip")
    add("--truth", metavar="DIR", help="write the ledger and the energy record there, once a second")
    add(
        "--drive-faults",
        metavar="JSON",
        help='faults at a loss of power, such as {"lying_flush": 1} (host/docs/use/virtual.md)',
    )
    add("--state", metavar="FILE", help="start from this snapshot (see precondition)")
    add("--kept", metavar="DIR", help="start from the drive that a run has kept there (RUN/drive)")
    add("--die-with-parent", action="store_true", help="end when the process that started this one ends")
    add("--tell-progress", action="store_true", help=argparse.SUPPRESS)  # lines before the one that reports it ready
    add("--list-presets", action="store_true", help="list the presets and end (--json: all their constants)")
    add("--json", action="store_true", help="with --list-presets: print one JSON object on stdout")
    actions = parser.add_subparsers(dest="action", metavar="COMMAND")
    words = "print the truth of a drive as JSON"
    ledger = actions.add_parser("ledger", help=words, description=words)
    where = ledger.add_mutually_exclusive_group(required=True)
    where.add_argument("--socket", dest="ledger_socket", metavar="PATH", help="socket of a drive that is being served")
    where.add_argument("--truth", dest="ledger_truth", metavar="DIR", help="its truth folder, also after its end")
    words = "age a drive offline, much faster than through NBD, and keep its state"
    age = actions.add_parser("precondition", help=words, description=words)
    age.add_argument(
        "--preset", dest="age_preset", metavar="PRESET", required=True, help="which drive (see --list-presets)"
    )
    age.add_argument(
        "--capacity", dest="age_capacity", metavar="SIZE", help="user capacity, e.g. 8GiB (default: the preset's)"
    )
    age.add_argument("--fill", choices=("seq", "random"), required=True, help="how it is written")
    age.add_argument(
        "--drive-writes",
        type=float,
        required=True,
        metavar="X",
        help="how much is written, in units of the user capacity",
    )
    age.add_argument("--seed", type=int, default=1, metavar="N", help="random seed (default %(default)s)")
    age.add_argument("--state", dest="age_state", required=True, metavar="FILE", help="continues from it if it exists")
    words = "store a saved drive without power for a time, so that its data decays"
    shelf = actions.add_parser("age", help=words, description=words)
    shelf.add_argument(
        "--state", dest="aged_state", required=True, metavar="DIR", help="where a run has kept it (RUN/drive)"
    )
    shelf.add_argument("--hours", type=float, metavar="H", help="how long")
    shelf.add_argument("--celsius", type=float, metavar="T", help="how warm, °C")
    shelf.add_argument("--profile", metavar="FILE", help="in place of both: a line `hours,celsius` for each step")


def check(args: argparse.Namespace) -> None:
    """Raises UsageError for a drive that there is not, or one that cannot be reached."""
    if args.action == "precondition":
        presets.named(args.age_preset)
        if args.age_capacity:
            parse_bytes(args.age_capacity)
    if args.action == "ledger":
        if args.ledger_socket and not os.path.exists(f"{args.ledger_socket}.truth"):
            do = f"see whether it still runs: {args.ledger_socket}"
            raise DriveError("the virtual drive to answer", f"no {args.ledger_socket}.truth", do)
        if args.ledger_truth and not os.path.exists(f"{args.ledger_truth}/ledger.json"):
            do = "give the folder that --truth named"
            raise JournalError(f"ledger.json in {args.ledger_truth}", "no such file", do)
    if args.action == "age":
        storage(args.hours, args.celsius, args.profile)
    if args.action or args.list_presets:
        return
    if not args.preset:
        raise UsageError("--preset", "none", "see ./ssdrig virtual --help")
    presets.named(args.preset)
    if not args.socket and not args.nvme_tcp:
        raise UsageError("--socket or --nvme-tcp", "neither", "see ./ssdrig virtual --help")
    if args.capacity:
        parse_bytes(args.capacity)
    if args.nvme_tcp:
        parse_address(args.nvme_tcp)
    if args.placement_handles and not (args.nvme_tcp and 0 < args.placement_handles <= MOST_HANDLES):
        expected, seen = f"--nvme-tcp and at most {MOST_HANDLES} placement handles", f"{args.placement_handles}"
        raise UsageError(expected, seen, "see ./ssdrig virtual --help")


def command(args: argparse.Namespace) -> int:
    check(args)
    if args.action == "ledger":
        return show_ledger(args)
    if args.action == "precondition":
        return precondition(args)
    if args.action == "age":
        return age(args)
    if args.list_presets:
        return list_presets(args.json)
    return serve(args)


def serve(args: argparse.Namespace) -> int:
    from ssdrig.base import kernels
    from ssdrig.virtual import server
    from ssdrig.virtual.device import injector, pdu, persistence, placement, powerfaults
    from ssdrig.virtual.device.device import Device, warm_up
    from ssdrig.virtual.flash import feed

    if args.die_with_parent:
        prctl.die_with_parent(os.getppid(), signal.SIGTERM)  # time to keep the drive
    preset = presets.named(args.preset)
    faults = powerfaults.parsed(args.drive_faults) if args.drive_faults is not None else {}
    nvme_tcp = parse_address(args.nvme_tcp) if args.nvme_tcp else None
    if args.tell_progress:
        kernels.tell_progress(lambda line: print(json.dumps(line), flush=True))
    warm_up(preset)
    if nvme_tcp:
        pdu.warm_up()
    t0_ns = time.monotonic_ns()
    if args.feed:
        ring = feed.create(args.feed, t0_ns, preset.time_dilation, round(preset.rail_V * 1000))
    else:
        ring = np.full((feed.BINS, 2), 0xFFFFFFFF, dtype=np.uint32)
        ring[:, 1] = 0
    device = running = None
    try:
        state = str(Path(args.kept) / "flash.npz") if args.kept else args.state
        drive = _drive(preset, args.capacity, state, latency=not args.no_latency, ring=ring)
        size = tested_bytes(drive.pages * 4096, drive.raw_nand_bytes, args.op)
        device = Device(preset, drive, size, args.data, t0_ns, ring, latency=not args.no_latency)
        if args.placement_handles:
            device.placement = placement.Placement(args.placement_handles, preset.block_pages)
        if faults:
            device.faults = injector.Injector(faults)
            device.faults.check(device)
        if args.kept:
            persistence.restore(device, Path(args.kept))
        running = server.Server(device, args.socket, args.truth, nvme_tcp)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, running.stop)
        ready = device.identity() | {"socket": args.socket, "admin": args.socket and args.socket + ".admin"}
        if running.nvme_tcp:
            ready |= _say_how_to_connect(running.subsystem.nqn, *running.nvme_tcp)
        print(json.dumps(ready), flush=True)
        running.run()
    finally:
        if running:
            running.close()
        if device:
            device.close()
        if args.feed:
            feed.unlink(args.feed)
    return 0


def parse_address(text: str) -> tuple[str, int]:
    """ "127.0.0.1:4420" or "[::1]:4420" -> (address, port); both must be written out. Raises UsageError."""
    address, _, port = text.rpartition(":")
    address = address[1:-1] if address.startswith("[") and address.endswith("]") else address
    try:
        ipaddress.ip_address(address)
        if not 0 <= int(port) < 65536:
            raise ValueError(port)
    except ValueError as e:
        raise UsageError("an IP address and a port such as 127.0.0.1:4420", text, "write both out") from e
    return address, int(port)


def _say_how_to_connect(nqn: str, address: str, port: int) -> dict:
    """The commands that attach the drive to a Linux kernel; printed on stderr, returned for the ready line."""
    connect = f"nvme connect -t tcp -a {address} -s {port} -n {nqn} --reconnect-delay=1 --ctrl-loss-tmo=60"
    print(f"as root: {connect}\n(missing module: modprobe nvme-tcp; end: nvme disconnect -n {nqn})", file=sys.stderr)
    if not ipaddress.ip_address(address).is_loopback:
        print(f"anyone who reaches {address}:{port} may read and erase this SIMULATED drive", file=sys.stderr)
    return {
        "nvme_tcp": f"[{address}]:{port}" if ":" in address else f"{address}:{port}",
        "nqn": nqn,
        "nvme_connect": connect,
    }


def show_ledger(args: argparse.Namespace) -> int:
    if args.ledger_socket:
        from ssdrig.virtual import adminclient

        ledger = adminclient.ask(args.ledger_socket + ".truth", {"op": "ledger"})
    else:
        from ssdrig.virtual.device import truth

        ledger = truth.read_ledger(args.ledger_truth)
    print(json.dumps(ledger, indent=1))
    return 0


def precondition(args: argparse.Namespace) -> int:
    from ssdrig.base.progress import Progress
    from ssdrig.base.words import clock

    drive = _drive(
        presets.named(args.age_preset), args.age_capacity, args.age_state if os.path.exists(args.age_state) else None
    )
    show, started = Progress(), time.monotonic()

    def progress(done: int, total: int) -> None:
        left = (time.monotonic() - started) * (total - done) / done
        wa = drive.ledger()["wa"]
        show.show(f"precondition {args.fill}: {100 * done / total:5.1f} %, {clock(left)} left, WA so far {wa:.3f}")

    drive.precondition(args.fill, args.drive_writes, args.seed, progress)
    drive.save(args.age_state)
    print(json.dumps(drive.ledger(), indent=1))
    show.say(f"state kept in {args.age_state}")
    return 0


def age(args: argparse.Namespace) -> int:
    from ssdrig.virtual.device import persistence

    print(json.dumps(persistence.age(Path(args.aged_state), storage(args.hours, args.celsius, args.profile)), indent=1))
    return 0


def storage(hours: float | None, celsius: float | None, profile: str | None) -> list[tuple[float, float]]:
    """(hours, C) of each step, from --hours and --celsius or from a file. Raises UsageError."""
    if profile is None and hours is not None and celsius is not None:
        return [(hours, celsius)]
    if profile is None or hours is not None or celsius is not None:
        raise UsageError("--hours and --celsius, or --profile", "neither or parts of both", "give one of them")
    try:
        lines = [line.partition("#")[0].strip() for line in Path(profile).read_text().splitlines()]
        steps = [tuple(map(float, line.split(","))) for line in lines if line]
        return [(hours, celsius) for hours, celsius in steps]
    except (OSError, ValueError) as e:
        raise UsageError(f"lines of `hours,celsius` in {profile}", str(e), "write a line for each step") from e


def list_presets(as_json: bool) -> int:
    from dataclasses import asdict

    if as_json:
        print(json.dumps({name: asdict(preset) for name, preset in presets.PRESETS.items()}, indent=1))
        return 0
    rows = [("PRESET", "MODEL", "CAPACITY", "RAW NAND", "TBW", "TIME x")]
    for name, preset in presets.PRESETS.items():
        pages, _, raw_nand_bytes = preset.geometry(None)
        rated = size(preset.rated_write_bytes(pages * 4096))
        rows.append((name, preset.model, size(pages * 4096), size(raw_nand_bytes), rated, str(preset.time_dilation)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0


def _drive(preset, capacity: str | None, state: str | None, **how):
    from ssdrig.virtual.flash.drive import VirtualDrive

    capacity_bytes = parse_bytes(capacity) if capacity else None
    if not state:
        return VirtualDrive(preset, capacity_bytes=capacity_bytes, **how)
    drive = VirtualDrive.load(state, known=presets.PRESETS, **how)
    for what, asked, value in (
        ("preset", preset.name, drive.preset.name),
        ("capacity", capacity_bytes, drive.capacity_bytes),
    ):
        if asked is not None and asked != value:
            raise UsageError(f"a state of {what} {asked}", f"{value} in {state}", "give the same as when it was made")
    return drive


def main(words: list[str] | None = None) -> int:
    """The command as its own process; its exit code."""
    parser = Parser(prog="ssdrig virtual", description=__doc__)
    add_arguments(parser)
    try:
        return command(parser.parse_args(words))
    except SsdrigError as error:
        print(f"ssdrig virtual: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
