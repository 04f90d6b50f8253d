"""`ssdrig trace`: makes and shows traces."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ssdrig.errors import UsageError
from ssdrig.trace import form, generate, shown
from ssdrig.trace.published import BENCHES
from ssdrig.words import clock, parse_bytes, parse_seconds, size

SCALED = "SCALED: fewer I/Os than the source had"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    words = "make a trace from the published statistics of a storage bench"
    make = actions.add_parser("make", help=words, description=words)
    make.add_argument("bench", metavar="BENCH", help=", ".join(BENCHES))
    make.add_argument("file", metavar="FILE", type=Path, help="the trace file to write")
    make.add_argument("--seed", type=int, default=1, help="another seed, another order, the same statistics")
    make.add_argument("--scale", type=float, default=1.0, metavar="S", help="share of the source's I/Os, up to 1")
    make.add_argument(
        "--working-set", default="64GiB", metavar="SIZE", help="the range that is used, from the drive's beginning"
    )
    make.add_argument("--idle-cap", default="25ms", metavar="TIME", help="longest pause; full: none is shortened")
    make.add_argument("--block", default="512", metavar="BYTES", help="4096 for a drive that takes nothing smaller")
    show = actions.add_parser("show", help="what a trace is", description="What a trace is, measured from its rows.")
    show.add_argument("file", metavar="FILE", type=Path, help="a trace file")
    for action in (make, show):
        action.add_argument("--json", action="store_true", help="the result as JSON on stdout")


def command(args: argparse.Namespace) -> int:
    """0, or the exit code of what is raised."""
    return {"make": _make, "show": _show}[args.action](args)


def _make(args: argparse.Namespace) -> int:
    cap_ns = None if args.idle_cap == "full" else round(parse_seconds(args.idle_cap) * 1e9)
    asked = generate.Asked(
        args.bench, args.seed, args.scale, parse_bytes(args.working_set), cap_ns, parse_bytes(args.block)
    )
    asked.check()
    return _written(args, generate.generate(asked), asked.words())


def _written(args: argparse.Namespace, windows: Iterator[np.ndarray], words: dict) -> int:
    header = form.write(_new(args.file), windows, words)
    if args.json:
        print(json.dumps(header, ensure_ascii=False))
    else:
        print(f"{args.file}: {header['ios']} I/Os{', ' + SCALED if header.get('scaled') else ''}")
    return 0


def _new(path: Path) -> Path:
    if path.exists():
        raise UsageError(f"a new file {path}", "one that exists", "remove it, or name another")
    if not path.parent.is_dir():
        raise UsageError(f"a folder {path.parent}", "none", "create it, or name another")
    return path


def _show(args: argparse.Namespace) -> int:
    header, rows = form.read(args.file)
    checked(args.file, header, rows)
    found = shown.figures(form.windows(rows))
    if args.json:
        print(json.dumps({"header": header, "figures": found}, ensure_ascii=False))
        return 0
    print(f"{header.get('name', args.file.name)}: {found['ios']} I/Os in {clock(found['lasts_s'])}")
    if header.get("scaled"):
        print(SCALED)
    print(f"  source       {header.get('source', 'not said')}")
    for op, ios, moved, mean in (
        ("read", found["reads"], found["read_bytes"], found["read_mean_bytes"]),
        ("write", found["writes"], found["written_bytes"], found["write_mean_bytes"]),
    ):
        print(f"  {op:12} {ios} I/Os, {size(moved)}" + (f", mean {size(mean)}" if mean else ""))
    print(f"  others       {found['trims']} trims ({size(found['trimmed_bytes'])}), {found['flushes']} flushes")
    print(f"  sizes, %     {_row(found['size_percent'])}")
    print(f"  depth, %     {_row(found['depth_percent'])}")
    print(f"  sequential   {found['sequential_percent']:.1f} %")
    print(f"  pauses       {clock(found['idle_s'])} in gaps from 25 ms on, the longest {found['longest_gap_s']:.3f} s")
    print(f"  range        {size(found['range_bytes'])}")
    return 0


def checked(path: Path, header: dict, rows: np.ndarray) -> None:
    """Raises UsageError where the rows are not those that were written, or cannot be played."""
    do = "make or convert it again"
    if form.digest(rows) != header.get("sha256"):
        raise UsageError(f"{path} as it was written", "rows of another SHA-256", do)
    before_ns = 0
    for number, window in enumerate(form.windows(rows)):
        if bad := form.why_not(window, before_ns):
            raise UsageError(
                f"I/Os in {path} that can be played", f"number {number * form.WINDOW_IOS + bad[0]}: {bad[1]}", do
            )
        before_ns = int(window["t_ns"][-1])


def _row(percent: dict[str, float]) -> str:
    return "  ".join(f"{name}: {share:.1f}" for name, share in percent.items())
