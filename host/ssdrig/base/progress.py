"""The progress display of a run: one live line on a terminal, or one line every ten seconds in a log."""

import contextlib
import math
import os
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from ssdrig.base.shipped import as_called
from ssdrig.base.terminal import hanging, printable, printable_lines

BARS = "▁▂▃▄▅▆▇█"
PLAIN_INTERVAL_S = 10
USUAL_COLUMNS, USUAL_ROWS = 80, 24  # if the terminal does not report its size
GAP = "  "  # between the parts of a line


class Part(NamedTuple):
    """A part of the live line. On a narrow terminal, parts with `least` are first shortened from the left to that many
    characters; then parts are dropped, the highest rank first."""

    text: str
    rank: int = 0
    least: int | None = None


def sparkline(values: list[float], width: int = 24) -> str:
    """The last `width` values as bars on a log scale, so that plateau and steady state both show; 0 is a space."""
    values = values[-width:]
    positive = [v for v in values if v > 0]
    if not positive:
        return " " * len(values)
    low, high = math.log(min(positive)), math.log(max(positive))
    span = (high - low) or 1.0
    return "".join(" " if v <= 0 else BARS[round((math.log(v) - low) / span * (len(BARS) - 1))] for v in values)


class Progress:
    """Prints to stderr. `show` replaces the live line, `say` prints a line that stays, `warn` does so even when quiet.

    A closed terminal (EIO, EPIPE) or a full disk under stderr is not an error: the output is lost."""

    def __init__(self, quiet: bool = False):
        self.quiet = quiet
        self.live = is_live()
        self._last_plain = -math.inf
        self._above = 0  # lines of a table that stand above the cursor

    def show(self, text: str | Sequence[Part]) -> None:
        """One line, or its parts: as many as the terminal has room for, in a log all of them."""
        if self.quiet:
            return
        parts = [Part(printable(part.text), *part[1:]) for part in ([Part(text)] if isinstance(text, str) else text)]
        if self.live:
            _write(f"{self._erased()}{fitted(parts, columns())}")
        elif time.monotonic() - self._last_plain >= PLAIN_INTERVAL_S:
            self._last_plain = time.monotonic()
            _write(GAP.join(part.text for part in parts if part.text) + "\n")

    def say(self, text: str) -> None:
        if not self.quiet:
            self.warn(text)

    def warn(self, text: str) -> None:
        shown = printable_lines(as_called(text))
        if self.live:
            shown = self._erased() + "\n".join(hanging(line, columns()) for line in shown.split("\n"))
        _write(f"{shown}\n")

    def table(self, lines: Sequence[str], in_words: str | Sequence[Part]) -> None:
        """Lines that replace those shown before, on a terminal; in a log `in_words`, now and then, as by show(). Each
        is shorter than the terminal is wide, and all are fewer than it is high: see columns() and rows()."""
        if self.quiet or not self.live:
            return self.show(in_words)
        shown = [printable(line) for line in lines]
        _write(self._erased() + "".join(f"{line}\n" for line in shown))
        self._above = len(shown)

    def _erased(self) -> str:
        """What takes the live line, or the table, off the terminal."""
        up, self._above = self._above, 0
        return f"\x1b[{up}A\r\x1b[J" if up else "\r\x1b[K"


def fitted(parts: Sequence[Part], columns: int) -> str:
    """The parts as one line of less than `columns` characters: a longer one would scroll each second."""
    room = max(0, columns - 1)
    shown = [part for part in parts if part.text]
    while True:
        over = sum(len(part.text) for part in shown) + len(GAP) * (len(shown) - 1) - room
        if over <= 0:
            break
        spare = next(
            (i for i, part in enumerate(shown) if part.least is not None and len(part.text) > part.least), None
        )
        if spare is not None:
            part = shown[spare]
            keep = max(part.least or 0, len(part.text) - over)
            shown[spare] = part._replace(text=part.text[len(part.text) - keep :])
        elif len(shown) > 1:
            # the last one of the highest rank
            shown.pop(max(range(len(shown)), key=lambda i: (shown[i].rank, i)))
        else:
            return shown[0].text[: max(0, room - 1)] + "…" * (room > 0)
    return GAP.join(part.text for part in shown)


def columns() -> int:
    """Width of the terminal at stderr, or the usual one; stdout may be a file or another terminal."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(sys.stderr.fileno()).columns or USUAL_COLUMNS
    return USUAL_COLUMNS


def rows() -> int:
    """Height of the terminal at stderr, or the usual one."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return int(os.environ.get("LINES") or 0) or os.get_terminal_size(sys.stderr.fileno()).lines or USUAL_ROWS
    return USUAL_ROWS


def is_live() -> bool:
    """Whether stderr is one on which a line can be replaced."""
    try:
        return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    except (ValueError, AttributeError):  # closed or None: no stderr
        return False


def _write(text: str) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(text)
        sys.stderr.flush()
