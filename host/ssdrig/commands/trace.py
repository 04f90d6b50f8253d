"""`ssdrig trace`: makes, converts, records, shows and plays traces."""

import argparse
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ssdrig.base import columns, temporary
from ssdrig.base.arguments import add_dry_run
from ssdrig.base.errors import UsageError
from ssdrig.base.progress import Progress
from ssdrig.base.words import clock, digits, do_you_mean, parse_bytes, parse_seconds, size
from ssdrig.commands import trace_play
from ssdrig.drive import inventory
from ssdrig.load import trace_convert, trace_formats, trace_generate, trace_player, trace_shown, trace_tables, traceform
from ssdrig.load import trace_record as record
from ssdrig.load.trace_published import BENCHES
from ssdrig.virtual.flash.presets import PRESETS

COARSE_NS = 10**9
SCALED = "SCALED: fewer I/Os than the source had"


EXAMPLES = (
    ("trace make bench-light-like light.trace", "a trace from published statistics"),
    ("trace play light.trace --virtual sata-tlc --fill", "on a SIMULATED drive"),
    ("trace show light.trace", "sizes, depths, pauses"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    words = "make a trace from the published statistics of a storage bench"
    make = actions.add_parser("make", help=words, description=words)
    make.add_argument("bench", metavar="BENCH", help=", ".join(BENCHES))
    make.add_argument("file", metavar="FILE", type=Path, help="the trace file to write")
    make.add_argument(
        "--seed", type=int, default=1, metavar="N", help="random seed: another order, the same statistics"
    )
    make.add_argument("--scale", type=float, default=1.0, metavar="S", help="share of the source's I/Os, up to 1")
    make.add_argument(
        "--working-set",
        default="64GiB",
        metavar="SIZE",
        help="range that is used, from the drive's beginning (default %(default)s)",
    )
    make.add_argument(
        "--idle-cap",
        default="25ms",
        metavar="TIME",
        help="longest pause (default %(default)s); full: none is shortened",
    )
    make.add_argument(
        "--block",
        default="512",
        metavar="BYTES",
        help="block size; 4096 for a drive with blocks of 4 KiB (default %(default)s)",
    )
    words = "convert a trace of another format: " + ", ".join(trace_formats.names()) + ", and any table (--column)"
    turn = actions.add_parser("convert", help=words, description=words)
    turn.add_argument("source", metavar="SOURCE", type=Path, help="the file, also as .gz; its format is recognized")
    turn.add_argument("file", metavar="FILE", type=Path, help="the trace file to write")
    turn.add_argument("--device", default="", metavar="NAME", help="device to take, where the file has several")
    turn.add_argument("--range", metavar="SIZE", help="offsets beyond this size wrap around to its beginning")
    turn.add_argument(
        "--block",
        default="512",
        metavar="BYTES",
        help="block size; 4096 for a drive with blocks of 4 KiB (default %(default)s)",
    )
    turn.add_argument("--ios", type=int, metavar="N", help="take only the first N")
    turn.add_argument("--no-trims", action="store_true", help="leave trims out")
    turn.add_argument("--no-flushes", action="store_true", help="leave flushes out")
    turn.add_argument("--no-zeroes", action="store_true", help="leave Write Zeroes out")
    turn.add_argument("--no-fua", action="store_true", help="writes with FUA become writes without")
    turn.add_argument(
        "--no-zones", action="store_true", help="the source's drive has no zones: an I/O named N is Write Zeroes"
    )
    turn.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="ROLE=NAME[:UNIT]",
        help=f"a column of a table, by its heading or number: {', '.join(f'{role}=' for role in trace_tables.ROLES)}; "
        "e.g. t=Time:ms,offset=3:sectors,size=4:B,op=Type",
    )
    turn.add_argument("--depth", type=int, metavar="N", help="queue depth of the source, where its file lacks it")
    words = "record the I/O of a disk of this machine; nothing is written to it (as root)"
    record = actions.add_parser("record", help=words, description=words)
    record.add_argument("drive", metavar="DRIVE", help="serial number or /dev/disk/by-id path")
    record.add_argument("file", metavar="FILE", type=Path, help="the trace file to write")
    record.add_argument(
        "--time", default="60s", metavar="TIME", help="how long, e.g. 10m (default %(default)s); Ctrl-C ends it earlier"
    )
    show = actions.add_parser("show", help="show what a trace is like, measured from its rows")
    show.add_argument("file", metavar="FILE", type=Path, help="a trace file")
    words = "play a trace on a drive at the trace's own times; THIS DESTROYS THE DRIVE'S DATA"
    play = actions.add_parser("play", help=words, description=words)
    play.add_argument("file", metavar="FILE", type=Path, help="a trace file")
    where = play.add_mutually_exclusive_group(required=True)
    where.add_argument("--drive", metavar="DRIVE", help="serial number or /dev/disk/by-id path")
    where.add_argument("--virtual", metavar="PRESET", help="a SIMULATED drive instead")
    play.add_argument("--capacity", metavar="SIZE", help="capacity of the SIMULATED drive, e.g. 8GiB")
    play.add_argument(
        "--destroy-data", metavar="SERIAL", help="repeat the serial to confirm that all data may be destroyed"
    )
    play.add_argument("--speed", type=float, default=1.0, metavar="N", help="divide the trace's times by N")
    play.add_argument("--idle-cap", metavar="TIME", help="shorten pauses to this, e.g. 25ms (default: none)")
    play.add_argument(
        "--closed", action="store_true", help="ignore the times: as fast as possible at the trace's queue depths"
    )
    play.add_argument("--fill", action="store_true", help="first write what the trace reads before it writes it")
    play.add_argument("--records", metavar="FILE", type=Path, help="write the times of each I/O to this file")
    add_dry_run(play, "only show what would be done and what blocks it")
    for action in (make, turn, record, show, play):
        action.add_argument("--json", action="store_true", help="print the result as one JSON object on stdout")


def check(args: argparse.Namespace) -> None:
    """Raises UsageError for what no machine could do."""
    if args.action == "make":
        _asked(args).check()
    elif args.action == "convert":
        for size_text in filter(None, (args.range, args.block)):
            parse_bytes(size_text)
        columns.chosen(args.column, trace_tables.ROLES)
        _there(args.source)
    elif args.action == "record":
        parse_seconds(args.time)
        inventory.find(args.drive)
    else:
        _there(args.file)
    if args.action == "play":
        _how(args).check()
        if args.drive:
            inventory.find(args.drive)
        elif args.virtual not in PRESETS:
            raise UsageError(f"one of {', '.join(PRESETS)}", args.virtual, do_you_mean(args.virtual, PRESETS))
        if args.capacity:
            parse_bytes(args.capacity)
    if new := getattr(args, "records", None) if args.action == "play" else args.file if args.action != "show" else None:
        _new(new)


def command(args: argparse.Namespace) -> int:
    """0, or the exit code of the error."""
    return {"make": _make, "convert": _convert, "record": _record, "show": _show, "play": _play}[args.action](args)


def _asked(args: argparse.Namespace) -> trace_generate.Asked:
    cap_ns = None if args.idle_cap == "full" else round(parse_seconds(args.idle_cap) * 1e9)
    sizes = parse_bytes(args.working_set), cap_ns, parse_bytes(args.block)
    return trace_generate.Asked(args.bench, args.seed, args.scale, *sizes)


def _how(args: argparse.Namespace) -> trace_player.How:
    return trace_player.How(
        args.closed, args.speed, round(parse_seconds(args.idle_cap) * 1e9) if args.idle_cap else None
    )


def _there(path: Path) -> None:
    if not path.exists():
        raise UsageError(f"a file {path}", "no such file", "correct the path")


def _make(args: argparse.Namespace) -> int:
    asked = _asked(args)
    asked.check()
    return _written(args, trace_generate.generate(asked), asked.words)


def _convert(args: argparse.Namespace) -> int:
    chosen = ((args.no_trims, traceform.TRIM), (args.no_flushes, traceform.FLUSH), (args.no_zeroes, traceform.ZEROES))
    asked = trace_convert.Asked(
        args.device,
        parse_bytes(args.range) if args.range else None,
        parse_bytes(args.block),
        args.ios,
        tuple(op for left_out, op in chosen if left_out),
        args.depth,
        not args.no_zones,
        not args.no_fua,
        columns.chosen(args.column, trace_tables.ROLES),
    )
    made = trace_convert.Conversion(args.source, asked)
    return _written(args, made.windows(), made.words)


def _file_name(words: str) -> str:
    """Words as the name of a file: a model may have a / ("SD/MMC")."""
    return words.replace("/", "-").encode()[:255].decode(errors="ignore")


def _record(args: argparse.Namespace) -> int:
    drive, root, show = inventory.find(args.drive), record.tracefs(), Progress()
    record.no_zones(drive.name)
    _new(args.file)
    with temporary.folder("ssdrig-record-", "/var/tmp") as folder:
        text = folder / _file_name(f"recorded of {drive.model} {drive.serial}")
        with open(text, "wb") as out:
            say = f"{drive.node}: {{}} I/Os; Ctrl-C ends it"
            seconds = parse_seconds(args.time)
            record.record(drive.major, drive.minor, seconds, out, root, lambda lines: show.show(say.format(lines)))
        made = trace_convert.Conversion(text, trace_convert.Asked(zones=False))
        return _written(args, made.windows(), made.words)


def _written(args: argparse.Namespace, windows: Iterator[np.ndarray], words: Callable[[], dict]) -> int:
    try:
        header = traceform.write(_new(args.file), windows, words)
    except OSError as error:
        do = "name another file, or make room"
        raise UsageError(f"a new file {args.file}", error.strerror or str(error), do) from error
    if args.json:
        print(json.dumps(header, ensure_ascii=False))
    else:
        print(f"{args.file}: {header['ios']} I/Os{', ' + SCALED if header.get('scaled') else ''}")
        for why, lines in header.get("left_out", {}).items():
            print(f"  {lines} left out: {why}")
    return 0


def _new(path: Path) -> Path:
    if path.exists():
        raise UsageError(f"a new file {path}", "one that exists", "remove it, or name another")
    if not path.parent.is_dir():
        raise UsageError(f"a folder {path.parent}", "none", "create it, or name another")
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"a folder that can be written, {path.parent}", "one that cannot", "name another")
    return path


