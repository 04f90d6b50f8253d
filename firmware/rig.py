"""The rig: answers the host's commands (wire.py) and streams what the sensors measure.

The REPL stays in reach: `q`, or Ctrl-C three times, or mpremote's greeting, ends the program.
"""

import gc
import json
import os
import sys
from time import sleep_ms, sleep_us, ticks_diff, ticks_us

import heap  # first, then what needs up to 32 KiB in one piece

import adc_ring  # noqa: F401
import board

# then the largest to compile: imported last, they left 38 KB in one piece, so early they leave 60
from sampler import Sampler
from switch import IDLE, Switch
from link import Link

import calibration
import machine
import micropython
import rp2
import wire
from clock64 import Clock64
from cut import Refused
from ina228 import SensorError
from registers import usb_idle
from scope import Scope

FIRMWARE = "1.0.0"
RETRY_us = 200_000
_BEGIN_us = 100  # that it takes to start a rail, about
LOST = OSError, SensorError  # of a sensor. Made here, because a tuple in an `except` clause is built again each time
REFUSED = Refused, ValueError  # of a command; ValueError: its body is not JSON
PRESSING = 1024  # bytes in the queue that do not wait for a round without work: conversions alone can fill all rounds
URGENT = 4096  # that do not wait for an empty FIFO of the USB stack either
MOST_PIECES = 6  # sent in one piece


