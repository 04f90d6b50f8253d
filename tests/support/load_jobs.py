"""For tests of the load: a drive, and a job on it."""

import shutil

import pytest

from ssdrig.load import fio as load

SIZE = 64 << 20
needs_fio = pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")


def random_write(target: str, **more) -> load.Job:
    return load.Job(
        **{
            "name": "load",
            "rw": "randwrite",
            "block_bytes": 4096,
            "queue_depth": 32,
            "size_bytes": SIZE,
            "target": target,
        }
        | more
    )