def _show(args: argparse.Namespace) -> int:
    header, rows = traceform.read(args.file)
    checked(args.file, header, rows)
    figures = trace_shown.figures(traceform.windows(rows), bool(header.get("depths")))
    if args.json:
        print(json.dumps({"header": header, "figures": figures}, ensure_ascii=False))
        return 0
    print(f"{header.get('name', args.file.name)}: {figures['ios']} I/Os in {_time(figures['lasts_s'])}")
    if header.get("scaled"):
        print(SCALED)
    print(f"  source       {header.get('source', 'not stated')}")
    for op, ios, moved, mean in (
        ("read", figures["reads"], figures["read_bytes"], figures["read_mean_bytes"]),
        ("write", figures["writes"], figures["written_bytes"], figures["write_mean_bytes"]),
    ):
        print(f"  {op:12} {ios} I/Os, {size(moved)}" + (f", mean {size(mean)}" if mean else ""))
    print(
        f"  others       {figures['trims']} trims ({size(figures['trimmed_bytes'])}), {figures['flushes']} flushes, "
        f"{figures['zeroes']} Write Zeroes ({size(figures['zeroed_bytes'])})"
        + (f", FUA on {figures['fua_writes']} writes ({size(figures['fua_bytes'])})" if figures["fua_writes"] else "")
    )
    if (header.get("step_ns") or 1) >= COARSE_NS:
        print("  times        whole seconds: the I/Os of a second begin together")
    print(f"  sizes, %     {_row(figures['size_percent'])}")
    depths = figures["depth_percent"]
    print(f"  depth, %     {_row(depths) if depths else 'not known: ' + str(header.get('depths_why'))}")
    for line in _original(header):
        print(f"  original     {line}")
    print(f"  sequential   {figures['sequential_percent']:.1f} %")
    print(
        f"  pauses       {_time(figures['idle_s'])} in gaps from 25 ms on, the longest {figures['longest_gap_s']:.3f} s"
    )
    print(f"  range        {size(figures['range_bytes'])}")
    return 0


