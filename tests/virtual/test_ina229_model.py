"""The SIMULATED INA229: what SPI adds to the INA228's model; and the SIMULATED SPI block on the interpreter, stricter
than the chip."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simboard import run_script
from test_ina228_model import model as ina228_model
from test_spi_lane import ina229_model

WIDTHS = {0x4: 3, 0x5: 3, 0x7: 3, 0x8: 3, 0x9: 5, 0xA: 5}  # bytes; SLYS023 table 7-3
REGISTERS = [*range(0x12), 0x3E, 0x3F]


def converting(kind, amps=-0.4, volts=11.9):
    """Configured at t = 0: 8 mOhm, fine, 50 us each, latched conversion ready."""
    c = kind(lambda *t: (amps, volts), 0, 8000, noise=0)
    for register, value in ((1, 0), (0, 0x10), (2, 4096), (0xB, 0xC000), (1, 0xB000)):
        c.write(register, value, 0)
    return c


def frame(c, *sent, t=0):
    """One frame from fall to rise of CS; the bytes that came back."""
    c.select()
    got = [c.exchange(byte, t) for byte in sent]
    c.deselect()
    return got


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(REGISTERS), st.integers(0, 2000), st.floats(-5, 5), st.floats(0, 80))
def test_a_read_frame_is_the_register(register, t_us, amps, volts):
    """Every register of an INA228 in the same state, most significant byte first; only the ID is another."""
    one, other = (converting(kind, amps, volts) for kind in (ina229_model.INA229, ina228_model.INA228))
    value, width = other.value(register, t_us * 1000)
    assert width == WIDTHS.get(register, 2)
    got = frame(one, register << 2 | 1, *[0] * width, t=t_us * 1000)
    assert int.from_bytes(bytes(got[1:]), "big") == (0x2291 if register == 0x3F else value)
    assert one.reg == other.reg and one.alert() == other.alert()  # with the read's effects


def test_alert_is_let_go_by_the_flags_frame():
    c = converting(ina229_model.INA229)
    c.advance(200_000)
    assert c.alert() == 0
    assert frame(c, 0x0B << 2 | 1, 0, 0, t=200_000)[1:] == [0xC0, 0x03]
    assert c.alert() == 1


def test_a_write_shifts_the_old_content_out():
    c = converting(ina229_model.INA229)
    assert frame(c, 2 << 2, 0x0F, 0xA0) == [0, 0x10, 0x00] and c.reg[2] == 0x0FA0
    assert frame(c, 2 << 2 | 1, 0xFF, 0xFF) == [0, 0x0F, 0xA0] and c.reg[2] == 0x0FA0


@pytest.mark.parametrize("sent", [(0x0B << 2 | 3, 0, 0), (0x0B << 2 | 1, 0, 0, 0), (7 << 2 | 1, 0, 0, 0, 0)])
def test_frames_that_the_chip_does_not_know_are_errors(sent):
    with pytest.raises(ValueError, match="SIMULATED INA229"):
        frame(converting(ina229_model.INA229), *sent)


@pytest.mark.parametrize("sent", [(), (0x0B << 2 | 1,), (7 << 2 | 1, 0, 0), (2 << 2, 0x10)])
def test_frames_that_end_early_are_errors(sent):
    with pytest.raises((ValueError, AttributeError), match="SIMULATED INA229|width"):
        frame(converting(ina229_model.INA229), *sent)


def test_a_brown_out_in_the_middle_of_a_frame():
    """The rest of the frame reads as nothing; behind it the chip is as after a reset."""
    c = converting(ina229_model.INA229)
    c.select()
    c.exchange(2 << 2 | 1, 0)
    c.power_on(1000)
    assert [c.exchange(0, 1000), c.exchange(0, 1000)] == [0, 0]
    c.deselect()
    assert frame(c, 1 << 2 | 1, 0, 0, t=1000)[1:] == [0xFB, 0x68]


@pytest.mark.usefixtures("integers")
def test_the_block_takes_nothing_that_the_hardware_would_not():
    """Each line of the script is one misuse and what is said of it; and the clocks that the SDK makes."""
    done = run_script("spi_strict.py")
    assert done.returncode == 0, done.stdout + done.stderr
    answers = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert answers == {
        "10 MHz": "8928571",
        "1 MHz": "992063",
        "a frame": "[0, 84, 73] in 2688 ns",
        "mode 0": "SIMULATED INA229: SPI mode 1, bytes, most significant bit first",
        "least significant bit first": "SIMULATED INA229: SPI mode 1, bytes, most significant bit first",
        "too fast": "SIMULATED INA229: SCK goes faster than 10 MHz",
        "pins": "SIMULATED SPI0: GPIO 1 is not a pin of it",
        "chip select begins low": "SIMULATED board: chip select GPIO 1 begins low",
        "chip select no output": "SIMULATED SIO: not all of GPIO mask 4 are outputs",
        "TX overflow": "SIMULATED SPI block: the TX FIFO overflows",
        "RX overflow": "SIMULATED SPI block: the RX FIFO overflows",
        "RX empty": "pop from empty list",
        "no chip selected": "SIMULATED SPI block: it clocks while no chip is selected",
        "two chips selected": "SIMULATED SPI: two chips are selected",
        "select rises while busy": "SIMULATED SPI: the chip select rises while the block is busy",
        "off": "SIMULATED SPI block: it is off",
        "another register": "SIMULATED SPI block: register 10 cannot be written",
        "nothing there": "SIMULATED board: there is nothing at 50000000",
    }
