"""Runs under MicroPython: the firmware streams for ROUNDS rounds with the heap locked, so that any allocation raises
MemoryError.

    micropython heap_locked.py FIRMWARE STAND_INS FEED ROUNDS [leak | CONVERSIONS] < RAILS

RAILS: JSON, what each rail's row changes in the first of board.RAILS; on standard input, because the interpreter takes
no argument above 255 bytes.

The stand-ins allocate, so the heap is unlocked inside each of them and locked again after it; interrupt handlers run
locked. Device time runs free of real time; commands are put in by this script. Printed: a line with the t_us at which
the first ping arrives (one more each 5 ms), then a line `t_us hex` for each piece of the rig's output.
On an interpreter with 31-bit small integers this also shows that no number of the sampling path needs more.
With `leak` each round does allocate: the proof that the lock is felt. CONVERSIONS: so many have been counted, missed
and framed before the lock, as after weeks of streaming.
"""

import usys

FIRMWARE, STAND_INS, FEED, ROUNDS = usys.argv[1:5]
OPTION = usys.argv[5] if len(usys.argv) > 5 else ""
LEAK = OPTION == "leak"
AHEAD = 0 if LEAK or not OPTION else int(OPTION)
usys.path[:] = [FIRMWARE, STAND_INS, ".frozen"]

import binascii
import json
import struct

import adc_ring_model
import alert_age_model
import cosim
import i2c_block
import machine
import registers_model
import select
import spi_block
import time
import wire
import wiring
from micropython import heap_lock, heap_unlock
from feed_reader import Feed

RAILS = json.loads(usys.stdin.read())
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

    def f1(a):
        if locking:
            heap_unlock()
        result = function(a)
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

    def f3(a, b, c):
        if locking:
            heap_unlock()
        result = function(a, b, c)
        if locking:
            heap_lock()
        return result

    def f5(a, b, c, d, e):
        if locking:
            heap_unlock()
        result = function(a, b, c, d, e)
        if locking:
            heap_lock()
        return result

    return {0: f0, 1: f1, 2: f2, 3: f3, 4: f4, 5: f5}[arguments]


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


def call(pin):
    """machine.call with the handler under the lock."""
    if locking:
        heap_lock()
    pin.handler(pin)
    if locking:
        heap_unlock()


class Implementation:
    _machine = "SIMULATED"


class Sys:
    implementation = Implementation
    print_exception = usys.print_exception


cosim.real = lambda: cosim.now
cosim._take = lambda: None
cosim._poll_fd = lambda fd, events, wait: True
cosim.begin(1_000_000_000, (1 << 30) - 300_000, 15.0)  # ticks_us wraps after 0.3 s

Stream.readinto = unlocked(_readinto, 2)
Stream.write = unlocked(_write, 4)
Sys.stdin = Sys.stdout = Stream()
Sys.stdin.buffer = Sys.stdin
usys.modules["sys"] = Sys
registers_model.usb_idle = unlocked(registers_model.usb_idle, 0)
usys.modules["registers"] = registers_model
usys.modules["adc_ring"] = adc_ring_model
usys.modules["alert_age"] = alert_age_model
time.ticks_us = unlocked(time.ticks_us, 0)
time.ticks_add = unlocked(time.ticks_add, 2)
time.ticks_diff = unlocked(time.ticks_diff, 2)
machine.idle = unlocked(machine.idle, 0)
machine.I2C.readfrom_mem_into = unlocked(machine.I2C.readfrom_mem_into, 4)
machine.call = call
select.poll.ipoll = unlocked(select.poll.ipoll, 2)

fifo = i2c_block.install(FIRMWARE + "/i2c_fifo.py")
fifo["step"] = unlocked(fifo["step"], 1)
fifo["edge"] = unlocked(fifo["edge"], 2)
spi = spi_block.install(FIRMWARE + "/spi_lane.py")
spi["edge"] = unlocked(spi["edge"], 3)
spi["exchange"] = unlocked(spi["exchange"], 5)

import board

board.RAILS = tuple([dict(board.RAILS[0], **row) for row in RAILS])
wiring.sensors(
    board.RAILS, Feed(FEED, 15, board.RAILS[0]["shunt_uOhm"], 0).window, cosim.boot, (5000, 0.5, 200, -100, 1.0)
)

import rig

board = rig.Rig()
cosim._input.append([cosim.now, wire.encode(wire.GO, 0), 0])
while not board.streaming:
    board.turn()
for sampler in board.samplers if AHEAD else ():
    sampler._close()
    left = AHEAD
    while left:
        n = min(left, 1 << 28)
        left -= n
        sampler.base_index += n
        sampler.learn_at += n
        sampler._count(n)
    sampler.missed[0] = AHEAD
    board.link.seq[0] = AHEAD
for sampler in board.samplers:
    if sampler.accumulates:  # soon, instead of a second later
        sampler.energy_at = sampler.next + 500
first_ping = cosim.ticks()
for k in range(int(ROUNDS) // 50):  # commands that will arrive while the heap is locked
    cosim._input.append([cosim.now + k * 5_000_000, wire.encode(wire.PING, k + 1, struct.pack("<I", k)), 0])

held_ = defect = _ = None  # a global's first binding takes memory
locking = True
heap_lock()
try:
    for _ in range(int(ROUNDS)):
        if not board.turn():
            machine.idle()
        if LEAK:
            held_ = [held_]
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
