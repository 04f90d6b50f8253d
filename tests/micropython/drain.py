"""Runs under MicroPython: lane.drain over rings given as JSON on standard input, one line of results each.

micropython drain.py FIRMWARE STAND_INS < CASES
"""

import usys

usys.path[:] = [usys.argv[1], usys.argv[2], ".frozen"]

import binascii
import json
from array import array

import lane

for case in json.loads(usys.stdin.read()):
    mem, frame = array("i", case["mem"]), bytearray(300)
    moved = lane.drain(mem, 0, frame, 3, case["last"], 155, case["most"], case["zeros"])
    print(json.dumps([moved, binascii.hexlify(frame).decode(), list(mem)[:13]]))
