"""`ssdrig library`: results of drives as files that another house can show with its own."""

import argparse
import json
import re
import time
from pathlib import Path

from ssdrig.base import owner
from ssdrig.base.arguments import add_output
from ssdrig.base.errors import JournalError, UsageError
from ssdrig.base.files import write_atomically
from ssdrig.base.progress import Progress
from ssdrig.base.terminal import printable
from ssdrig.base.words import size
from ssdrig.reading import library_file, review_folder, table
from ssdrig.reading.library_file import Shared
from ssdrig.reading.row import Table
from ssdrig.report import library, price, review_page
from ssdrig.runs import named, parts

EXAMPLES = (
    ("library export runs/REVIEW -o drive.ssdlib", "a review in a file of some hundred kB"),
    ("library import drive.ssdlib", "one that you were given: reviews in ./runs show it from now on"),
    ("library list", "the imported files, and the SIMULATED reference drives of the package"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    words = "write the figures of runs and reviews of one drive into one file, without its serial number"
    export = actions.add_parser("export", help=words, description=words)
    export.add_argument("runs", nargs="+", metavar="RUN", help=f"a run or a review: {named.HELP}")
    named.add_parent(export)
    export.add_argument(
        "--price", metavar="PRICE", help='such as "89.90 USD" (default: that in the review\'s review.toml)'
    )
    add_output(export, f"the file (default: ./MODEL{library_file.SUFFIX})")
    words = "check files of others and keep them with the runs"
    take = actions.add_parser("import", help=words, description=words)
    take.add_argument("files", nargs="+", metavar="FILE", type=Path, help="as `library export` makes it")
    named.add_parent(take)
    words = "list the imported files and their content"
    show = actions.add_parser("list", help=words, description=words)
    named.add_parent(show)
    for action in (export, take, show):
        action.add_argument("--json", action="store_true", help="print one JSON object a line for each file")


def check(args: argparse.Namespace) -> None:
    """Raises UsageError for an invalid price, JournalError for a folder without a run."""
    if args.action == "export":
        named.check(args.runs, args.parent)
        if args.price:
            price.parse(args.price)


def command(args: argparse.Namespace) -> int:
    """0. Raises UsageError, JournalError."""
    check(args)
    return {"export": _export, "import": _import, "list": _list}[args.action](args)


def _export(args: argparse.Namespace) -> int:
    folders = named.several(args.runs, args.parent)
    runs = [run for folder in folders for run in _runs(folder)]
    if not runs:
        raise JournalError("a complete run to export", "none in these folders", "run one")
    tables = [table.load(run, by_second=True) for run in runs]
    models = list(dict.fromkeys(_drive(one) for one in tables))
    if len(models) > 1:
        seen = f"{len(models)}: {', '.join(' '.join(filter(None, model)) for model in models)}"
        raise UsageError("runs of one drive in one file", printable(seen), "export them one by one")
    facts = [library.facts_of_folder(folder) for folder in folders]
    rated = next((one.rated_bytes for one in facts if one.rated_bytes), None)
    rated = rated or tables[0].data.header["drive"].get("rated_write_bytes")
    stated = args.price or next((str(one.price) for one in facts if one.price), None)
    content = library_file.packed(tables, time.time_ns(), rated, stated)
    out = Path(args.out) if args.out else Path(_slug(models[0][0]) + library_file.SUFFIX)
    if out.suffix != library_file.SUFFIX:
        raise UsageError(f"a file *{library_file.SUFFIX}", printable(str(out)), "name it so: imports know it by that")
    _keep_others(out, {one.data.header["run"] for one in tables})
    shared = library_file.checked(content, out)
    _write(out, content)
    _printed(out, shared, args)
    return 0


def _runs(folder: Path) -> list[Path]:
    """The run itself, or the complete runs of a review."""
    if not (folder / parts.REVIEW).is_file():
        return [folder]
    done = review_folder.done(review_folder.read(folder)).values()
    return [one.run for one in done if one.run and one.complete]


def _drive(one: Table) -> tuple[str, str]:
    drive = one.data.header["drive"]
    return str(drive.get("model") or "unknown drive"), str(drive.get("serial") or "")


def _keep_others(out: Path, runs: set[str]) -> None:
    """Raises UsageError if a file at the place of an export has none of these runs: another drive of the model, or no
    library file."""
    if not out.exists():
        return
    do = f"name another file: -o NAME{library_file.SUFFIX}"
    try:
        there = {one.data.header["run"] for one in library_file.read(out).tables}
    except JournalError as error:
        raise UsageError(f"a new file, or an earlier export at {out}", "something else", do) from error
    if not there & runs:
        raise UsageError(f"a new file, or an earlier export of these runs at {out}", "one of other runs", do)


def _import(args: argparse.Namespace) -> int:
    contents = [library_file.content(path) for path in args.files]
    shared = [library_file.checked(content, path) for content, path in zip(contents, args.files, strict=True)]
    for path, one in zip(args.files, shared, strict=True):  # all, before anything is stored
        review_page.check_drawable(path, one.tables)
        _check_price(path, one)
    for content, one in zip(contents, shared, strict=True):
        number = content[len(library_file.MAGIC) :][:8].hex()
        out = Path(args.parent) / library_file.FOLDER / f"{_slug(_models(one)[0])}-{number}{library_file.SUFFIX}"
        _write(out, content)
        _printed(out, one, args)
    return 0


def _check_price(path: Path, one: Shared) -> None:
    """Raises JournalError for a price that no page could show."""
    try:
        if one.price:
            price.parse(one.price)
    except UsageError as error:
        do = "get it again from who made it, or ask for one without a price"
        raise JournalError(f"{error.expected} in {path}", error.seen, do) from error


def _list(args: argparse.Namespace) -> int:
    refused: JournalError | None = None
    for path in [library.REFERENCE, *library.imported_files(Path(args.parent))]:
        try:
            of = library_file.read(path)
        except JournalError as error:
            Progress().warn(printable(f"{path} cannot be read: {error.seen}"))
            refused = refused or error
            continue
        _printed(path, of, args)
    if refused:
        raise refused
    return 0


def _write(path: Path, content: bytes) -> None:
    try:
        owner.new(path.parent)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    except OSError as error:
        do = "name another file, or make room"
        raise JournalError(f"to write {path}", error.strerror or str(error), do) from error


def _models(of: Shared) -> list[str]:
    """The models in a file, each once."""
    return list(dict.fromkeys(_drive(one)[0] for one in of.tables)) or ["nothing"]


def _slug(model: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", model).strip("-").lower()[:60] or "drive"


def _printed(path: Path, of: Shared, args: argparse.Namespace) -> None:
    plans = sorted({one.plan.name for one in of.tables})
    day = time.strftime("%Y-%m-%d", time.gmtime(of.utc_ns / 1e9))
    size_bytes = path.stat().st_size
    if args.json:
        document = {
            "file": str(path),
            "bytes": size_bytes,
            "models": _models(of),
            "runs": len(of.tables),
            "plans": plans,
        }
        print(json.dumps(document | {"rated_bytes": of.rated_bytes, "price": of.price, "made": day}))
        return
    words = [
        ", ".join(_models(of)),
        f"{len(of.tables)} runs",
        f"plans {', '.join(plans)}",
        f"made {day}",
        size(size_bytes),
    ]
    print(printable(f"{path}: {'; '.join([*words, *([of.price] if of.price else [])])}"))
