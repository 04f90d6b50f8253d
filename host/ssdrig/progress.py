"""What a person sees while a run goes on: one line that lives on a terminal, or one line each ten seconds in a log."""

import contextlib
import math
import shutil
import sys
import time

from ssdrig.terminal import printable, printable_lines

BARS = "▁▂▃▄▅▆▇█"
PLAIN_INTERVAL_S = 10


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

    A terminal that is gone (EIO, EPIPE) or a full disk behind stderr is not an error here: the words are lost."""

    def __init__(self, quiet: bool = False):
        self.quiet = quiet
        self.live = _is_terminal()
        self._last_plain = -math.inf

    def show(self, text: str) -> None:
        if self.quiet:
            return
        if self.live:
            _write(f"\r\x1b[K{fitted(printable(text))}")
        elif time.monotonic() - self._last_plain >= PLAIN_INTERVAL_S:
            self._last_plain = time.monotonic()
            _write(printable(text) + "\n")

    def say(self, text: str) -> None:
        if not self.quiet:
            self.warn(text)

    def warn(self, text: str) -> None:
        _write(("\r\x1b[K" if self.live else "") + printable_lines(text) + "\n")


def fitted(text: str) -> str:
    """As much of one line as the terminal has columns for: a longer one would scroll each second."""
    columns = shutil.get_terminal_size().columns
    return text if len(text) < columns else text[: max(0, columns - 2)] + "…"


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (ValueError, AttributeError):  # closed, or None: there is no stderr
        return False


def _write(text: str) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(text)
        sys.stderr.flush()
