"""For tests: firmware files of viper code, their very source, on CPython, with addresses that lead to fake
registers."""

import re
import sys
import types
from pathlib import Path
from unittest import mock

from ssdrig.meter import fits  # the firmware's own, linked

FIRMWARE = Path(__file__).resolve().parents[2] / "firmware"


def load(name, known, fakes):
    """Module `name` of the firmware. known: {address: registers}; fakes: {name: module} that it imports."""
    source = (FIRMWARE / f"{name}.py").read_text()
    source = re.sub(r": (ptr8|ptr16|ptr32)\b", "", source)
    micropython = types.SimpleNamespace(const=lambda x: x, viper=lambda f: f)
    module = types.ModuleType(name)
    module.ptr32 = lambda x: known[x] if isinstance(x, int) else x
    with mock.patch.dict(sys.modules, {"micropython": micropython, "fits": fits, **fakes}):
        exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    return module
