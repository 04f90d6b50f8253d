"""For tests of plans: the drive that they are for, and the parts that small plans begin with."""

DRIVE = {"interface": "nbd", "capacity_bytes": 1 << 30, "raw_nand_bytes": 1 << 30, "time_dilation": 1}
DRIVE |= {"logical_block_bytes": 4096, "model": "M", "serial": "S"}
HEAD = """schema = 1
name = "x"
title = "X"
source = "a test"
about = "a test"
"""
FILLED = """[[step]]
name = "purge"
do = "purge"
[[step]]
name = "fill"
do = "fill"
"""  # steps: the drive emptied, and written once
