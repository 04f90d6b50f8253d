"""Device time of the SIMULATED board, and its I2C block, on CPython: real time, Linux and the cable are stood for by
numbers."""

import sys
import types

import pytest
from chips import BOARD, ina228_model, load

US, MS = 1000, 1_000_000
READ, STOP, RESTART = 1 << 8, 1 << 9, 1 << 10
DIAG, VBUS, CURRENT = 0x0B, 0x05, 0x07
SET_ns = 740_000


class Linux:
    """Real time passes while somebody sleeps. `input`: arrivals (ns) of what the cable has yet to say."""

    def __init__(self):
        self.now, self.input, self.waits = 0, [], []

    def poll(self, pollfd, n, wait, mask):
        wait_ns = wait[0] * 10**9 + wait[1]
        if pollfd[0] == 1:
            return 1
        arrival = self.input[0] if self.input else 1 << 62
        if arrival <= self.now + wait_ns:
            self.now = max(self.now, arrival)
            return 1
        if wait_ns:
            self.waits.append(wait_ns)
            self.now += wait_ns
        return 0

    def read(self, n):
        if n == 10:
            return self.input[0].to_bytes(8, "little") + b"\1\0"
        self.input.pop(0)
        return b"x"

    def sleep_us(self, us):
        self.now += us * US


