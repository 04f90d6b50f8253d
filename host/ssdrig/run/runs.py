"""`ssdrig runs`: the run folders that there are, the latest first."""

import argparse
import datetime
import json
from pathlib import Path

from ssdrig import journal, parts
from ssdrig.errors import SsdrigError, UsageError
from ssdrig.terminal import printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--runs", metavar="DIR", default="runs", help="parent of the run folders (default ./%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line for each run")


def command(args) -> int:
    root = Path(args.runs)
    try:
        folders = parts.all_runs(root)
    except OSError as error:
        raise UsageError(f"a folder of runs {root}", error.strerror or str(error), "name it with --runs DIR") from error
    for row in map(row_of, folders):
        if args.json:
            print(json.dumps(row))
            continue
        drive = "damaged" if row["why"] and not row["plan"] else f"{row['model']} {row['serial']}"
        print(f"{row['started'] or '-':16}  {printable(row['plan'] or '-'):28} {row['state']:11} {printable(drive)}")
        print(f"{'':16}  {printable(row['run'])}")
    return 0


def row_of(folder: Path) -> dict:
    """{"run", "started": UTC to the minute, "plan", "state", "model", "serial", "why"}; of a folder that cannot be read
    what can be, and why."""
    row: dict = {
        "run": str(folder),
        "started": None,
        "plan": None,
        "state": "unreadable",
        "model": None,
        "serial": None,
    }
    row["why"] = None
    try:
        header = journal.run_header(folder)
        plan, drive = header.get("plan") or {}, header["drive"]
        name, variant = plan.get("name") or header["method"].get("name"), plan.get("variant")
        at = datetime.datetime.fromtimestamp(header["started"]["utc_ns"] / 1e9, datetime.UTC)
        row |= {"started": f"{at:%Y-%m-%d %H:%M}", "plan": f"{name} {variant}" if variant else name}
        row |= {
            "model": drive.get("model"),
            "serial": drive.get("serial"),
            "state": journal.state(parts.of(folder)[-1]),
        }
    except SsdrigError as error:
        row["why"] = str(error)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        row["why"] = f"{type(error).__name__}: {error}"
    return row
