"""For tests of plans: the drive that they are for, and the parts that small plans begin with."""

DRIVE = {"interface": "nbd", "capacity_bytes": 1 << 30, "raw_nand_bytes": 1 << 30, "time_dilation": 1}
DRIVE |= {"logical_block_bytes": 4096, "model": "M", "serial": "S"}
HEAD = """schema = 1
name = "x"
title = "X"
source = "a test"
about = "a test"
"""
FILL = """[[step]]
name = "fill"
do = "fill"
"""
# the drive emptied, and written once
FILLED = (
    """[[step]]
name = "purge"
do = "purge"
"""
    + FILL
)


def operating_points(qds: str, time_s: int, rounds: int, points: str, picked: str, again_s: int) -> tuple[str, ...]:
    """Three steps: random writes at each queue depth of qds, the choice of `points` from them, and those `picked` once
    more."""
    sweep = f"""[[step]]
name = "sweep"
do = "repeat"
times = {rounds}
  [[step.step]]
  name = "point"
  do = "load"
  pattern = "random"
  read = 0
  block = "4 KiB"
  over = [{{ qd = [{qds}] }}]
  time = "{time_s} s"
"""
    pick = f"""[[step]]
name = "pick"
do = "choose"
from = "sweep/point"
points = [{points}]
"""
    again = f"""[[step]]
name = "again"
do = "repeat"
over = [{{ at = [{picked}] }}]
  [[step.step]]
  name = "long"
  do = "load"
  pattern = "random"
  read = 0
  block = "4 KiB"
  time = "{again_s} s"
"""
    return sweep, pick, again
