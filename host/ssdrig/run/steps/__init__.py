"""How each kind of step is carried out, a module a kind: carry_out(act, stage, number) gives what its event says;
before(act, stage) and after(act, stage, first, shown) where SMART or a trace is needed around the step. What a step may
say is in plan/kinds/."""

import importlib
from types import ModuleType


def of(kind: str) -> ModuleType:
    """The module of a kind of step. It is imported when a step of the kind comes: power loss alone brings Numba."""
    return importlib.import_module(f"{__name__}.{kind}")
