"""Modules that are imported when they are first used: numpy and others, where parsers and plans do without."""

import importlib
import importlib.util
from typing import Any


def is_installed(name: str) -> bool:
    """Whether a package can be imported; it is not imported for that."""
    return importlib.util.find_spec(name) is not None


class Deferred:
    """A module that is imported when first used. For type checkers add `if TYPE_CHECKING: import numpy as np`."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)
