"""How each kind of step is executed, a module a kind: carry_out(act, stage, number) returns the fields of its event;
before(act, stage) and after(act, stage, first, shown) where SMART or a trace is needed around the step. What a step may
contain is in plan/kinds/."""

import importlib
from types import ModuleType


def of(kind: str) -> ModuleType:
    """The module of a kind of step. It is imported when a step of the kind comes: power loss alone brings Numba."""
    return importlib.import_module(f"{__name__}.{kind}")
