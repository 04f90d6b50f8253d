"""Which run is meant: a folder, `latest`, a run's id (the folder's name), or the last digits of the id."""

import argparse
from collections.abc import Iterable
from pathlib import Path

from ssdrig.base.errors import UsageError
from ssdrig.base.words import do_you_mean
from ssdrig.runs import journal, parts

LATEST = "latest"
HELP = "its folder, `latest`, its id, or the last four digits of the id"
FEWEST = 4  # digits of an id that name a run


def add_parent(parser: argparse.ArgumentParser, dest: str = "parent") -> None:
    """--runs: the folder in which one() and several() look for runs that are not named by their folder."""
    words = "where `latest` and ids are looked for (default ./%(default)s)"
    parser.add_argument("--runs", dest=dest, metavar="DIR", default="runs", help=words)


def one(word: str | Path, runs: str | Path = "runs") -> Path:
    """The run folder, or the folder of a review. What looks like a path is taken as it is: whoever reads it says what
    is wrong with it. Raises UsageError for a word that names no run, or several."""
    text, path = str(word), Path(word)
    if path.exists() or path.name != text:
        return path
    try:
        known = parts.all_runs(runs)
    except OSError as error:
        seen = f"{text!r}, and no folder {runs} ({error.strerror})"
        raise _unknown(seen, "name a folder, or --runs DIR") from error
    if text == LATEST:
        if not known:
            raise _unknown(f"no run in {runs}", "carry one out, or name another folder with --runs DIR")
        return known[0]
    found = [each for each in (*known, *reviews(runs)) if each.name == text] or [
        each for each in known if len(text) >= FEWEST and each.name.endswith(text)
    ]
    if len(found) != 1:
        seen = f"{text!r}, which {len(found)} runs end in" if found else repr(text)
        near = do_you_mean(text, [LATEST, *(each.name for each in known)])
        raise _unknown(seen, near if "?" in near else "`./ssdrig runs` lists them")
    return found[0]


def several(words: Iterable[str | Path], runs: str | Path = "runs") -> list[Path]:
    """The folders of several words; a folder that only holds runs stands for all of them, the first first. Raises
    UsageError as one()."""
    found: list[Path] = []
    for word in words:
        path = one(word, runs)
        inside = within(path)
        found += inside or [path]
    return found


def check(words: Iterable[str | Path], runs: str | Path = "runs") -> None:
    """Raises UsageError as one(), and JournalError for a folder that is no run and no review."""
    for path in several(words, runs):
        if not (path / parts.REVIEW).is_file():
            journal.open_run(path)


def within(folder: Path) -> list[Path]:
    """The runs in a folder that is neither a run nor a review, in the order in which they began."""
    if not folder.is_dir() or (folder / "run.json").exists() or (folder / parts.REVIEW).exists():
        return []
    try:
        return parts.all_runs(folder)[::-1]
    except OSError:
        return []


def reviews(runs: str | Path) -> list[Path]:
    """The folders of reviews in a folder of runs."""
    return [path for path in Path(runs).iterdir() if (path / parts.REVIEW).is_file()]


def _unknown(seen: str, do: str) -> UsageError:
    return UsageError(f"a run: a folder, {LATEST}, an id, or its last {FEWEST} digits", seen, do)