def _play(args: argparse.Namespace) -> int:
    """0: played. 2, 3, 4: the error's. Not played at the trace's times (more than 1 % late by 1 ms): 0, with
    words."""
    header, rows = traceform.read(args.file)
    checked(args.file, header, rows)
    how = _how(args)
    how.check()
    if not (header.get("timed", True) or how.closed):
        raise UsageError("a trace with times", f"none in {args.file}", "play it with --closed")
    if how.closed:
        traceform.can_be_closed(header)
    if args.records:
        _new(args.records)
    asked = trace_play.Asked(args.file.name, header, rows, how, args.records, args.fill)
    asked.check()
    if args.virtual:
        result = trace_play.on_virtual(asked, args.virtual, args.capacity, args.dry_run)
    else:
        result = trace_play.on_drive(asked, args.drive, args.destroy_data, args.dry_run)
    if args.json:
        print(json.dumps(result, ensure_ascii=False))
    elif result["figures"]:
        _say_played(result)
    return 0


def _say_played(result: dict) -> None:
    figures, lag = result["figures"], result["figures"]["lag"]
    words = [word for word in ("SIMULATED", "SCALED") if result[word.lower()]]
    print(f"{result['trace']} on {result['drive']}{''.join(f', {word}' for word in words)}")
    rate = f", {figures['data_rate_MBps']:.1f} MB/s while busy" if figures["data_rate_MBps"] else ""
    print(f"  {figures['ios']} I/Os, {size(figures['bytes'])} in {_time(figures['time_s'])}{rate}")
    for name in ("all", "reads", "writes"):
        part = figures[name]
        if part["ios"]:
            cells = [f"{key} {part[f'{key}_us']:.0f}" for key in ("mean", "p99", "p999", "max") if part[f"{key}_us"]]
            over = [f"{digits(part[f'over_{ms}ms_percent'], 3)} % over {ms} ms" for ms in (10, 100)]
            print(f"  {name:8}service time, us: {', '.join(cells)}; {', '.join(over)}")
    moved = result["times"]["play_s"] != result["times"]["trace_s"]
    for line in _original(result):
        print(f"  original: {line}{' (at the times of the trace)' if moved else ''}")
    if depth := figures["depth"]:
        of = figures["trace_depth"]
        original = f"mean {digits(of['mean'], 3)}, most {of['max']}" if of else figures["not_known"]["trace_depth"]
        print(f"  queue depth: mean {digits(depth['mean'], 3)}, most {depth['max']}; of the trace: {original}")
    if moved:
        print(f"  {_scaling(result['times'])}")
    if kernel := result["kernel_mean_us"]:
        print(f"  the kernel's own mean: {kernel:.0f} us")
    if writes := result["fua"]["writes"]:
        by = "as a write and a FLUSH: the drive has no FUA" if result["fua"]["by_flush"] else "as such"
        print(f"  {writes} writes with FUA, {by}")
    if lag:
        print(f"  lag: P99 {lag['p99_us']:.0f} us, {digits(lag['late_percent'], 3)} % later than 1 ms")
        if not lag["as_recorded"]:
            print("  NOT PLAYED AT THE TRACE'S TIMES: more than 1 % of its I/Os were later than 1 ms")


