"""The main job, demonstrated on the virtual bench: the consistency test twice, with the drive's own over-provisioning
and with 25 % of raw NAND, in real time; then one report."""

import argparse
import json
from pathlib import Path

from ssdrig import report
from ssdrig.base.arguments import Parser, add_quiet, whole_seconds
from ssdrig.base.progress import Progress
from ssdrig.report import screen
from ssdrig.run import run

PRESET = "sata-tlc"
EXAMPLES = (("demo", "three minutes"), ("demo --duration 2m --open", "longer, and the report in the browser"))
NEXT = "next:  your own disks: sudo ./ssdrig drives; the tests: ./ssdrig plans"
VARIANTS = (None, 25)  # over-provisioning: the drive's own, and the reviews' 25 % of raw NAND


def add_arguments(parser) -> None:
    parser.add_argument(
        "--duration",
        type=whole_seconds,
        default=60,
        metavar="TIME",
        help="random write in each run for this long, e.g. 2m (default %(default)s s)",
    )
    parser.add_argument(
        "--runs",
        metavar="DIR",
        default="runs",
        help="folder for the run folders and the report (default ./%(default)s)",
    )
    parser.add_argument("--open", action="store_true", help="open the report in the browser")
    parser.add_argument("--json", action="store_true", help="print paths as one JSON object on stdout")
    parser.add_argument("-v", "--verbose", action="store_true", help="also the notes and tables of each run")
    add_quiet(parser)


class Brief(Progress):
    """Shows what goes on; the lines that stay are left to the end of the demo."""

    def say(self, text: str) -> None:
        pass


def command(args) -> int:
    """Exit code: the highest of the runs'."""
    show = Progress(args.quiet)
    of_runs = show if args.verbose or args.quiet else Brief()
    show.say(
        "demo: two consistency runs on a SIMULATED drive, powered through the real firmware in real MicroPython, loaded"
        " by real fio,\nin real time: about 3 minutes. No disk of this machine is written to but its file system."
    )
    ends = []
    for op in VARIANTS:
        ends.append(_run(op, args, of_runs))
        if ends[-1][1] == 130:
            raise KeyboardInterrupt
    folders = [str(folder) for folder, _ in ends]
    out = Path(args.runs, "demo.html")
    more = ["--open"] * args.open + ["--quiet"] * (args.quiet or not args.verbose)
    report.command(_parsed(report, [*folders, "--out", str(out), "--review", "2", *more]))
    if args.json:
        print(json.dumps({"runs": folders, "report": str(out.resolve())}))
    show.say("\n".join([*screen.brief(map(Path, folders), 1), f"page:  {out.resolve()}", NEXT]))
    return max(code for _, code in ends)


def _run(op_percent: int | None, args, show: Progress) -> tuple[Path | None, int]:
    words = ["consistency", "--virtual", PRESET, "--duration", str(args.duration), "--runs", args.runs]
    words += ["--quiet"] * args.quiet
    if op_percent is not None:
        words += ["--op", str(op_percent)]
    return run.perform(_parsed(run, words), show)


def _parsed(module, words: list[str]) -> argparse.Namespace:
    parser = Parser()
    module.add_arguments(parser)
    return parser.parse_args(words)
