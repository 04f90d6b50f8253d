"""The options of `ssdrig run`, and whether they fit together: whatever can be refused is refused before anything
starts."""

import argparse
import json
import math
import os
import random
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ssdrig.base.arguments import RIG, Parser, add_dry_run, add_quiet, whole_seconds
from ssdrig.base.errors import UsageError
from ssdrig.base.overprovisioning import assumed_raw_bytes, whole_MiB
from ssdrig.base.terminal import printable
from ssdrig.base.words import parse_bytes
from ssdrig.drive import identity, inventory
from ssdrig.drive.identity import Identity
from ssdrig.drive.wear import raw_nand as raw_nand_of
from ssdrig.publish.influx import sender
from ssdrig.run import bmc, cutting, keeping

LONGEST_S = 10_000_000  # 116 days
VIRTUAL_DURATION_S = 60  # the virtual drives are small: all that 2000 s show of a real one shows in 60
OWN, ASSUMED = "own", "assumed"
SEED, MOST_REPEATS = 4242, 100
SEEDS_EACH = 100_000  # of one of several runs: more than any plan has fio jobs
HIGHEST_SEED = (1 << 63) - 2  # fio takes 63 bits, and the load uses the next seed
FINISH = ("keep", "trim", "purge")
PURGE_METHOD = "how to empty a real drive (./ssdrig purge DRIVE --dry-run lists the methods; default: the best it has)"
DRIVE = "serial or /dev/disk/by-id path (./ssdrig drives lists them); all data on it is destroyed"
MANY = "; repeat it to start on several drives together"
RAW_NAND = (
    "raw NAND capacity of a real drive, e.g. 256GiB (base of --op; default: the model's, if reviews name it);"
    " `assumed`: otherwise the next power of two, and every result is marked"
)
OP = (
    "over-provisioning as a share of raw NAND: 25 tests 0.75 of raw; a list such as own,25,50 makes one run for each"
    " and a table (own: the drive's default)"
)
BMC_POWER = (
    "also record the power of the whole host as its BMC reports it: redfish://USER@HOST, password in"
    " $SSDRIG_BMC_PASSWORD, SHA-256 of a certificate that it signed itself in $SSDRIG_BMC_FINGERPRINT"
)
STEADY_FROM = "start of the window `steady`, which ends with the load (reviews: 1400 of 2000; default: 70 %%)"
ALLOW_CUT = (
    "let `serve --control` cut the drive's power by the rig while a step fills, loads, replays or idles; the run then"
    " ends with exit code 17"
)
EXAMPLES = (
    ("run consistency --virtual sata-tlc", "a minute on a SIMULATED drive"),
    ("run consistency --drive SERIAL --dry-run", "time, bytes and share of the rated endurance"),
    ("run consistency --drive SERIAL --destroy-data SERIAL --duration 2h --rig /dev/ttyACM0", "two hours, with power"),
    ("run pts-iops --drive SERIAL --variant client --budget '5 TB'", "SNIA PTS IOPS, at most 5 TB written"),
    ("run consistency --drive S1 --rig /dev/ttyACM0 --drive S2 --rig /dev/ttyACM1 -n", "two drives, each with its rig"),
)


class Named(NamedTuple):
    """A drive that the options name, with its own options."""

    option: str  # the attribute that has it: "drive" or "virtual"
    word: str
    rig: str | None = None
    second: str | None = None  # another meter, that is compared with it


class _Drive(argparse.Action):
    """--drive and --virtual, each as often as there are drives. `drives` of the namespace has them all, in order."""

    def __call__(self, parser, namespace, values: Any, option_string=None):
        setattr(namespace, self.dest, values)
        namespace.drives = (*namespace.drives, Named(self.dest, values))


class _Rig(argparse.Action):
    """--rig is that of the --drive before it; of a single drive, at any place. --meter is the same for an instrument
    that only measures, `pico:PORT` for our board; after a rig or a meter, it is compared with that."""

    def __call__(self, parser, namespace, values: Any, option_string=None):
        if option_string == "--meter" and ":" not in values:
            values = f"pico:{values}"
        *before, last = namespace.drives or (None,)
        if option_string == "--meter" and last and last.second is None and (last.rig or last.option == "virtual"):
            namespace.drives = (*before, last._replace(second=values))
            return
        namespace.rig = values
        if last is None or last.rig is not None:
            namespace.stray_rigs = (*namespace.stray_rigs, values)
        else:
            namespace.drives = (*before, last._replace(rig=values))


class _Consent(argparse.Action):
    """--destroy-data, once for each drive. `consents` of the namespace has them all."""

    def __call__(self, parser, namespace, values: Any, option_string=None):
        setattr(namespace, self.dest, values)
        namespace.consents = (*namespace.consents, values)


