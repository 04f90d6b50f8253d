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
    """The run folder, or the folder of a review. A path is returned unchecked: its reader reports
    its error. Raises UsageError for a word that matches no run, or several."""
    text, path = str(word), Path(word)
    if path.exists() or path.name != text:
        return path
    try:
        known = parts.all_runs(runs)
    except OSError as error:
        why = f"{text!r}, and the folder {runs} of runs cannot be read: {error.strerror}"
        raise _unknown(why, "give the path of a run, or the folder of the runs with --runs DIR") from error
    if text == LATEST:
        if not known:
            raise _unknown(f"no run in {runs}", "run one, or name another folder with --runs DIR")
        return known[0]
    matches = [run for run in (*known, *reviews(runs)) if run.name == text] or [
        run for run in known if len(text) >= FEWEST and run.name.endswith(text)
    ]
    if len(matches) != 1:
        seen = f"{text!r}, which {len(matches)} runs end in" if matches else repr(text)
        near = do_you_mean(text, [LATEST, *(run.name for run in known)])
        raise _unknown(seen, near if "?" in near else "`./ssdrig runs` lists them")
    return matches[0]


def several(words: Iterable[str | Path], runs: str | Path = "runs") -> list[Path]:
    """The folders of several words, each once; a folder that only contains runs means all of them, the earliest first.
    Raises UsageError as one()."""
    folders: list[Path] = []
    for word in words:
        path = one(word, runs)
        inside = within(path)
        folders += inside or [path]
    return parts.distinct(folders)


def check(words: Iterable[str | Path], runs: str | Path = "runs") -> None:
    """Raises UsageError as one(), and JournalError for a folder that is neither a run nor a review."""
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
