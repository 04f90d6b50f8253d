"""Text from a drive or a file reaches a terminal without its control characters, so a model name cannot move the
cursor, set a title, hide a line or start a new one."""

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable
from typing import TextIO, overload

from ssdrig.base.errors import SsdrigError, UsageError
from ssdrig.base.shipped import as_called

# C0, DEL, C1; line and paragraph separators; marks that change the direction of what follows; lone surrogates
_CONTROL = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_FIELD = re.compile(f"[{_CONTROL}\t\n]")
_UNSHOWN = re.compile(f"[{_CONTROL}]")
# our own colours (drive/wear/screen.py) stay
_TEXT = re.compile(f"(?!\x1b\\[(?:[012]|3[123])m)[{_CONTROL}]")


@overload
def printable(field: str) -> str: ...
@overload
def printable(field: None) -> None: ...
def printable(field: str | None) -> str | None:
    """One field, such as a model or a serial, with every control character written out: \\x1b."""
    return None if field is None else _FIELD.sub(_written_out, field)


def shown(text: str) -> str:
    """A text, such as a page, with U+FFFD in place of each control character and mark of direction: none of them turns
    round what follows, such as a figure. Tabs and line ends stay."""
    return _UNSHOWN.sub("\ufffd", text)


def line(what: str, text: str, most: int) -> str:
    """The user's text as one line. Raises UsageError if it is longer than `most` characters; each code point of a
    joined emoji counts."""
    collapsed = " ".join(text.split())
    if len(collapsed) > most:
        raise UsageError(f"{what} of at most {most} characters", f"{len(collapsed)}", "shorten it")
    if printable(collapsed) != collapsed:
        raise UsageError(f"{what} without control characters", repr(printable(collapsed))[:80], "leave them out")
    return collapsed


def printable_lines(text: str) -> str:
    """A whole text: its tabs, its line ends and the colours that ssdrig uses stay."""
    return _TEXT.sub(_written_out, text)


def _written_out(match: re.Match) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


NO_LIMIT = 10**6  # columns
LEAST_TEXT = 24
_COLOUR, _GAP = re.compile("\x1b\\[[0-9;]*m"), re.compile(r" {2,}(?=\S)")
COLOURS = {"green": "\x1b[32m", "yellow": "\x1b[33m", "red": "\x1b[31m", "bold": "\x1b[1m", "dim": "\x1b[2m"}


def painter(stream: TextIO | None) -> Callable[[str, str], str]:
    """(text, name of a colour) -> the text, in that colour where `stream` is a terminal that shows colours and
    $NO_COLOR does not stand against it."""
    shows = is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return painted if shows else lambda text, name: text


def painted(text: str, name: str) -> str:
    return f"{COLOURS[name]}{text}\x1b[0m" if text else text


def is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def wrapped(text: str, columns: int, first: str = "", rest: str = "") -> str:
    """A paragraph in lines of at most `columns`."""
    how = {"break_long_words": False, "break_on_hyphens": False}
    return "\n".join(textwrap.wrap(text, max(20, columns), initial_indent=first, subsequent_indent=rest, **how))


def error_lines(who: str, error: SsdrigError) -> str:
    """An error as three lines: expected, found, hint; wrapped if stderr is a terminal."""
    columns = shutil.get_terminal_size().columns - 1 if is_terminal(sys.stderr) else 10**6
    expected, seen, do = (
        printable(as_called(" ".join(text.split()))) for text in (error.expected, error.seen, error.do)
    )
    head = f"{who}: error: "
    lines = [
        wrapped(f"expected {expected}", columns, head, "  ").replace(
            head, f"{who}: {painter(sys.stderr)('error', 'red')}: ", 1
        ),
        wrapped(seen or "nothing", columns, "  found: ", " " * 9),
        wrapped(do, columns, "  hint:  ", " " * 9),
    ]
    return "\n".join(lines)


def fill_closed_streams() -> None:
    """Open /dev/null for each of stdin, stdout and stderr that this process was started without. Else the first files
    that it opens get these descriptors, and what a library prints lands in them."""
    for fd, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest that is free: fd
            setattr(sys, name, open(fd, mode, closefd=False))


def width() -> int:
    """Columns of the terminal that stdout is; NO_LIMIT without one."""
    return shutil.get_terminal_size().columns if is_terminal(sys.stdout) else NO_LIMIT


def hanging(line: str, columns: int) -> str:
    """A line in lines of at most `columns`, longer only for a longer word. They go on below the last text that has two
    blanks before it and LEAST_TEXT columns for itself; two columns in where no text has."""
    bare = _COLOUR.sub("", line)
    if len(bare) <= columns:
        return line
    indent = len(bare) - len(bare.lstrip()) + 2
    gaps = [gap.end() for gap in _GAP.finditer(bare) if gap.end() <= columns - LEAST_TEXT]
    text = line.lstrip()
    return wrapped(text, columns, line[: len(line) - len(text)], " " * max([indent, *gaps]))


class PrintableOut:
    """Wraps a text stream, such as stdout. Lines hang within `columns`, except those of JSON."""

    def __init__(self, stream, columns: int = NO_LIMIT):
        self._stream, self._columns, self._in_line = stream, columns, False

    def write(self, text: str) -> int:
        shown = printable_lines(as_called(text))
        if self._columns < NO_LIMIT and not self._in_line and not shown.startswith(("{", "[")):
            shown = "\n".join(hanging(line, self._columns) for line in shown.split("\n"))
        self._in_line = not shown.endswith("\n") if shown else self._in_line
        self._stream.write(shown)
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def __getattr__(self, name):
        return getattr(self._stream, name)