SYNC = "write a pattern of bursts at both ends, by which `import --sync` aligns another instrument's recording"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("plan", metavar="PLAN", help="a plan that `./ssdrig plans` lists, such as consistency, or a plan file (….toml)")
    add("part", metavar="PART", nargs="?", help="part of the plan retention: write or verify")
    parser.set_defaults(repeated=0, drives=(), stray_rigs=(), consents=())
    add = parser.add_argument_group("drive").add_argument
    add("--drive", action=_Drive, metavar="DRIVE", help=DRIVE + MANY)
    virtual = "a SIMULATED drive and board instead (./ssdrig virtual --list-presets)"
    add("--virtual", action=_Drive, metavar="PRESET", help=virtual + MANY)
    add("--capacity", metavar="SIZE", help="capacity of the virtual drive, e.g. 8GiB (default: the preset's)")
    add("--raw-nand", metavar="SIZE", help=RAW_NAND)
    add(
        "--rig",
        action=_Rig,
        metavar="PORT",
        help=f"{RIG}; with several, the --drive before it (default: no power measurement)",
    )
    add(
        "--meter",
        action=_Rig,
        dest="rig",
        metavar="URL",
        help="power meter of the drive, without a switch: hwmon:FOLDER or iio:FOLDER of the kernel's sensors,"
        " scpi:RESOURCE, joulescope:SERIAL, ppk2:SERIAL or powenetics:PORT of an instrument, drive: for the drive's own"
        " report, pico:PORT of our board; a second one is compared with the first (host/docs/use/meters.md)",
    )
    safety = parser.add_argument_group("safety")
    add_dry_run(safety, "print the run's steps, bytes written and duration; touch nothing")
    add = safety.add_argument
    consent = "repeat the serial to confirm that all data may be destroyed; once for each drive"
    add("--destroy-data", action=_Consent, metavar="SERIAL", help=consent)
    add("--budget", metavar="SIZE", help='write no more than this: "5 TB", or "2 %%" of the TBW; ends at a boundary')
    add("--purge-method", dest="purge", metavar="METHOD", help=PURGE_METHOD)
    add("--allow-cut", action="store_true", help=ALLOW_CUT)
    add("--sync", action="store_true", help=SYNC)
    add("--finish", choices=FINISH, default="keep", help="leave the drive as it is (default), trimmed, or purged")
    method = parser.add_argument_group("method")
    add = method.add_argument
    add("--variant", metavar="V", help="a variant of the plan (./ssdrig plans show PLAN)")
    add("--set", metavar="NAME=VALUE", action="append", default=[], help="a parameter of the plan; may be repeated")
    add("--op", metavar="PERCENT", help=OP)
    add("--op-of-user", metavar="PERCENT", help="the same as a share of the user capacity: 20 tests 0.8 of it")
    add(
        "--duration",
        type=whole_seconds,
        metavar="TIME",
        help="consistency: length of the random write in drive time, e.g. 2000 (seconds) or 2h (default: until the"
        f" steady-state rule holds, on a virtual drive {VIRTUAL_DURATION_S} s)",
    )
    add("--steady-from", dest="zoom", type=whole_seconds, metavar="TIME", help=STEADY_FROM)
    add(
        "--settle",
        action="store_true",
        help="after the load, read SMART at 60, 120 and 300 s until two readings agree: shows what the drive writes on"
        " its own",
    )
    add(
        "--idle",
        type=whole_seconds,
        metavar="TIME",
        default=0,
        help="then measure idle power for this long, without SMART polls",
    )
    add(
        "--repeat",
        type=int,
        default=1,
        metavar="N",
        help="execute the plan N times with different seeds; prints mean ± s",
    )
    add("--seed", type=int, metavar="N", help=f"random seed for fio's offsets (default {SEED})")
    cutting.add_arguments(parser)
    keeping.add_arguments(parser)
    add = parser.add_argument_group("recording").add_argument
    add("--runs", metavar="DIR", default="runs", help="parent folder of the run folders (default ./%(default)s)")
    add("--bmc", metavar="URL", help=BMC_POWER)
    add(
        "--smart-interval",
        type=whole_seconds,
        metavar="TIME",
        help="time between SMART polls under load (default: 10 to 60 s by duration)",
    )
    add(
        "--influx",
        metavar="URL",
        help="http://host:port/DB to send points to during the run (default: $SSDRIG_INFLUX, if set)",
    )
    add = parser.add_argument_group("faults, on purpose (virtual bench)").add_argument
    add("--faults", metavar="JSON", help="faults of the board (python -m ssdrig.virtual.cable --help)")
    add("--drive-faults", metavar="JSON", help='faults of the drive at a loss of power: {"lying_flush": 1}')
    add_result(parser)


