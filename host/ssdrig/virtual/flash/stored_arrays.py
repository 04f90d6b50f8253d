"""Arrays of a file that numpy.savez wrote and that may have been altered since: each is read only once its header
states the size that the drive needs, so nothing unpacks to more than is on the disk."""

import contextlib
import math
import os
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

HEAD_BYTES = 1 << 20  # of a text


@contextlib.contextmanager
def opened(path: str | os.PathLike) -> Iterator[zipfile.ZipFile]:
    """The file, for array(). Raises OSError, also for a pipe or a device, and zipfile.BadZipFile."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would wait for a writer
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(f"{Path(path).name} is not a file")
        with zipfile.ZipFile(file) as members:
            yield members


def array(members: zipfile.ZipFile, name: str, kind: np.dtype | type, *shape: int | None) -> np.ndarray:
    """The array `name`; None in its shape: any length. Raises ValueError for another kind or shape, KeyError if there
    is invalid, zipfile.BadZipFile."""
    member = members.getinfo(f"{name}.npy")
    with members.open(member) as file:
        header, lengths = _header(file)
        fits = header.names is None and header == np.dtype(kind) and len(lengths) == len(shape)
        if not fits or any(want not in (None, have) for want, have in zip(shape, lengths, strict=True)):
            raise ValueError(f"{name}: {lengths} of {header}, not {shape} of {np.dtype(kind)}")
        _whole(member, file.tell() + math.prod(lengths) * header.itemsize)
    with members.open(member) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def text(members: zipfile.ZipFile, name: str) -> str:
    """The text `name`, of HEAD_BYTES at most. Raises ValueError, KeyError, zipfile.BadZipFile."""
    member = members.getinfo(f"{name}.npy")
    if member.file_size > HEAD_BYTES:
        raise ValueError(f"{name}: {member.file_size} bytes")
    with members.open(member) as file:
        header, shape = _header(file)
        if header.kind != "U" or shape != ():
            raise ValueError(f"{name}: no text")
        _whole(member, file.tell() + header.itemsize)
    with members.open(member) as file:
        return str(np.lib.format.read_array(file, allow_pickle=False))


def _header(file) -> tuple[np.dtype, tuple[int, ...]]:
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"an array of format {version}")
    shape, _, kind = np.lib.format.read_array_header_1_0(file)
    return kind, shape


def _whole(member: zipfile.ZipInfo, size_bytes: int) -> None:
    """Stored as it is, and neither shorter nor longer than its header states."""
    if member.compress_type != zipfile.ZIP_STORED or not member.file_size == member.compress_size == size_bytes:
        raise ValueError(f"{member.filename}: packed, or not of {size_bytes} bytes")
