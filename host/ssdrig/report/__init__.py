"""`ssdrig report RUN...`: the figures of run folders, and one HTML page that shows them. Made from the folders alone
and written next to them or to --out; may be deleted and made again at any time."""

import functools
import json
from collections.abc import Sequence
from pathlib import Path

from ssdrig.base.arguments import add_output, add_quiet
from ssdrig.base.errors import JournalError, UsageError
from ssdrig.base.files import write_atomically
from ssdrig.base.progress import Progress
from ssdrig.base.terminal import shown
from ssdrig.base.words import size
from ssdrig.plan.rules import windows
from ssdrig.reading import summary, table
from ssdrig.reading.row import Table
from ssdrig.reading.rundata import RunData
from ssdrig.reading.table import Windows
from ssdrig.report import csv_files, embed, page, screen
from ssdrig.runs import named, parts
from ssdrig.runs.integrity import FIGURES
from ssdrig.views import documents

EXAMPLES = (
    ("report latest --open", "the newest run, in the browser"),
    ("report 3fa9 b071 --review 2", "two runs by the last digits of their ids; the second on top"),
    ("report runs -o all.html", "all runs of a folder, on one page"),
)


def add_arguments(parser) -> None:
    parser.add_argument(
        "runs", nargs="*", metavar="RUN", help=f"a run: {named.HELP}; or a folder of runs (default: latest)"
    )
    named.add_parent(parser)
    add_output(parser, "the page (default: RUN/report.html; of several runs ./report.html)")
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    parser.add_argument(
        "--json", action="store_true", help="print the figures on stdout, one object a line for each run"
    )
    parser.add_argument(
        "--review",
        metavar="N|NAME",
        help="the reviewed run, drawn on top: its number (1 is the first) or part of its name or model",
    )
    parser.add_argument(
        "--against",
        nargs="+",
        metavar="RUN",
        help="for a review: earlier runs, reviews and library files to compare it with (default: all complete runs next"
        " to its folder, and the drives imported there)",
    )
    parser.add_argument(
        "--window",
        metavar="NAME=FROM:TO",
        action="append",
        default=[],
        help="also the figures of these seconds of each load, such as burst=10:20 (drive time; may be repeated)",
    )
    parser.add_argument(
        "--samples", action="store_true", help="keep all power samples in the page, not only those around some moments"
    )
    parser.add_argument(
        "--csv",
        metavar="DIR",
        help="also write what the plots show as CSV: seconds, cells, samples, latencies, marks of each run; of a plan"
        " its figures, and seconds and latencies of its steps",
    )
    parser.add_argument(
        "--embed",
        metavar="PANEL",
        help="only one plot, to put into an article: small HTML, or SVG if --out ends in .svg",
    )
    add_quiet(parser, "no progress and no table on stderr")


def check(args) -> None:
    """Raises UsageError for a word that names no run, and for an invalid window; JournalError for a folder without a
    run."""
    for text in args.window:
        windows.parse(text)
    named.check(args.runs or [named.LATEST], args.parent)


def command(args) -> int:
    """Write the page (never over a file of another kind) and, with a single run, figures.json in its folder; print the
    figures, and open the page if asked. Raises JournalError, UsageError."""
    show = Progress(args.quiet)
    out = _made(args, show)
    if args.open:
        show_page(out, show)
    return 0


def show_page(page_file: Path, show: Progress) -> None:
    """Open a page in the user's browser; print a note if no browser can be opened."""
    import webbrowser

    try:
        opened = webbrowser.open(page_file.resolve().as_uri())
    except webbrowser.Error:
        opened = False
    if not opened:
        show.warn(f"report: no browser could be started; open {page_file.resolve()}")


def _made(args, show: Progress) -> Path:
    """The page that the arguments ask for."""
    more = [windows.parse(text) for text in args.window]
    folders = named.several(args.runs or [named.LATEST], args.parent)
    out = Path("report.html")
    if args.out:
        out = Path(args.out)
    elif args.embed:
        out = embed.default_name(args.embed)
    elif len(folders) == 1:
        out = folders[0] / "report.html"
    keep_others(out)
    if any((folder / parts.REVIEW).is_file() for folder in folders):
        return review_command(args, folders, out, show)
    if args.against is not None:
        raise UsageError("--against with the folder of a review", "none", "name several runs to compare them")
    own_views = any(of_plan(folder) for folder in folders)
    loads: list[tuple[RunData, dict]] = []
    tables: list[Table] = []
    made_of: list[dict] = []  # the document of each run
    if own_views and not args.samples:
        tables = [table.load(folder, more=more) for folder in folders]
    else:
        in_full = args.samples or args.csv or more
        as_document = documents.of_table if args.json or len(folders) == 1 else None
        read = _in_full(folders, args.samples, more) if in_full else summary.of_folders(folders, as_document)
        for i, (data, figures, *more_of) in enumerate(read):
            loads.append((data, figures))
            if in_full:
                tables += more_of
            else:
                made_of += more_of
            if len(folders) > 1:
                show.show(f"report: {i + 1} of {len(folders)} runs read")
    if own_views:
        of_one_plan(tables)
    figures_of = [figures for _, figures in loads] or [documents.of_table(run) for run in tables]
    review = chosen(args.review, figures_of)
    if args.csv:
        csv = [csv_files.tables(data) for data, _ in loads] or [csv_files.plan_tables(run) for run in tables]
        _write_csv(Path(args.csv), list(zip([f["run"] for f in figures_of], csv, strict=True)), show)
    if args.embed:
        as_svg = out.suffix == ".svg"
        plot = embed.text(loads, review, args.embed, as_svg) if loads else ""
        write(out, plot or embed.of_plan(tables, review, args.embed, as_svg))
        show.say(f"report: {out.resolve()} ({size(out.stat().st_size)})")
        return out
    if loads and (args.json or len(folders) == 1):
        figures_of = made_of or [
            documents.of_table(run) for run in tables or (table.load(folder, more=more) for folder in folders)
        ]
    _printed(figures_of, args)
    _left(folders, figures_of, show)
    if loads:
        show.say("\n".join([screen.short_table([figures for _, figures in loads]), *screen.ending(loads, review)]))
    else:
        show.say(screen.text(tables))
    html = page.render(tables if own_views else [], review, loads, args.samples, folders)
    write(out, html)
    show.say(f"report: {out.resolve()} ({size(len(html))})")
    return out


