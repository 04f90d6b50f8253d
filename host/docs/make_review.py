"""Makes host/docs/use/example-review.html again: `python host/docs/make_review.py`. On SIMULATED drives, in real time:
the consistency test of another drive for the library, then a review of level quick; a quarter of an hour."""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
LAUNCHER = HERE.parents[1] / "ssdrig"

PAGE = HERE / "use/example-review.html"
REVIEWED, OTHER, SMALL = "sata-tlc", "sata-mlc", ["--capacity", "1GiB"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", metavar="DIR", help="where the run folders are kept (default: nowhere)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ssdrig-review-", dir="/var/tmp") as folder:
        runs = ["--runs", args.runs or folder]
        other = ["run", "consistency", "--virtual", OTHER, "--op", "own,25", *SMALL, *runs]
        code = subprocess.run([LAUNCHER, *other], check=False).returncode
        review = ["review", "--virtual", REVIEWED, "--out", str(PAGE), *SMALL, *runs]
        return code or subprocess.run([LAUNCHER, *review], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
