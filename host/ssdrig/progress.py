"""What a person sees while a run goes on: one line that lives on a terminal, or one line each ten seconds in a log."""

import math
import sys
import time

BARS = "▁▂▃▄▅▆▇█"
PLAIN_INTERVAL_S = 10


def clock(seconds: float) -> str:
    """123 -> '2:03'; 3723 -> '1:02:03'."""
    seconds = max(0, round(seconds))
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


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
    """Prints to stderr. `show` replaces the live line, `say` prints a line that stays."""

    def __init__(self, quiet: bool = False):
        self.quiet = quiet
        self.live = sys.stderr.isatty()
        self._last_plain = -math.inf

    def show(self, text: str) -> None:
        if self.quiet:
            return
        if self.live:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - self._last_plain >= PLAIN_INTERVAL_S:
            self._last_plain = time.monotonic()
            print(text, file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        if self.quiet:
            return
        if self.live:
            print("\r\x1b[K", end="", file=sys.stderr)
        print(text, file=sys.stderr, flush=True)
