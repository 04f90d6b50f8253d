"""ssdrig hardware: make the files to order the boards (hardware/board/release.py), and work out the signal
integrity of the interposer (hardware/interposer/pairs.py)."""

import json
import sys
from pathlib import Path

from ssdrig.base import shipped
from ssdrig.base.errors import UsageError

HARDWARE = shipped.path("hardware")
FOLDERS = {"board": (HARDWARE / "board",)} | {
    name: (HARDWARE / name / "board", HARDWARE / "board") for name in ("breakout", "interposer")
}
EXAMPLES = (
    ("hardware release --out order", "gerbers, placement, bill of material, pictures: in the folder order"),
    ("hardware release --board breakout --out order", "of the two-layer board for hand soldering"),
    ("hardware signal", "impedance, loss and eye of the interposer's pairs"),
    ("hardware release --board interposer --out order", "of the interposer for M.2"),
)


def add_arguments(parser) -> None:
    words = parser.add_subparsers(dest="word", metavar="COMMAND", required=True)
    about = "make gerbers, placement, bill of material, STEP, pictures and schematic from the sources, and check them"
    sub = words.add_parser("release", help=about, description=about)
    sub.add_argument("--out", type=Path, default=Path("release"), metavar="DIR", help="where to (default release)")
    sub.add_argument("--board", choices=FOLDERS, default="board", help="which one (default board)")
    sub.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    about = "impedance, loss, skew and eye of the interposer's PCIe pairs, by two methods"
    sub = words.add_parser("signal", help=about, description=about)
    sub.set_defaults(verbatim=True)  # Markdown
    sub.add_argument("--json", action="store_true", help="print one JSON object on stdout")


def signal(args) -> int:
    """Print the figures of the interposer's pairs."""
    sys.path.insert(0, str(HARDWARE / "interposer"))
    import pairs

    print(json.dumps(pairs.figures()) if args.json else pairs.markdown())
    return 0


def command(args) -> int:
    """Raises UsageError where the sources do not agree, a check fails, or nothing can be written; ToolMissing."""
    if args.word == "signal":
        return signal(args)
    # the first folder has the board's own circuit and places, the last the tools
    sys.path[:0] = [str(folder) for folder in FOLDERS[args.board]]
    import release

    try:
        made = release.release(args.out, lambda words: print(words, file=sys.stderr))
    except release.NotReleased as why:
        raise UsageError("a board that can be released", str(why), "fix it, then make the release again") from None
    except OSError as why:
        do = "free disk space, or give another folder by --out; the existing folder is not a release"
        raise UsageError(f"to write the release into {args.out}", str(why), do) from None
    rows = release.bill()
    known = release.numbers(rows)
    if args.json:
        summary = {"folder": str(args.out), "files": len(list(args.out.iterdir())), "digest": made}
        summary |= {"parts_USD": round(release.total_usd(rows), 2), "kinds": len(rows), "numbers": known}
        print(json.dumps(summary))
        return 0
    print(f"{args.out}: {len(list(args.out.iterdir()))} files, digest {made}")
    print(f"parts, PCB and screws of one board: {release.total_usd(rows):.2f} USD; {len(rows)} kinds, all by number")
    print(
        f"manufacturers' numbers: {known['listed']} seen in a public list, {known['decoded']} from the maker's ordering"
        f" code, {known['memory']} from memory; no seller was asked"
    )
    return 0