def _printed(results: list[dict], args) -> None:
    """The documents of runs on stdout, where asked; first: a folder that may only be read still gives its figures."""
    for one in results if args.json else ():
        print(json.dumps(one, allow_nan=False))


def _left(folders: list[Path], results: list[dict], show: Progress) -> None:
    """Write figures.json into the folder of a single run."""
    if len(folders) > 1:
        return
    try:
        write(folders[0] / FIGURES, json.dumps(results[0], indent=1) + "\n")
    except JournalError as error:
        show.say(f"report: figures.json is not written, {error.seen}")


def _in_full(folders: list[Path], samples: bool, more: list[tuple[str, int, int]]):
    """As read(), with what a summary does not have: the latencies by the second, and where asked for all power samples
    of the loads, and the figures of more windows."""
    whole = functools.partial(_whole, samples=samples, more=more)
    yield from (
        map(whole, folders) if samples else summary.of_each(whole, folders)
    )  # samples are more than one process can hand on


def _whole(folder: Path, samples: bool, more: Windows) -> tuple:
    """A Course; without its table where it comes from another process."""
    loaded = table.in_full(folder, samples, more)
    return tuple(loaded) if samples else loaded[:2]


def _write_csv(folder: Path, runs: list[tuple[str, csv_files.Tables]], show: Progress) -> None:
    """`runs`: the name of each, and its tables. Raises JournalError."""
    try:
        names = csv_files.file_names(run for run, _ in runs)
        pairs = zip(names, (csvs for _, csvs in runs), strict=True)
        csv_paths = [path for name, csvs in pairs for path in csv_files.write(folder, name, csvs)]
    except OSError as error:
        do = "name another folder with --csv DIR, or make room"
        raise JournalError(f"to write CSV to {folder}", error.strerror or str(error), do) from error
    show.say(f"report: {len(csv_paths)} CSV files in {folder.resolve()}")


def of_plan(folder: Path) -> bool:
    """Whether a run is shown by the views of its plan."""
    return table.plan_of(folder) != "consistency"


def review_command(args, folders: list[Path], out: Path, show: Progress) -> Path:
    """The page of a review, which is one folder. Raises UsageError, JournalError."""
    from ssdrig.report import review_page

    if len(folders) > 1 or args.window or args.review or args.json or args.samples or args.embed:
        seen = "another folder" if len(folders) > 1 else "another option"
        raise UsageError(
            "one review, and no more than --against, --csv and --output", seen, "name earlier ones with --against"
        )
    if args.csv:
        _write_csv(
            Path(args.csv), [(name, csv_files.plan_tables(of)) for name, of in review_page.tables(folders[0])], show
        )
    against = None if args.against is None else list(map(Path, args.against))
    review_page.write(folders[0], against, out, show.warn)
    show.say(f"report: {out.resolve()} ({size(out.stat().st_size)})")
    return out


def of_one_plan(tables: Sequence[Table]) -> None:
    """Raises UsageError for runs of several plans."""
    first = tables[0].plan
    other = next((run for run in tables if (run.plan.name, run.plan.text) != (first.name, first.text)), None)
    if other:
        raise UsageError("runs of the same plan", f"{first.name} and {other.plan.name}", "report them one by one")


def chosen(review: str | None, figures: list[dict]) -> int:
    """Index of the reviewed run; the first if none is named. Raises UsageError unless exactly one run is meant."""
    if review is None:
        return 0
    if review.isdecimal() and 1 <= int(review) <= len(figures):
        return int(review) - 1
    hits = [i for i, f in enumerate(figures) if review.lower() in f"{f['run']} {f['model']}".lower()]
    if len(hits) != 1 or review.isdecimal():
        names = ", ".join(f"{i + 1}: {f['run']}" for i, f in enumerate(figures))
        raise UsageError(
            f"--review with a place from 1 to {len(figures)} or part of one run's name",
            review,
            f"choose one of {names}",
        )
    return hits[0]


def keep_others(out: Path) -> None:
    """Raises UsageError if the file at the place of the page is not an earlier page."""
    try:
        if not out.exists():
            return
        opening = b""
        if out.is_file():
            with open(out, "rb") as f:
                opening = f.read(len(page.OPENING))
            if not opening or opening.startswith((page.OPENING.encode(), embed.SVG_OPENING.encode())):
                return
    except OSError as error:
        raise JournalError(
            f"to write {out}", error.strerror or str(error), "name another file with --output FILE"
        ) from error
    raise UsageError(
        f"a new file or an earlier page at {out}", "something else", "name another file with --output FILE"
    )


def write(path: Path, text: str) -> None:
    """Whole or not at all. Raises JournalError if the place cannot be written to."""
    try:
        write_atomically(path, shown(text).encode())
    except OSError as error:
        raise JournalError(
            f"to write {path}", error.strerror or str(error), "name another file with --output FILE, or make room"
        ) from error