def add_result(parser: argparse.ArgumentParser) -> None:
    """The output options."""
    output = parser.add_argument_group("output")
    add = output.add_argument
    add("--json", action="store_true", help="print the result as one JSON object on stdout")
    add("--jsonl", action="store_true", help="print one JSON object per second on stdout, the result last")
    add_quiet(output)
    add("-v", "--verbose", action="store_true", help="also print each event as it is recorded")


def parse(words: list[str]) -> argparse.Namespace:
    """The options of these words, unchecked. Raises UsageError."""
    parser = Parser()
    add_arguments(parser)
    return parser.parse_args(words)


def check(args: argparse.Namespace) -> None:
    """Raises UsageError for anything that no run could be made of. Touches nothing."""
    keeping.check(args)
    cutting.check(args)
    if len([target for target in (args.drive, args.virtual, args.target) if target]) != 1:
        raise UsageError(
            "a drive to test, and only one",
            "two" if args.drive or args.virtual or args.target else "none",
            "give --drive SERIAL or --virtual PRESET; no default exists",
        )
    real_only = {"--rig": args.rig, "--purge-method": args.purge, "--raw-nand": args.raw_nand}
    real_only["--destroy-data"] = args.destroy_data
    virtual_only = {"--capacity": args.capacity, "--faults": args.faults}
    virtual_only["--drive-faults"] = args.drive_faults
    for option, value in (real_only if args.virtual else virtual_only).items():
        if value is not None:
            kind = "--drive" if args.virtual else "--virtual"
            raise UsageError(f"{option} only with {kind}", f"{option} {value}", f"leave {option} out")
    if args.allow_cut and not (args.virtual or args.rig):
        raise UsageError("--allow-cut with --rig PORT, or --virtual", "no rig", "name the rig that powers the drive")
    shares(args)
    _within("--duration", args.duration, 4, LONGEST_S, " s")
    _within("--smart-interval", args.smart_interval, 1, LONGEST_S, " s")
    if args.zoom is not None and args.duration is not None:
        _within("--steady-from", args.zoom, 0, args.duration - 2, " s")
    _within("--idle", args.idle, 0, LONGEST_S, " s")
    _within("--repeat", args.repeat, 1, MOST_REPEATS)
    _within("--seed", args.seed or 0, 0, HIGHEST_SEED - args.repeat * SEEDS_EACH)
    for size in (args.capacity, args.raw_nand):
        if size not in (None, ASSUMED):
            parse_bytes(size)
    url = args.influx or os.environ.get("SSDRIG_INFLUX")
    if url:
        sender.target(url)
    if getattr(args, "bmc", None):
        bmc.check(args.bmc)
    parameters(args)
    if args.virtual:
        virtual_drive(args)
        faults(args.faults)
        drive_faults(args.drive_faults)


def check_parts(drives: Iterable["Named"], stray_rigs: Iterable[str] = ()) -> None:
    """Raises UsageError for a drive or a rig that this machine does not have."""
    from ssdrig.meter import meter  # serial, which a command without a rig does not need

    for named in drives:
        if named.option == "drive":
            inventory.find(named.word)
        if named.rig:
            meter.check(named.rig)
        if named.second:
            meter.check(named.second)
    for rig in stray_rigs:
        meter.check(rig)


class Share(NamedTuple):
    """Over-provisioning in percent of the raw NAND or of the user capacity."""

    raw: bool
    percent: float


def shares(args: argparse.Namespace) -> list[Share | None]:
    """What --op and --op-of-user ask for, one run each; None: all of the drive. Raises UsageError."""
    if args.op is not None and args.op_of_user is not None:
        raise UsageError("--op or --op-of-user", "both", "leave one out")
    raw, text = args.op is not None, args.op if args.op is not None else args.op_of_user
    option, of = ("--op", "raw NAND") if raw else ("--op-of-user", "the user capacity")
    shares: list[Share | None] = []
    for word in (text or OWN).split(","):
        try:
            percent = None if word.strip() == OWN else float(word)
        except ValueError:
            percent = math.nan
        if percent is not None and not 0 <= percent < 100:
            seen = f"{word.strip()} in {option} {text}"
            raise UsageError(f"{option} from 0 to below 100 percent", seen, f"choose a share of {of}, e.g. 25")
        shares.append(None if percent is None else Share(raw, percent))
    if len(set(shares)) < len(shares):
        raise UsageError(f"each share of {option} once", str(text), "leave one out; --repeat runs each several times")
    return shares


def each_share(args: argparse.Namespace) -> list[argparse.Namespace]:
    """The options once for each share that they ask for."""
    text = args.op if args.op is not None else args.op_of_user
    key = "op" if args.op is not None else "op_of_user"
    return [argparse.Namespace(**{**vars(args), key: word.strip()}) for word in text.split(",")] if text else [args]


