"""Storage of a lake: a folder or an S3 bucket. Either takes a file whole or not at all, under its own name,
so that writers need no coordinator. Paths are relative to the lake."""

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ssdrig.base import owner
from ssdrig.base.errors import JournalError, UsageError
from ssdrig.base.files import replacing
from ssdrig.publish.lake import needs

if TYPE_CHECKING:
    from pyarrow import fs

PART_BYTES = 5 << 20  # of S3, at least
IN_MEMORY_BYTES = 16 << 20  # of a file for S3; a larger one waits on the disk
DO = "check the name, the network and AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL"


class Place:
    """`filesystem` and `root` are pyarrow's, for readers; `is_local` where DuckDB can read the files itself."""

    def __init__(self, filesystem: "fs.FileSystem", root: str, is_local: bool, words: str):
        self.filesystem, self.root, self.is_local, self.words = filesystem, root.rstrip("/"), is_local, words

    def path(self, name: str) -> str:
        """As the filesystem has it."""
        return f"{self.root}/{name}"

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[Any]:
        """A file to write to, which is there under its name when the block ends without an exception. Raises
        JournalError."""
        with self._journal_errors():
            if self.is_local:
                path = Path(self.path(name))
                owner.new(path)
                path.parent.mkdir(parents=True, exist_ok=True)
                with replacing(path) as f:
                    yield f
                return
            with tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES) as made:
                yield made
                made.seek(0)
                self._upload(name, made)

    def _upload(self, name: str, made: IO[bytes]) -> None:
        """A file that is whole. S3 has an object from the moment its stream is closed, whatever was written to it, and
        pyarrow cannot abort one: so a failed multi-part upload is deleted, and a single part is there as it
        is now or as it was before."""
        stream = self.filesystem.open_output_stream(self.path(name))
        parts = 0
        try:
            while piece := made.read(PART_BYTES):
                stream.write(piece)
                parts += 1
            stream.close()
        except BaseException:
            with contextlib.suppress(OSError):
                stream.close()
            if parts > 1:
                with contextlib.suppress(OSError):
                    self.filesystem.delete_file(self.path(name))
            raise

    def names(self, folder: str) -> list[str]:
        """The files below a folder, sorted; [] if empty. Raises JournalError."""
        from pyarrow import fs

        with self._journal_errors():
            status = self.filesystem.get_file_info(
                fs.FileSelector(self.path(folder), allow_not_found=True, recursive=True)
            )
        paths = (_path_of(info) for info in status if info.type == fs.FileType.File)
        names = (path[len(self.root) + 1 :] for path in paths if path)
        return sorted(name for name in names if not name.rpartition("/")[2].startswith("."))

    def sizes(self, names: Iterable[str]) -> list[int | None]:
        """Bytes of files; None for anything but a file. Raises JournalError."""
        from pyarrow import fs

        with self._journal_errors():
            infos = self.filesystem.get_file_info([self.path(name) for name in names])
        return [info.size if info.type == fs.FileType.File else None for info in infos]

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if absent. Raises JournalError."""
        try:
            with self._journal_errors(FileNotFoundError), self.filesystem.open_input_file(self.path(name)) as f:
                return f.read()
        except FileNotFoundError:
            return None

    def remove(self, name: str) -> None:
        """Does nothing if it is absent. Raises JournalError."""
        with contextlib.suppress(FileNotFoundError), self._journal_errors(FileNotFoundError):
            self.filesystem.delete_file(self.path(name))

    @contextlib.contextmanager
    def _journal_errors(self, *but: type[OSError]) -> Iterator[None]:
        try:
            yield
        except but:
            raise
        except OSError as error:
            do = "make room, or name another folder" if self.is_local else DO
            raise JournalError(f"to read and write {self.words}", error.strerror or str(error), do) from error


def _path_of(info: "fs.FileInfo") -> str | None:
    """None for a name that is not UTF-8: no lake file has one."""
    try:
        return info.path
    except UnicodeDecodeError:
        return None


def open_place(where: str) -> Place:
    """The lake at a folder or an s3:// address. Raises UsageError, JournalError, ToolMissing."""
    fs = needs("pyarrow.fs")
    if not where.strip():  # as of a variable that is not set: the folder of the shell is not meant
        raise UsageError("a folder, or s3://BUCKET/PREFIX", repr(where), "name the lake")
    local = "://" not in where
    root = os.path.realpath(where) if local else where
    if root != root.encode(errors="replace").decode():  # pyarrow takes no other path
        raise UsageError("a lake whose path is UTF-8", repr(root), "name another folder")
    if local:
        return Place(fs.LocalFileSystem(), root, True, where)
    if urlsplit(where).scheme != "s3" or not urlsplit(where).netloc:
        raise UsageError("a folder, or s3://BUCKET/PREFIX", where, "other object stores speak S3, too")
    shown = where.partition("?")[0]
    shown = f"s3://{shown.rpartition('@')[2].removeprefix('s3://')}"  # credentials are not shown
    try:
        filesystem, root = fs.FileSystem.from_uri(where)
    except (OSError, ValueError) as error:
        raise JournalError(f"to reach {shown}", str(error), DO) from error
    return Place(filesystem, root, False, shown)
