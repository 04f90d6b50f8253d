"""The user's labels of a run: a title and tags, in RUN/labels.json, separate from the measured data. The file may be
deleted at any time."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ssdrig.base import files, owner, system
from ssdrig.base.errors import JournalError, UsageError
from ssdrig.base.files import write_atomically
from ssdrig.base.terminal import line, printable
from ssdrig.runs.integrity import LABELS

MOST_TAGS = 32
MOST_TITLE = 120
MOST_BYTES = 1 << 16  # of the file; more is not ours
_TAG = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")


class Labels(NamedTuple):
    """title: or None; tags: sorted, unique."""

    title: str | None = None
    tags: tuple[str, ...] = ()


def tag(word: str) -> str:
    """A tag as it is kept, in lower case. Raises UsageError."""
    tag = word.strip().lower()
    if not _TAG.fullmatch(tag):
        raise UsageError(
            "a tag of up to 40 letters a–z, digits and . _ -, beginning with a letter or digit",
            repr(printable(word))[:80],
            "choose another word",
        )
    return tag


def read(run: Path) -> Labels:
    """The labels of a run folder; none where the file is not there, damaged, or a link."""
    try:
        fd = os.open(run / LABELS, system.READ_NO_LINK)
        with open(fd, "rb") as f:
            return _of(json.loads(f.read(MOST_BYTES)))
    except (OSError, ValueError, RecursionError):
        return Labels()


def of(run: Path) -> Labels:
    """The labels of what must be a run folder. Raises JournalError."""
    _need(run)
    return read(run)


def _need(run: Path) -> None:
    if not (run / "run.json").is_file():
        raise JournalError(f"a run folder with a run.json at {run}", "none", "give the path of a run folder")


def _of(document) -> Labels:
    if not isinstance(document, dict):
        return Labels()
    title, tags = document.get("title"), document.get("tags")
    good = {word for word in tags if isinstance(word, str) and _TAG.fullmatch(word)} if isinstance(tags, list) else ()
    shortened = " ".join(title.split())[:MOST_TITLE].encode(errors="replace").decode() if isinstance(title, str) else ""
    return Labels(shortened or None, tuple(sorted(good))[:MOST_TAGS])


def change(run: Path, title: str | None = None, add: list[str] | None = None, drop: list[str] | None = None) -> Labels:
    """Set the title ("": none any more; None: as it was), add tags and drop tags; others may do so at the same time.
    Returns what the run has now. Raises UsageError, JournalError."""
    adding, dropping = {tag(word) for word in add or []}, {tag(word) for word in drop or []}
    title = None if title is None else line("a title", title, MOST_TITLE)
    _need(run)
    try:
        with _alone(run):
            was = read(run)
            tags = tuple(sorted(({*was.tags} | adding) - dropping))
            if len(tags) > MOST_TAGS:
                raise UsageError(f"at most {MOST_TAGS} tags on a run", f"{len(tags)}", "remove some with --untag")
            now = Labels(was.title if title is None else title or None, tags)
            owner.new(run / LABELS)
            write_atomically(
                run / LABELS, (json.dumps(now._asdict(), ensure_ascii=False) + "\n").encode(errors="replace")
            )
    except OSError as error:
        raise JournalError(
            f"to write {run / LABELS}", error.strerror or str(error), "free disk space, or fix the folder's permissions"
        ) from error
    return now


@contextmanager
def _alone(run: Path) -> Iterator[None]:
    """While no other process changes the labels. Raises OSError."""
    fd = files.lock_file(run / ".labels.lock")
    try:
        system.lock(fd)
        yield
    finally:
        os.close(fd)
