"""Makes the breakout's board with the tools of ../../board: schematic, tracks, pours, checks, files to order by.

python hardware/breakout/board/make.py draw|export|route|fill|release [FOLDER]
"""

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BOARD = HERE.parents[1] / "board"


def main(words):
    tool, *rest = words
    sys.path[:0] = [str(HERE), str(BOARD), str(HERE.parents[2] / "host")]
    sys.argv = [str(BOARD / f"{tool}.py"), *rest]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
