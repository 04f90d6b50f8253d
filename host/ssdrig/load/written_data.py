"""Whether a drive could compress or deduplicate fio's data: a sample of it, written to a file and compressed."""

import os
import subprocess
import tempfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ssdrig.base.errors import LoadError
from ssdrig.load import fiojob

BYTES, BLOCK_BYTES = 4 << 20, 4096
LONGEST_S = 60


class Kind(NamedTuple):
    """How the data of a load is made: the share that compresses (percent), and whether it comes from a pool."""

    compressible: int
    pool: bool


def measured(kinds: Iterable[Kind], fio: str = "fio") -> list[dict]:
    """For each kind of data {"compressible", "pool", "bytes", "compressed_percent": its size after zlib, in % of it,
    "distinct_percent": share of its blocks of 4 KiB that differ from all others}. Raises LoadError."""
    return [kind._asdict() | figures(_written(kind, fio)) for kind in dict.fromkeys(kinds)]


def figures(data: bytes) -> dict:
    """ "bytes", "compressed_percent" and "distinct_percent" of data."""
    blocks = [data[at : at + BLOCK_BYTES] for at in range(0, len(data), BLOCK_BYTES)]
    compressed = sum(len(zlib.compress(block)) for block in blocks)  # a drive compresses its pages apart
    return {
        "bytes": len(data),
        "compressed_percent": round(100 * compressed / len(data), 1),
        "distinct_percent": round(100 * len(set(blocks)) / len(blocks), 1),
    }


def _written(kind: Kind, fio: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="ssdrig-data-") as folder:
        file, job = Path(folder) / "data", Path(folder) / "data.fio"
        file.write_bytes(bytes(BYTES))
        made = {"compressible": kind.compressible, "pool": kind.pool, "detail": "none"}
        text = fiojob.job_file(fiojob.Job("data", "write", BLOCK_BYTES, 32, BYTES, os.fspath(file), **made))
        job.write_text(text.replace("direct=1\n", ""))  # a file in memory has no direct I/O
        command = ["setpriv", "--pdeathsig", "KILL", fio, "--output-format=json", os.fspath(job)]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, timeout=LONGEST_S, errors="replace"
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _unknown(str(error)) from error
        data = file.read_bytes()
        if done.returncode or len(data) != BYTES:
            raise _unknown(f"exit code {done.returncode}: {done.stderr.strip()[-200:]}")
        return data


def _unknown(why: str) -> LoadError:
    return LoadError("fio to write a sample of its data to a file", why, "see why fio writes no file")
