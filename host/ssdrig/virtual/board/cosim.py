"""Device time of the SIMULATED board: how the firmware's time and the host's time are kept together.

`now` is the board's own point on CLOCK_MONOTONIC, in ns. Each primitive that the firmware calls costs what it costs on
an RP2040 (measured on an emulated one: about 20 us around an I2C call), and an interrupt comes when its time comes.
`now` never runs ahead of real time where that could be seen: output leaves, and waiting ends, not before real time has
caught up. It may lag, when Linux runs something else, and then catches up; the firmware sees nothing of it, because
input carries the time at which it arrived and the past of the power feed is kept. So a late process delays results
but never alters them.

With a `pace` the board has its own time, for tests: it begins as CLOCK_MONOTONIC and passes at most `pace` times
as fast, in steps of AHEAD_ns. It lags by LAG_ns at most: while the machine has no time for the board, its time stops
still. So such a board is never late, however busy the machine is, and costs less, because it need not wait for each
moment; but its time cannot be compared with the host's.

What runs many times for each sample is compiled to machine code (`native`), here and in other stand-ins. A traceback
does not show such a function, and a local that is read before it is set ends the interpreter with SIGSEGV: to find a
defect, take the decorators off.

Input comes from the cable on descriptor 0 in pieces of `arrival u64, length u16, bytes` (CLOCK_MONOTONIC, ns).
"""

import uctypes
import usys
import utime
from array import array

import ffi
import micropython

US = 1000
NEVER = (1 << 62) - 1  # the largest small integer of a 64-bit interpreter
STDIN, STDOUT = 0, 1
POLLIN, POLLOUT = 1, 4
OUT_FIFO, PACKET = 256, 64  # capacity of the USB stack's FIFO, and the packet by which it empties
OUT_ns_PER_BYTE = 1700  # and how fast they leave: 585 KiB/s
OUT_COPY_ns = 100  # a byte
OUT_TIMEOUT_ns = 500_000_000  # the RP2 port gives up a write after this
# A board with its own time catches up at most this far, runs ahead this far before it waits, polls input this
# often
LAG_ns, AHEAD_ns, LOOK_ns = 50_000_000, 100_000_000, 2_000_000
GRACE_ns = 1_000_000_000  # real time a full pipe is waited for: only then it is the host that does not read, not Linux

_libc = ffi.open(None)
_ppoll = _libc.func("i", "ppoll", "pLpp")
_write = _libc.func("l", "write", "iPL")

boot = now = 0
rate = 1.0
pace = 0.0  # 0: real time is the host's
_look_at = 0
_origin = 0  # the host's time that counts as `boot`: later each time the board's clock was held
start_ticks = 0
fifo_empty_at = 0  # when the USB stack will have sent all that it was given
stuck = False  # the host does not read
# the processor's event register, which an interrupt sets: one came since the last wait, so the next one ends
# immediately
woken = False
event_at = NEVER  # the earliest of all alarms
_alarms = []  # [time, function called at that time, time until which the processor will see nothing of it]
_pollfd = bytearray(8)
_timespec = array("l", [0, 0])
_input = []  # [arrival, bytes, position]


def begin(boot_ns, ticks, clock_ppm, own_pace=0.0):
    global boot, now, rate, pace, start_ticks, _origin
    boot = now = _origin = boot_ns
    start_ticks = ticks
    rate = 1 + clock_ppm * 1e-6
    pace = own_pace


def _host():
    """CLOCK_MONOTONIC, ns."""
    return utime.ticks_us() * US


def _host_32():
    """The same where MicroPython has 31-bit integers, and its ticks_us wraps."""
    _clock_gettime(1, _timespec)
    return _timespec[0] * 1_000_000_000 + _timespec[1]


if usys.maxsize < 1 << 32:
    _clock_gettime = _libc.func("i", "clock_gettime", "ip")
    _host = _host_32


def real():
    """The time that the board's should be by now, ns."""
    global _origin
    t = _host()
    if not pace:
        return t
    t = boot + int((t - _origin) * pace)
    late = t - now - LAG_ns
    if late > 0:
        _origin += int(late / pace)
        t -= late
    return t


@micropython.native
def _look():
    """With its own time: wait if it is ahead, and take the input received by then."""
    global _look_at
    if now < _look_at:
        return
    _look_at = now + LOOK_ns
    ahead = now - real()
    if _poll_fd(STDIN, POLLIN, int(ahead / pace) if ahead > AHEAD_ns else 0):
        _take()


@micropython.native
def ticks():
    """The board's microseconds at `now`, 64 bit: start_ticks + (now - boot) * (1 + ppm)."""
    return start_ticks + int((now - boot) * rate) // US


