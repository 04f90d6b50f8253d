"""The main job, shown on the virtual bench: the consistency test twice, with the drive's own over-provisioning and with
25 % of raw NAND, in real time, sent to a private InfluxDB where influxd is installed; then one report of both."""

import argparse
import json
import shutil
import sys
from pathlib import Path

from ssdrig import report, run
from ssdrig.virtual import influxd

PRESET = "sata-tlc"


def add_arguments(parser) -> None:
    parser.add_argument("--duration", type=int, default=60, metavar="S", help="seconds of random write in each run (default %(default)s)")
    parser.add_argument("--runs", metavar="DIR", default="runs", help="where run folders and the report are made (default ./%(default)s)")
    parser.add_argument("--json", action="store_true", help="print paths and figures as one JSON object")


def command(args) -> int:
    say = lambda words: print(words, file=sys.stderr, flush=True)  # noqa: E731
    say("demo: two consistency runs on a SIMULATED drive, measured by the real firmware; about 3 minutes. Nothing of this machine's disks is touched.")
    server = None
    if shutil.which("influxd"):
        server = influxd.start()
    else:
        say("demo: influxd is not installed, so nothing is sent to InfluxDB (the run folders hold everything)")
    folders, codes = [], []
    try:
        for op in (None, 25.0):
            folder, code = _run(op, args, server.url if server else None)
            folders.append(folder)
            codes.append(code)
        if server:
            for folder in folders:
                _compare(folder, server, say)
    finally:
        if server:
            server.stop()
    page = Path(args.runs) / "demo.html"
    words = [*map(str, folders), "--out", str(page)]
    parser = argparse.ArgumentParser()
    report.add_arguments(parser)
    report.command(parser.parse_args(words))
    if args.json:
        print(json.dumps({"runs": list(map(str, folders)), "report": str(page.resolve())}))
    say(f"demo: the report is {page.resolve()}")
    return max(codes)
