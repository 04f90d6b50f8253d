"""Loads of two seconds with an error by their own scatter: for tests of what is made of errors, whose loads are too
short for one."""

import contextlib
from collections.abc import Iterator

import pytest


@contextlib.contextmanager
def with_errors() -> Iterator[None]:
    from ssdrig.reading import errors, filling

    with pytest.MonkeyPatch.context() as patch:
        for module in (errors, filling):
            patch.setattr(module, "LEAST_S", 2)
            patch.setattr(module, "AROUND_LEAST_S", 2)
        yield