def add_alarm(function):
    """Returns the handle for set_alarm."""
    alarm = [NEVER, function, NEVER]
    _alarms.append(alarm)
    return alarm


@micropython.native
def set_alarm(alarm, t):
    global event_at
    before = alarm[0]
    alarm[2] = t
    if before == t:
        return
    alarm[0] = t
    if t < event_at:
        event_at = t
    elif before == event_at:
        for other in _alarms:
            if other[0] < t:
                t = other[0]
        event_at = t


@micropython.native
def spend(ns):
    """Let device time pass; events due in it run, and add their own time."""
    global now
    end = now + ns
    while event_at <= end:
        for alarm in _alarms:
            if alarm[0] == event_at:
                break
        if alarm[0] > now:
            now = alarm[0]
        began = now
        set_alarm(alarm, NEVER)
        alarm[1]()
        end += now - began
    now = end


def _poll_fd(fd, events, wait_ns):
    _pollfd[0] = fd
    _pollfd[4] = events
    _pollfd[6] = 0
    _timespec[0] = wait_ns // 1_000_000_000
    _timespec[1] = wait_ns % 1_000_000_000
    return _ppoll(_pollfd, 1, _timespec, None) > 0


def _exactly(n):
    data = usys.stdin.buffer.read(n)
    if len(data) < n:  # the cable is gone: power off
        usys.exit(0)
    return data


def _take():
    """Queue all input that the cable has passed on."""
    while _poll_fd(STDIN, POLLIN, 0):
        head = _exactly(10)
        arrival = int.from_bytes(head[:8], "little")
        _input.append([now if pace else arrival, _exactly(head[8] | head[9] << 8), 0])


def catch_up():
    """Sleep until real time has caught up with device time."""
    if pace:
        return _look()
    while True:
        ahead = now - real()
        if ahead <= 0:
            return
        utime.sleep_us(ahead // US + 1)


def input_ready():
    if not _input:
        if pace:
            _look()
        else:
            _take()
    return bool(_input) and _input[0][0] <= now


def input_byte():
    """The next byte of input; waits for it."""
    while not input_ready():
        idle(1_000_000)
    piece = _input[0]
    at = piece[2]
    if at + 1 == len(piece[1]):
        _input.pop(0)
    else:
        piece[2] = at + 1
    return piece[1][at]


def idle(limit_ns):
    """Let time pass until an interrupt, input, or the limit."""
    global woken
    end = now + limit_ns
    while not woken and now < end:
        until = min(end, min([alarm[2] for alarm in _alarms]))
        if pace:
            _look()
        elif not _input and _poll_fd(STDIN, POLLIN, max(0, until - real())):
            _take()
        if _input and _input[0][0] < until:
            until = end = max(now, _input[0][0])
        ahead = 0 if pace else until - real()
        if ahead > 0:  # input was queued before; its time has not come
            utime.sleep_us(ahead // US + 1)
        while True:
            spend(max(0, min(until, event_at) - now))
            if woken or now >= until:
                break
    woken = False


def _pipe_ready():
    """Can something be written? A cable that Linux has not let run is waited for, at no cost of device time."""
    global stuck
    if _poll_fd(STDOUT, POLLOUT, 0):
        stuck = False
    elif not stuck:
        stuck = not _poll_fd(STDOUT, POLLOUT, GRACE_ns)
    return not stuck


def output_ready():
    """Is there room for a byte?"""
    catch_up()
    packets = -((now - fifo_empty_at) // (PACKET * OUT_ns_PER_BYTE))
    return packets * PACKET < OUT_FIFO and _pipe_ready()


def output(buf, start, n):
    """Send buf[start:start+n]. Returns how much the host took within the USB stack's patience."""
    global fifo_empty_at
    catch_up()
    address = uctypes.addressof(buf) + start
    sent = 0
    give_up = now + OUT_TIMEOUT_ns
    while True:
        w = _write(STDOUT, address + sent, n - sent) if _pipe_ready() else 0
        if w > 0:
            sent += w
            fifo_empty_at = max(fifo_empty_at, now) + w * OUT_ns_PER_BYTE
            full = fifo_empty_at - now - OUT_FIFO * OUT_ns_PER_BYTE
            spend(w * OUT_COPY_ns + max(0, full))
        if sent == n or now >= give_up:
            return sent
        if stuck:
            spend(1_000_000)
            catch_up()


def time_of(count):
    """The first ns at which ticks() is `count`."""
    t = boot + int((count - start_ticks) * US / rate)
    while start_ticks + int((t - boot) * rate) // US < count:
        t += 1
    return t
