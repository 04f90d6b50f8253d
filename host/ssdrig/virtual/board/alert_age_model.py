"""Replaces the firmware's alert_age.py on the SIMULATED board, which has not got PIO1: for each of three lines, a
machine's words for an instruction and for the count. The same names."""

import addresses
import cosim
import machine

PAGE = 0x140C8  # of nothing on the chip, because the words of PIO1 are oneshot_model.py's
_PUSH_X = 0x4020
_INSTR, _RXF = 0, 4  # words of the first line's
LINES = 3
COUNT_ns = 16  # of two cycles
ACCESS_ns = 160  # as i2c_block.py's

_pins = []


class _Words:
    def __init__(self):
        self.pushed = {}

    def __setitem__(self, word, instruction):
        cosim.spend(ACCESS_ns)
        if instruction != _PUSH_X or not _INSTR <= word < _INSTR + len(_pins):
            raise ValueError("SIMULATED PIO1: %x to word %d" % (instruction, word))
        fell = machine.fell.get(_pins[word])
        self.pushed[_RXF + word] = 0 if fell is None else -1 - (cosim.now - fell) // COUNT_ns

    def __getitem__(self, word):
        cosim.spend(ACCESS_ns)
        return self.pushed.pop(word)  # KeyError: nothing was pushed


def count(gpio, pin):
    if gpio not in _pins:
        if len(_pins) == LINES:
            return None
        addresses.known[PAGE << 14] = addresses.known.get(PAGE << 14) or _Words()
        _pins.append(gpio)
    number = _pins.index(gpio)
    return PAGE, _INSTR + number, _RXF + number, (COUNT_ns << 16) // 1000
