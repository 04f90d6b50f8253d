"""Compiles the simulator ahead of its first use: `./ssdrig setup` runs this in the environment that it has made."""

import argparse
import sys

from ssdrig.virtual.device.device import warm_up
from ssdrig.virtual.flash.presets import PRESETS

PRESET = "sata-tlc"  # any: all presets share their machine code


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    warm_up(PRESETS[PRESET])
    return 0


if __name__ == "__main__":
    sys.exit(main())
