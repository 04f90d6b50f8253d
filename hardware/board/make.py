"""Makes another board than this one with the tools here: schematic, tracks, pours, checks, files to order by.

python hardware/board/make.py breakout|interposer draw|export|route|fill|release [FOLDER]
"""

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main(words):
    board, tool, *rest = words
    sys.path[:0] = [str(HERE.parent / board / "board"), str(HERE), str(HERE.parents[1] / "host")]
    sys.argv = [str(HERE / f"{tool}.py"), *rest]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
