"""MicroPython's prompt on the SIMULATED board, the part that programs use: the raw mode (docs, "The MicroPython
Interactive Interpreter Mode", section on raw mode) with raw paste, Ctrl-D at either prompt. Code sent is run by the
real interpreter, in the folder that is the board's flash. A line typed at the ordinary prompt is not run.
"""

import io
import os

import cosim
import usys

CTRL_A, CTRL_B, CTRL_C, CTRL_D, CTRL_E = 1, 2, 3, 4, 5
WINDOW = 128
RAW_BANNER = "raw REPL; CTRL-B to exit\r\n>"
_printed = print


def start(program):
    """What a board does after a reset: run main.py if there is one, then the prompt, until Ctrl-D at it."""
    if program + ".py" in os.listdir(usys.path[0]):
        try:
            __import__(program)
        except SystemExit:
            raise
        except BaseException as error:
            usys.print_exception(error, usys.stderr)
            _say(_trace(error))
    prompt()


def prompt():
    """The ordinary prompt; returns at Ctrl-D, and the process ends: the cable starts the board again."""
    banner()
    while True:
        byte = cosim.input_byte()
        if byte == CTRL_A:
            _raw()
            banner()
        elif byte == CTRL_D:
            _say("\r\nMPY: soft reboot\r\n")
            return
        elif byte in (CTRL_C, 13):
            _say("\r\n>>> ")


def banner():
    _say(
        '\r\nMicroPython v%d.%d.%d; SIMULATED\r\nType "help()" for more information.\r\n>>> '
        % __import__("sys").implementation.version[:3]
    )


def _say(text):
    data = text if isinstance(text, bytes) else text.encode()
    at = 0
    while at < len(data):
        at += cosim.output(data, at, len(data) - at)


def _trace(error):
    text = io.StringIO()
    usys.print_exception(error, text)
    return text.getvalue().replace("\n", "\r\n")


def _raw():
    """Raw mode until Ctrl-B. A soft reset in it forgets the names and stays in it; main.py is not run."""
    names = _names()
    _say(RAW_BANNER)
    text = bytearray()
    while True:
        byte = cosim.input_byte()
        if byte == CTRL_B:
            return
        if byte == CTRL_A:
            text = bytearray()
            _say(RAW_BANNER)
        elif byte == CTRL_C:
            text = bytearray()
        elif byte == CTRL_D and not text:
            names = _names()
            _say("OK\r\nMPY: soft reboot\r\n" + RAW_BANNER)
        elif byte == CTRL_D:
            _say("OK")
            _run(bytes(text), names)
            text = bytearray()
        elif byte == CTRL_E and not text:
            letter, way = cosim.input_byte(), cosim.input_byte()
            if letter != 65 or way != 1:
                _say("R\x00" if letter == 65 else "ra" + RAW_BANNER[2:])
                continue
            _run(_paste(), names)
        else:
            text.append(byte)


def _paste():
    """Raw paste: the sender may have WINDOW bytes under way, and is allowed as many again with each 0x01."""
    _say(b"R\x01" + WINDOW.to_bytes(2, "little") + b"\x01")
    text = bytearray()
    while True:
        byte = cosim.input_byte()
        if byte == CTRL_D:
            _say(b"\x04")
            return bytes(text)
        text.append(byte)
        if len(text) % WINDOW == 0:
            _say(b"\x01")


def _names():
    return {"__name__": "__main__", "print": _print}


def _print(*values, sep=" ", end="\n"):
    text = io.StringIO()
    _printed(*values, sep=sep, end=end, file=text)
    _say(text.getvalue().replace("\n", "\r\n"))


def _run(source, names):
    """Output, Ctrl-D, traceback, Ctrl-D, prompt."""
    trace = ""
    try:
        exec(compile(source, "<stdin>", "exec"), names)
    except SystemExit:
        raise
    except BaseException as error:
        trace = _trace(error)
    _say("\x04" + trace + "\x04>")