def seed(args: argparse.Namespace, drive: Mapping) -> int:
    """The seed of the first fio job: --seed, or the default. A drive that shows its enclosure's serial is known by its
    content after an absence, so each run of it has a unique seed. Raises UsageError for --seed there.

    drive: as run.json describes it"""
    if identity.proves_itself(Identity.of(drive)):
        return (SEED if args.seed is None else args.seed) + args.repeated * SEEDS_EACH
    if args.seed is not None:
        raise UsageError(
            "--seed for a drive that shows its own serial or WWN",
            f"serial {printable(str(drive['serial']))}, its enclosure's: the drive is known by what the run writes",
            "leave --seed out, or connect the drive by SATA",
        )
    return random.SystemRandom().randrange(HIGHEST_SEED - MOST_REPEATS * SEEDS_EACH)


def raw_nand(args: argparse.Namespace, model: str, capacity_bytes: int) -> tuple[int | None, bool]:
    """The raw NAND in bytes (None: not known), and whether it is assumed: --raw-nand, or that of the model."""
    if args.raw_nand and args.raw_nand != ASSUMED:
        return parse_bytes(args.raw_nand), False
    if known := raw_nand_of.of_model(model, capacity_bytes):
        return known.raw_bytes, False
    return (assumed_raw_bytes(capacity_bytes), True) if args.raw_nand else (None, False)


def _within(option: str, value: int | None, least: int, most: int, unit: str = "") -> None:
    if value is not None and not least <= value <= most:
        raise UsageError(f"{option} of at least {least}{unit} and at most {most}{unit}", str(value), "correct it")


def virtual_drive(args: argparse.Namespace) -> dict:
    """What describes the virtual drive that the options ask for, without starting it. Raises UsageError."""
    from ssdrig.virtual.flash import presets, rated_power

    preset = presets.named(args.virtual)
    pages, _, raw_nand_bytes = preset.geometry(parse_bytes(args.capacity) if args.capacity else None)
    return {
        "simulated": True,
        "preset": preset.name,
        "model": preset.model,
        "serial": "",
        "interface": "nbd",
        "logical_block_bytes": 4096,
        "capacity_bytes": whole_MiB(pages * 4096),
        "raw_nand_bytes": raw_nand_bytes,
        "rated_write_bytes": preset.rated_write_bytes(pages * 4096),
        "time_dilation": preset.time_dilation,
        "power_states": rated_power.described(preset),
    }


def faults(text: str | None) -> dict | None:
    """--faults as an object. Raises UsageError."""
    from ssdrig.virtual.rig_faults import settings

    if text is None:
        return None
    try:
        value = json.loads(text)
        if not isinstance(value, dict):
            raise ValueError("not an object")
    except (ValueError, RecursionError) as error:
        raise UsageError("faults as a JSON object", f"{text[:200]}: {error}", 'write e.g. {"ppm": 80}') from error
    settings(value)
    return value


def drive_faults(text: str | None) -> dict | None:
    """--drive-faults as an object. Raises UsageError."""
    from ssdrig.virtual.device import powerfaults

    return None if text is None else powerfaults.parsed(text)


def parameters(args: argparse.Namespace) -> tuple[str | None, dict[str, str]]:
    """The variant and the parameters that the options ask for: --variant and --set as they are, and the words that set
    the parameters of `consistency`. Raises UsageError."""
    sets: dict[str, str] = {}
    share = shares(args)[0]
    if share:
        sets |= {"range": f"{'raw ' if share.raw else ''}{100 - share.percent:.6f} %"}
    if args.idle:
        sets["idle"] = f"{args.idle} s"
    if args.settle:
        sets["settle"] = "300 s"
    duration_s = args.duration
    variant = args.variant or keeping.variant(args)
    if args.plan == "consistency" and variant is None and (args.virtual or duration_s is not None):
        variant = "quick" if args.virtual else None
        sets |= {"rule": "never", "steady": "from 70 %"}
        duration_s = VIRTUAL_DURATION_S if duration_s is None else duration_s
    if duration_s is not None:
        sets |= {"rule": "never", "time": f"{duration_s} s"}
        sets["smart"] = f"{min(60, max(10, duration_s // 6))} s"
    if args.zoom is not None:
        sets["steady"] = f"from {args.zoom} s"
    if args.smart_interval is not None:
        sets["smart"] = f"{args.smart_interval} s"
    sets |= cutting.sets(args) | keeping.sets(args)
    for words in args.set:
        name, sign, value = words.partition("=")
        if not (name and sign and value):
            raise UsageError("--set NAME=VALUE", repr(words), "see ./ssdrig plans show " + str(args.plan))
        sets[name] = value
    return variant, sets