def _time(seconds: float) -> str:
    """A time in words: m:ss, below a minute in seconds."""
    return clock(seconds) if seconds >= 60 else f"{digits(seconds, 3)} s"


def _scaling(times: dict) -> str:
    """What the play's times are against the trace's, and what that leaves the drive."""
    idle = f"of {_time(times['idle_s'])} in pauses from 25 ms on"
    if times["play_s"] is None:
        return f"NOT AT THE TRACE'S TIMES ({_time(times['trace_s'])}): no pauses, {idle} none is left to the drive"
    rate = (
        f"{digits(times['trace_s'] / times['play_s'], 3)} times its I/Os per second"
        if times["play_s"]
        else "all at one time"
    )
    left = f"{idle} the drive has {_time(times['play_idle_s'])} for background work"
    return f"NOT AT THE TRACE'S TIMES: {_time(times['play_s'])} in place of {_time(times['trace_s'])}, {rate}; {left}"


def _original(header: dict) -> list[str]:
    """Service times of the drive that the trace was recorded on, where its file states them."""
    parts = header.get("service") or {}
    return [
        f"{name}: service time, us: mean {part['mean_us']:.0f}, p50 {part['p50_us']:.0f}, p99 {part['p99_us']:.0f},"
        f" max {part['max_us']:.0f}"
        for name, part in parts.items()
        if part
    ]


def checked(path: Path, header: dict, rows: np.ndarray) -> None:
    """Raises UsageError where the rows are not those that were written, or cannot be played."""
    do = "make or convert it again"
    if traceform.digest(rows) != header.get("sha256"):
        raise UsageError(f"{path} as it was written", "rows of another SHA-256", do)
    before_ns = 0
    for number, window in enumerate(traceform.windows(rows)):
        if bad := traceform.why_not(window, before_ns):
            raise UsageError(
                f"I/Os in {path} that can be played", f"number {number * traceform.WINDOW_IOS + bad[0]}: {bad[1]}", do
            )
        before_ns = int(window["t_ns"][-1])


def _row(percent: dict[str, float]) -> str:
    return "  ".join(f"{name}: {share:.1f}" for name, share in percent.items())
