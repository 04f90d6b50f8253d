"""Runs under MicroPython: the firmware streams for ROUNDS rounds with the heap locked, so that any allocation raises
MemoryError.

    micropython heap_locked.py FIRMWARE STAND_INS FEED ROUNDS [leak]

The stand-ins allocate, so the heap is unlocked inside each of them and locked again after it; interrupt handlers run
locked. Device time runs free of real time; commands are put in by this script. Printed: a line with the t_us at which
the first ping arrives (one more each 5 ms), then a line `t_us hex` for each piece of the rig's output.
On an interpreter with 31-bit small integers this also shows that no number of the sampling path needs more.
With `leak` each round does allocate: the proof that the lock is felt.
"""

import usys

FIRMWARE, STAND_INS, FEED, ROUNDS = usys.argv[1:5]
LEAK = len(usys.argv) > 5
usys.path[:] = [FIRMWARE, STAND_INS, ".frozen"]

import binascii
import struct

import cosim
import machine
import select
import time
import wire
from ina228_model import INA228
from micropython import heap_lock, heap_unlock
from supply import Supply

locking = False
out = []


def unlocked(function, arguments):
    """`function` with the heap unlocked while it runs. Fixed arity: *args would allocate before the unlock."""

    def f0():
        if locking:
            heap_unlock()
        result = function()
        if locking:
            heap_lock()
        return result

    def f2(a, b):
        if locking:
            heap_unlock()
        result = function(a, b)
        if locking:
            heap_lock()
        return result

    def f4(a, b, c, d):
        if locking:
            heap_unlock()
        result = function(a, b, c, d)
        if locking:
            heap_lock()
        return result

    return {0: f0, 2: f2, 4: f4}[arguments]


class Stream:
    def ready(self):
        return (select.POLLIN if cosim.input_ready() else 0) | select.POLLOUT


def _readinto(stream, buf):
    cosim.spend(8000)
    buf[0] = cosim.input_byte()
    return 1


def _write(stream, buf, start, n):
    out.append((cosim.ticks(), bytes(memoryview(buf)[start : start + n])))
    cosim.spend(8000 + 100 * n)
    return n


def _edge(pin):
    """machine.Pin._edge with the handler under the lock."""
    chip = pin.chip
    chip.advance(cosim.now)
    if not chip.alert():
        cosim.spend(machine.IRQ_ns)
        if locking:
            heap_lock()
        pin.handler(pin)
        if locking:
            heap_unlock()
    machine._arm(chip)


class Implementation:
    _machine = "SIMULATED"


class Sys:
    implementation = Implementation
    print_exception = usys.print_exception


cosim.real = lambda: cosim.now
cosim._take = lambda: None
cosim._poll_fd = lambda fd, events, wait: True
cosim.begin(1_000_000_000, (1 << 30) - 300_000, 15.0)  # ticks_us wraps after 0.3 s
chip = INA228(Supply(FEED, 15, 10_000, 0).window, cosim.boot, 10_000, 5000, 0.5, 200, -100, 1.0)
chip.alarm = None
machine.chips[0x40] = chip
machine.wires[6] = chip

Stream.readinto = unlocked(_readinto, 2)
Stream.write = unlocked(_write, 4)
Sys.stdin = Sys.stdout = Stream()
Sys.stdin.buffer = Sys.stdin
usys.modules["sys"] = Sys
time.ticks_us = unlocked(time.ticks_us, 0)
time.ticks_add = unlocked(time.ticks_add, 2)
time.ticks_diff = unlocked(time.ticks_diff, 2)
machine.idle = unlocked(machine.idle, 0)
machine.I2C.readfrom_mem_into = unlocked(machine.I2C.readfrom_mem_into, 4)
machine.Pin._edge = _edge
select.poll.ipoll = unlocked(select.poll.ipoll, 2)

import rig

board = rig.Rig()
cosim._input.append([cosim.now, wire.encode(wire.GO, 0), 0])
while not board.streaming:
    board.turn()
first_ping = cosim.ticks()
for k in range(int(ROUNDS) // 50):  # commands that will arrive while the heap is locked
    cosim._input.append([cosim.now + k * 5_000_000, wire.encode(wire.PING, k + 1, struct.pack("<I", k)), 0])

locking = True
heap_lock()
kept = 0
try:
    for _ in range(int(ROUNDS)):
        if not board.turn():
            machine.idle()
        if LEAK:
            kept = [kept]
except MemoryError as defect:
    locking = False
    heap_unlock()
    usys.print_exception(defect)
    usys.exit(3)
locking = False
heap_unlock()
print(first_ping)
for t, piece in out:
    print(t, binascii.hexlify(piece).decode())
