"""Writes the guide's pictures: python hardware/guide/guide.py [FOLDER]. Tests compare the committed ones with it."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "board")]
import assembly
import plan
import ways


def files():
    """{name: text} of all that lies beside this file and is made by it."""
    return plan.pictures() | assembly.pictures() | ways.pictures()


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name, text in files().items():
        (folder / name).write_text(text)
        print(folder / name)
