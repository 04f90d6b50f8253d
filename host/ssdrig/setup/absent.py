"""Stand-ins for packages that are not installed yet, so that a command's words are checked before anything is fetched.

Parsers are made by modules that import numpy and others at their top. A stand-in can be named, called and subscripted
there. Whatever would need a value of it raises Unknown. A process that has used stand-ins checks words or prints help,
and nothing else. Standard library only.
"""

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType

# every package that the code imports, by the name it has there
NAMES = ("numpy", "numba", "serial", "mpremote", "starlette", "uvicorn", "anyio", "pyarrow", "duckdb", "shtab")


class Unknown(Exception):
    """A value of a package that is not there was asked for."""


class Absent:
    """What a module finds in a package that is not there."""

    def __init__(self, *args, **named):
        pass

    def _same(self, *args, **named) -> "Absent":
        return self

    def __getattr__(self, name: str) -> "Absent":
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args, **named):
        # as a decorator it leaves the function as it is
        return args[0] if len(args) == 1 and not named and callable(args[0]) else self

    def _unknown(self, *args):
        raise Unknown

    __getitem__ = __or__ = __ror__ = __and__ = __rand__ = __xor__ = __rxor__ = __invert__ = __neg__ = _same
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _same
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = _same
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _same
    __setitem__ = __bool__ = __iter__ = __len__ = __int__ = __float__ = __index__ = __contains__ = _unknown
    __lt__ = __le__ = __gt__ = __ge__ = _unknown

    def __mro_entries__(self, bases):
        return ()


class _Module(ModuleType):
    """A package that is not there; each of its modules is another one."""

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent()


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last finder, so it is only asked for packages that are not installed."""

    def __init__(self) -> None:
        self.asked = False

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] not in NAMES:
            return None
        self.asked = True
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        return _Module(spec.name)

    def exec_module(self, module):
        pass


@contextlib.contextmanager
def stood_in_for() -> Iterator[_Finder]:
    """Import stand-ins for absent packages in this block; `asked` of the yielded finder is set if any was needed. The
    stand-ins, and all modules of ssdrig imported meanwhile, are unloaded afterwards."""
    before, finder = set(sys.modules), _Finder()
    sys.meta_path.append(finder)
    try:
        yield finder
    finally:
        sys.meta_path.remove(finder)
        if finder.asked:
            for name in set(sys.modules) - before:
                if name.partition(".")[0] in (*NAMES, "ssdrig"):
                    del sys.modules[name]
