"""The seam of switches: what takes a drive's power away and gives it back.

Each is a module of this folder with a function `opened`, named by the scheme of its URL (`--switch usb:1-1.4`): it is
known because the file is there. Our board does more (it aims, shapes and reports a cut: pico.py); of these a run knows
when the power went to the bound of the edge, and what the switch itself has seen. Two commands of a shell are a switch
too: command.py."""

import importlib
import os
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, Protocol

from ssdrig.base.errors import UsageError
from ssdrig.base.words import do_you_mean

OTHERS = ("switch", "profiles", "pico", "command")  # other modules


class Edge(NamedTuple):
    """One edge of the power. It is at `t_ns` (CLOCK_MONOTONIC) or up to `bound_ns` later. `seen_low`: whether the
    switch saw the supply low; None where it cannot see."""

    t_ns: int
    bound_ns: int
    seen_low: bool | None = None


class Switch(Protocol):
    """What switches one supply. Both return when it is done, and raise RigError where it cannot be."""

    def off(self, at_ns: int | None = None) -> Edge:
        """Take the power at a host time, immediately if that is None or past."""
        ...

    def on(self) -> Edge: ...


def names() -> list[str]:
    """The schemes that are known."""
    kinds = {module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])}
    return sorted(kinds - set(OTHERS))


def is_url(word: str) -> bool:
    """Whether it names a switch, and is not a command of a shell."""
    scheme, colon, _ = word.partition(":")
    return bool(colon) and scheme in names()


def check(url: str) -> None:
    """Raises UsageError for a switch that this machine cannot have."""
    _module(url).check(url.partition(":")[2])


def opened(url: str) -> Switch:
    """The switch of a URL. Raises UsageError, RigError, ToolMissing."""
    return _module(url).opened(url.partition(":")[2])


def feeds(url: str, root: str | os.PathLike = "/") -> tuple[str, ...]:
    """The folders of sysfs whose devices lose their power with this switch; empty where that is unknown."""
    known = getattr(_module(url), "feeds", None)
    return known(url.partition(":")[2], root) if known else ()


def of(off: str, on: str) -> Switch:
    """The switch that these words name: one URL, given twice, or two commands of a shell."""
    if off == on and is_url(off):
        return opened(off)
    return importlib.import_module(f"{__package__}.command").Commands(off, on)


def _module(url: str) -> ModuleType:
    scheme = url.partition(":")[0]
    if not is_url(url):
        do = do_you_mean(scheme, names())
        raise UsageError(f"--switch with one of {', '.join(f'{name}:' for name in names())}", url, do)
    return importlib.import_module(f"{__package__}.{scheme}")