@pytest.fixture
def board():
    """cosim, i2c_block, a machine with one INA228 at 0x40 converting since 0, and Linux."""
    linux = Linux()
    library = types.SimpleNamespace(func=lambda result, name, arguments: {"ppoll": linux.poll, "write": None}[name])
    fakes = {
        "uctypes": types.SimpleNamespace(),
        "usys": types.SimpleNamespace(stdin=types.SimpleNamespace(buffer=linux), maxsize=sys.maxsize),
        "utime": types.SimpleNamespace(ticks_us=lambda: linux.now // US, sleep_us=linux.sleep_us),
        "ffi": types.SimpleNamespace(open=lambda name: library),
    }
    compiler = types.SimpleNamespace(const=lambda number: number, native=lambda function: function)
    cosim = load(BOARD / "cosim.py", micropython=compiler, **fakes)
    machine = types.SimpleNamespace(nack_until=0, sda_stuck=False, wrong={}, chips={}, _arm=lambda chip: None)
    fakes = {"machine": machine, "micropython": compiler, "addresses": load(BOARD / "addresses.py")}
    block = load(BOARD / "i2c_block.py", cosim=cosim, **fakes).Block()
    chip = ina228_model.INA228(lambda *t: (0.5, 5.0), 0, noise=0)
    for register, value in ((0x0, 0x10), (0x2, 4096), (0xB, 0xC000), (0x1, 0xF500)):
        chip.write(register, value, 0)
    machine.chips[0x40] = chip
    block.target = 0x40
    return types.SimpleNamespace(cosim=cosim, machine=machine, block=block, chip=chip, linux=linux)


# --- device time


def test_alarms_come_in_order_and_what_they_take_is_on_top(board):
    cosim, seen = board.cosim, []

    def at(name, takes):
        seen.append((name, cosim.now))
        cosim.spend(takes)

    for name, t, takes in (("late", 900, 0), ("early", 100, 50), ("between", 120, 7), ("never", 2000, 0)):
        cosim.set_alarm(cosim.add_alarm(lambda name=name, takes=takes: at(name, takes)), t)
    cosim.spend(1000)
    assert seen == [("early", 100), ("between", 120), ("late", 900)]
    assert cosim.now == 1057


def test_an_alarm_can_be_moved_and_taken_back(board):
    cosim, seen = board.cosim, []
    alarms = [cosim.add_alarm(lambda k=k: seen.append((k, cosim.now))) for k in range(3)]
    for alarm, t in zip(alarms, (100, 200, 300)):
        cosim.set_alarm(alarm, t)
    cosim.set_alarm(alarms[0], 250)  # the earliest moves back
    cosim.set_alarm(alarms[2], 50)  # the last to the front
    cosim.set_alarm(alarms[1], cosim.NEVER)
    cosim.spend(1000)
    assert seen == [(2, 50), (0, 250)] and cosim.event_at == cosim.NEVER


def test_idle_ends_with_an_interrupt_and_not_with_what_the_processor_does_not_see(board):
    cosim, seen = board.cosim, []
    quiet = cosim.add_alarm(lambda: seen.append(("quiet", cosim.now)))
    loud = cosim.add_alarm(lambda: setattr(cosim, "woken", True))
    cosim.set_alarm(quiet, 100 * US)
    cosim.set_alarm(loud, 300 * US)
    cosim.idle(MS)
    assert cosim.now == 300 * US == board.linux.now and seen == [("quiet", 100 * US)]
    cosim.idle(MS)
    assert cosim.now == 300 * US + MS


def test_an_interrupt_since_the_last_wait_ends_the_next_one_at_once(board):
    board.cosim.woken = True
    board.cosim.idle(MS)
    assert board.cosim.now == 0 and not board.cosim.woken


def test_idle_ends_with_input_at_the_time_it_arrived(board):
    board.linux.input = [400 * US]
    board.cosim.idle(MS)
    assert board.cosim.now == 400 * US and board.cosim.input_ready()


def test_what_is_seen_of_nothing_for_a_while_is_waited_for_once(board):
    """Three events of the block in a row cost one sleep, not three."""
    cosim, seen = board.cosim, []
    times = [100 * US, 150 * US, 200 * US]

    def happens():
        seen.append(cosim.now)
        if len(seen) < 3:
            cosim.set_alarm(alarm, times[len(seen)])
            alarm[2] = times[2]
        else:
            cosim.woken = True

    alarm = cosim.add_alarm(happens)
    cosim.set_alarm(alarm, times[0])
    alarm[2] = times[2]
    cosim.idle(MS)
    assert seen == times and board.linux.waits == [200 * US]


# --- the I2C block


def script(block, register, n):
    """Push the commands of a register's read, as firmware/i2c_fifo.py does."""
    words = [register, READ | RESTART] + [READ] * (n - 1)
    words[-1] |= STOP
    for word in words:
        block[0x10 >> 2] = word


def received(block):
    return [block[0x10 >> 2] for _ in range(block[0x78 >> 2])]


def test_a_read_takes_its_clocks_and_gives_the_register(board):
    """START, address and pointer are 19 clocks, RESTART and address 10, each byte 9; of 1 us. STOP and pause are 2."""
    cosim, block = board.cosim, board.block
    cosim.now = SET_ns
    script(block, VBUS, 3)
    begun = SET_ns + 160  # the access that pushes the first command
    for clocks, there in ((38 - 1, 0), (38, 1), (47, 2), (58 - 1, 2), (58, 3)):
        cosim.spend(begun + clocks * US - cosim.now)
        block.settle()
        assert len(block.received) == there
    assert received(block) == list((25_600 << 4).to_bytes(3, "big")) and not block.busy()


def test_the_chip_answers_with_what_it_holds_when_the_read_begins(board):
    """A set ends 60 us after the script has begun: the flags are read before it, the voltage after it."""
    cosim, block = board.cosim, board.block
    board.chip.supply = lambda t0, t1, t2: (0.5, 5.0 if t1 < SET_ns else 4.0)
    cosim.now = 2 * SET_ns - 60 * US
    script(block, DIAG, 2)
    script(block, VBUS, 3)
    cosim.spend(300 * US)
    assert received(block) == [0xC0, 0x03, *(20_480 << 4).to_bytes(3, "big")]
    assert board.chip.reg[DIAG] & 2  # of the set that ended behind the read of the flags


def test_more_bytes_than_the_register_has(board):
    cosim, block = board.cosim, board.block
    script(block, DIAG, 3)
    with pytest.raises(ValueError, match="more is read than register 0b has"):
        cosim.spend(200 * US)
        block.settle()


def test_a_chip_that_is_reset_in_between_does_not_answer(board):
    """Its supply fails between the pointer and the read: SDA stays high, and the next read is right again."""
    cosim, block = board.cosim, board.block
    cosim.now = SET_ns
    script(block, VBUS, 3)
    cosim.spend(25 * US)
    block.settle()
    board.chip.power_on(cosim.now)
    cosim.spend(100 * US)
    assert received(block) == [255, 255, 255]
    script(block, DIAG, 2)
    cosim.spend(100 * US)
    assert received(block) == [0, 1]


def test_a_read_without_restart(board):
    board.block[0x10 >> 2] = DIAG
    board.block[0x10 >> 2] = READ | STOP
    with pytest.raises(ValueError, match="more is read"):
        board.cosim.spend(100 * US)
        board.block.settle()


def test_a_nack_empties_the_fifo_until_it_is_read(board):
    """What has been received before stays."""
    cosim, block = board.cosim, board.block
    script(block, DIAG, 2)
    script(block, VBUS, 3)
    cosim.spend(60 * US)
    board.machine.nack_until = 100 * US
    cosim.spend(100 * US)
    assert block[0x34 >> 2] == 1 << 6 and received(block) == [0xC0, 0x01] and not block.busy()
    script(block, DIAG, 2)  # held empty
    assert not block.commands
    assert block[0x54 >> 2] == 0 and block[0x34 >> 2] == 0
    script(block, DIAG, 2)
    cosim.spend(100 * US)
    assert len(received(block)) == 2


def test_bits_are_turned_over_in_one_read_of_their_register(board):
    cosim, block = board.cosim, board.block
    cosim.now = SET_ns
    board.machine.wrong[DIAG] = 0x4001
    seen = []
    for register, n in ((VBUS, 3), (DIAG, 2), (DIAG, 2)):
        script(block, register, n)
        cosim.spend(200 * US)
        seen.append(received(block))
    assert seen == [[*(25_600 << 4).to_bytes(3, "big")], [0x80, 0x02], [0xC0, 0x01]] and not board.machine.wrong


def test_what_the_block_does_not_bear(board):
    cosim, block = board.cosim, board.block
    for _ in range(4):
        script(block, CURRENT, 3)  # 4 commands each: 16
    with pytest.raises(ValueError, match="TX FIFO overflows"):
        script(block, CURRENT, 3)
    with pytest.raises(ValueError, match="IC_TAR"):
        block[0x04 >> 2] = 0x41
    with pytest.raises(IndexError):
        block[0x10 >> 2]
    block[0x6C >> 2] = 0
    assert not block.busy() and cosim.event_at == cosim.NEVER
    with pytest.raises(ValueError, match="while disabled"):
        block[0x10 >> 2] = DIAG


def test_a_stuck_bus_never_gets_free(board):
    board.machine.sda_stuck = True
    script(board.block, DIAG, 2)
    board.cosim.spend(10**12)
    assert board.block.busy() and board.block[0x78 >> 2] == 0
