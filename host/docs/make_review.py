"""Makes host/docs/example-review.html anew: `python host/docs/make_review.py`. On SIMULATED drives, in real time: the
consistency test of another drive for the library, then a review of level quick; a quarter of an hour."""

import argparse
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from ssdrig import cli  # noqa: E402

PAGE = HERE / "example-review.html"
REVIEWED, OTHER, SMALL = "sata-tlc", "sata-mlc", ["--capacity", "1GiB"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", metavar="DIR", help="where the run folders are kept (default: nowhere)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ssdrig-review-", dir="/var/tmp") as folder:
        runs = ["--runs", args.runs or folder]
        code = cli.main(["run", "consistency", "--virtual", OTHER, "--op", "own,25", *SMALL, *runs])
        return code or cli.main(["review", "--virtual", REVIEWED, "--out", str(PAGE), *SMALL, *runs])


if __name__ == "__main__":
    sys.exit(main())