class Rig:
    """All parts of the board, and what each command of the host does with them."""

    def __init__(self, link=None):
        """ValueError: a row of the board's rails is not one."""
        if board.WRONG:
            raise ValueError(board.WRONG)
        self.boot = int.from_bytes(os.urandom(4), "little")
        self.clock = Clock64()
        self.link = link or Link()
        self.samplers = []
        for rail, chip in zip(board.RAILS, board.chips()):
            make = __import__("ranges").Ranged if rail.get("low") else Sampler  # a board without does not load it
            self.samplers.append(make(rail, chip, self.link, self.clock))
        self.switch = Switch(board.SWITCH, board.SIDEBAND, board.SYNC, self.samplers, self.link, self.clock)
        if board.LOCK_OUTS is not None:  # a board without does not load it
            self.switch.lock_outs = __import__("lock_outs").LockOuts(board.LOCK_OUTS, self.switch)
        self.scope = self.switch.scope = Scope(board.SCOPE, self.link, self.clock, board.PAIR, board.GATE_SUPPLY)
        self.fast = __import__("fast").Fast(board.FAST, self.link, self.clock) if board.FAST else None
        self.streaming = False
        self.about = None  # of H, while nothing of it changes
        self.idle_hello = None  # the frame of H with this, the switch idle
        self.rounds = 0
        self.lost_at = 0  # when a lost sensor was last asked
        for sampler in self.samplers:
            try:
                sampler.probe()
            except LOST as why:
                self.log(sampler, why)
        heap.ready()

    def log(self, sampler, why):
        self.link.say(wire.LOG, "rail %d: %s" % (sampler.rail["rail"], why if str(why) else repr(why)))

    def hello(self):
        """Send H. Only the switch changes while the rig streams, except a sensor that is lost: the rest is not worked
        out again, which would take the main loop 8 ms more. With the switch idle, all of H is sent as it is: its
        garbage would fill the low end of the heap (heap.py), and each round would then take twice as long."""
        if not self.streaming or not self.about:
            self.about, self.idle_hello = self._about(), None
        idle = self.switch.state is IDLE and not self.switch.tripped
        frame = self.idle_hello if idle else None
        if not frame:
            switch = json.dumps(self.switch.describe(), separators=(",", ":"))
            frame = self.link.framed(wire.HELLO, '{"switch":%s,%s' % (switch, self.about))
        if idle:
            self.idle_hello = frame
        self.link.owe(frame)

    def _about(self):
        """The text of H after its first brace, without the switch."""
        rails = [sampler.describe() for sampler in self.samplers]
        stored = calibration.load()
        for rail in rails:
            rail["calibration"] = stored.get(str(rail["rail"]))
        about = {
            "protocol": wire.PROTOCOL,
            "boot": self.boot,
            "board": board.NAME,
            "serial": board.SERIAL,
            "firmware": FIRMWARE,
            "build": board.BUILD,
            "simulated": board.SIMULATED,
            "revision": board.REVISION,
            "buses": board.BUSES,
            "rails": rails,
            "stamp_ns": 1000 * max([sampler.lane.stamp_us() for sampler in self.samplers]),
            "scope": self.scope.describe(),
            "fast": self.fast.describe() if self.fast else None,
            "gate_supply": board.GATE_SUPPLY,
        }
        return json.dumps(about, separators=(",", ":"))[1:]

    def go(self):
        if self.fast:
            self.fast.go()
        self.about = self.about or self._about()
        gc.collect()  # from here to `stop` nothing allocates, so no collection interrupts the sampling
        self.streaming = True
        ready = []
        for sampler in self.samplers:
            try:
                sampler.prepare()
                ready.append(sampler)
            except LOST as why:
                self.lose(sampler, why)
        for k, sampler in enumerate(ready):
            try:
                sampler.go()
            except LOST as why:
                self.lose(sampler, why)
            # rails that want the bus at different times wait less; all begin before the first one's edge
            if k < len(ready) - 1:
                sleep_us(max(0, sampler.chip.conversion_us // len(ready) - _BEGIN_us))

    def stop(self):
        self.streaming = False
        self.switch.stop()
        if self.fast:
            self.fast.stop()
        for sampler in self.samplers:
            edges = sampler.lane.interference()  # before a conversion that just ends finds its chip put to sleep
            try:
                sampler.stop()
            except OSError as why:
                self.log(sampler, why)
            if edges:
                self.log(sampler, "%d edges of ALERT had no conversion (interference?) and are not counted" % edges)
            if sampler.lane.unseen:
                self.log(sampler, "%d edges of ALERT were lost, their samples count as missed" % sampler.lane.unseen)

    def lose(self, sampler, why):
        """A sensor fails: report it once, then try to get it back."""
        sampler.running = False
        self.log(sampler, why)
        self.lost_at = ticks_us()

    def find(self, sampler):
        """Try, now and then, to get a lost sensor back."""
        if ticks_diff(ticks_us(), self.lost_at) < RETRY_us:
            return
        try:
            sampler.lane.free()
            sampler.recover()
        except LOST:
            sampler.dark()
            self.lost_at = ticks_us()
            return
        self.log(sampler, "sensor configured again, config %d" % sampler.config_id)
        self.about = None
        self.hello()

    def command(self, kind):
        """Execute a command. False if it was the last one."""
        if kind == wire.PING:
            self.link.pong(self.clock)
        elif kind == wire.ASK_HELLO:
            self.hello()
        elif kind == wire.GO:
            self.go()
        elif kind == wire.STOP:
            self.stop()
        elif kind in (wire.ARM, wire.CUT, wire.ON, wire.SCOPE, wire.CALIBRATE, wire.LOCK_OUTS):
            try:
                self.carry_out(kind)
            except REFUSED as why:
                self.link.say(wire.REFUSED, json.dumps({"command": chr(kind), "why": str(why)}))
        return kind != wire.QUIT

    def carry_out(self, kind):
        """A command that may be refused."""
        if kind == wire.ARM:
            self.switch.arm()
        elif kind == wire.CUT:
            self.switch.cut(json.loads(self.link.text()))
        elif kind == wire.ON:
            self.switch.on(json.loads(self.link.text()))
        elif kind == wire.LOCK_OUTS:
            if not self.streaming:
                raise Refused("the stream does not run")
            if self.switch.lock_outs is None:
                raise Refused("this board cannot trip its lock-outs")
            self.switch.lock_outs.test(json.loads(self.link.text()))
        elif kind == wire.SCOPE:
            if self.fast:
                self.fast.stop()  # there is one ADC
            self.scope.command(json.loads(self.link.text()))
            self.hello()
        elif kind == wire.CALIBRATE:
            if self.streaming:  # writing to flash takes longer than a conversion
                raise Refused("the stream runs: stop it first")
            calibration.command(self.link.text(), [sampler.rail["rail"] for sampler in self.samplers])
            self.hello()

    def spare(self):
        """Is there time for the fast channel, half a millisecond? Sensors and link come first."""
        for sampler in self.samplers:
            if not sampler.lane.spare():
                return False
        return self.link.used < PRESSING

    def turn(self):
        """One round: at most one byte in and the new readings of each rail; if there was neither or the queue is
        long, one piece out, and more if it still is. False if there was nothing to do at all."""
        busy = False
        kind = self.link.receive()
        if kind != Link.NOTHING:
            busy = True
            if kind != Link.PART and not self.command(kind):
                self.link.escape = True
        if self.streaming:
            for sampler in self.samplers:
                if sampler.running:
                    try:
                        busy = sampler.turn() or busy
                    except LOST as why:
                        self.lose(sampler, why)
                else:
                    self.find(sampler)
        switch = self.switch
        if switch.state is not IDLE or switch.armed:
            switch.turn()
        if self.scope.state:
            self.scope.turn()
        elif self.fast and self.streaming and self.spare():
            self.fast.turn()
        self.rounds = (self.rounds + 1) & 15
        if not self.rounds:
            self.clock.update()
        used = self.link.used
        if busy and (used < PRESSING or used < URGENT and not usb_idle()):
            return True
        return self.link.send(MOST_PIECES if used >= PRESSING else 1, busy and used < URGENT) or busy


def run():
    """Until the host or the user wants the prompt. A defect is stated, and resets the board; so does one in saying
    it."""
    if hasattr(micropython, "alloc_emergency_exception_buf"):  # or a hard interrupt fails without a word
        micropython.alloc_emergency_exception_buf(200)
    micropython.kbd_intr(-1)  # a frame may hold the byte of Ctrl-C
    link = Link()
    rig = None
    prompt = False
    try:
        rig = Rig(link)
        while not link.escape:
            if not rig.turn():
                machine.idle()  # until an interrupt (conversion ready, USB), at most 1 ms
        rig.stop()
        rig.switch.release()
        rig.scope.release()
        prompt = True
    except Exception as defect:
        if rig:
            rig.switch.release()
        prompt = _last_words(link, defect)
    finally:
        micropython.kbd_intr(3)
        if not prompt:
            machine.reset()


def _last_words(link, defect):
    """Report the error and wait. True if the user wants the prompt: Ctrl-C, or the button BOOTSEL."""
    link.say(wire.LOG, "firmware stops: %s: %s; reset in 3 s" % (type(defect).__name__, defect))
    while link.send():
        pass
    sys.print_exception(defect, sys.stderr)
    micropython.kbd_intr(3)
    try:
        for _ in range(30):
            sleep_ms(100)
            if rp2.bootsel_button():
                return True
    except KeyboardInterrupt:
        return True
    return False
