"""`ssdrig query "SQL"|NAME`: DuckDB over a lake, or over run folders, read as one for the duration of the query.

Ready-made queries: questions/NAME.sql, described by the comment in its first lines."""

import argparse
import csv
import datetime
import decimal
import json
import math
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ssdrig.base import temporary
from ssdrig.base.errors import JournalError, UsageError
from ssdrig.base.progress import Progress
from ssdrig.base.terminal import hanging, printable, width
from ssdrig.base.words import as_cell, do_you_mean, unique
from ssdrig.publish.lake import export, needs, place, read, write
from ssdrig.runs import named, parts

FOLDER = Path(__file__).with_name("questions")


class Question(NamedTuple):
    name: str
    title: str
    more: str  # what else there is to know; "" if nothing
    sql: str


def all_of() -> dict[str, Question]:
    """By name."""
    questions = (of(path.stem, path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.sql")))
    return {question.name: question for question in questions}


def of(name: str, text: str) -> Question:
    lines = text.splitlines()
    comment = [
        line.removeprefix("--").strip() for line in lines[: next(i for i, x in enumerate(lines) if x[:2] != "--")]
    ]
    return Question(name, comment[0], " ".join(comment[1:]), "\n".join(lines[len(comment) :]))


if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

MOST_ROWS, WIDEST = 100, 44  # of a table for people


EXAMPLES = (
    ("query --list", "the ready-made queries"),
    ("query energy-per-io latest", "one of them, of the newest run"),
    ('query "SELECT drive, max(temperature_C) FROM smart GROUP BY drive" --lake ~/lake', "your own, of a lake"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(verbatim=True)  # SQL, CSV, and a table as wide as its rows
    parser.add_argument(
        "sql",
        nargs="?",
        metavar="SQL|NAME",
        help="a query over run, sample, second, smart, event, figure and cut, or the name of a question (--list)",
    )
    parser.add_argument("runs", nargs="*", metavar="RUN", help=f"a run: {named.HELP}; or a folder of runs")
    named.add_parent(parser)
    parser.add_argument("--lake", metavar="DIR|s3://BUCKET/PREFIX", help="what `ssdrig export` has written, instead")
    for option, words in (("--since", "first"), ("--until", "last")):
        parser.add_argument(
            option, type=_date, metavar="DATE", help=f"{words} day of the runs in a lake, YYYY-MM-DD (UTC)"
        )
    parser.add_argument("--list", action="store_true", help="list the ready-made queries and what each answers")
    parser.add_argument("--show", action="store_true", help="print the SQL of a ready-made query, and do not run it")
    parser.add_argument("--csv", action="store_true", help="all rows as CSV")
    parser.add_argument("--json", action="store_true", help="all rows, one JSON object a line")


def check(args) -> None:
    """Raises UsageError for words that ask nothing, or of nothing."""
    ready = all_of()
    if args.list:
        return
    if not (args.sql or "").strip(" \t\n;"):
        raise UsageError(
            "SQL, or the name of a question", "neither", "`ssdrig query --list` names those that are ready"
        )
    if re.fullmatch(r"[\w-]+", args.sql) and args.sql not in ready:
        raise UsageError("SQL, or the name of a question", args.sql, do_you_mean(args.sql, ready))
    if args.show:
        return
    if bool(args.runs) == bool(args.lake):
        seen = "both" if args.lake else "neither"
        raise UsageError("run folders, or a lake", seen, "name runs, or --lake DIR|s3://BUCKET/PREFIX")
    if args.runs and (args.since or args.until):
        raise UsageError("--since and --until of a lake", "runs", "name the runs that are meant, or --lake")
    if args.csv and args.json:
        raise UsageError("--csv or --json", "both", "choose one")
    named.check(args.runs, args.parent)
    if args.lake and "://" not in args.lake and not os.path.isdir(args.lake):
        raise JournalError(f"a lake at {args.lake}", "no such folder", "name that of `ssdrig export --parquet`")


def command(args) -> int:
    """Prints the rows. Raises UsageError for SQL that DuckDB refuses, JournalError for a lake that cannot be read."""
    check(args)
    ready = all_of()
    if args.list:
        for question in ready.values():
            print(hanging(f"{question.name:22}  {question.title}", width()))
        return 0
    sql = ready[args.sql].sql if args.sql in ready else args.sql
    if args.show:
        print(sql.strip())
        return 0
    with temporary.folder("ssdrig-query-") as folder:
        scratch = str(folder)
        where = place.open_place(args.lake or f"{scratch}/lake")
        for run in named.several(args.runs, args.parent):
            write.export(run, where, export.lab_of(parts.root(run)), with_samples="sample" in sql.lower())
        lake = read.look(where, args.since, args.until)
        if args.lake and not lake.runs.num_rows:
            Progress().warn(f"query: no run in {where.words}")
        answer = ask(lake, sql, scratch)
        if args.json:
            for row in rows_of(answer):
                print(json.dumps(_plain(row), default=str, allow_nan=False))
        elif args.csv:
            out = csv.writer(sys.stdout, lineterminator="\n")
            out.writerow([as_cell(name) for name in answer.column_names])
            out.writerows([_csv(value) for value in row.values()] for row in rows_of(answer))
        else:
            print("\n".join(lines(answer)))
    return 0


def ask(lake: read.Lake, sql: str, scratch: str, threads: int | None = None) -> "pa.Table":
    """The query's result; data that does not fit into memory spills to `scratch`. Raises UsageError, JournalError."""
    duckdb = needs("duckdb")
    try:
        with _connected(lake, threads, sql) as connection:
            connection.execute("SET temp_directory = ?", [scratch])
            relation = connection.sql(sql)
            if relation is None:
                return needs("pyarrow").table({})
            table = relation.to_arrow_table()
            return table.rename_columns(unique(table.column_names))
    except (duckdb.OutOfMemoryException, MemoryError) as error:
        do = "query less data, or name a larger disk in TMPDIR"
        raise JournalError("memory and disk for the query", _first_line(error), do) from None
    except (duckdb.IOException, OSError) as error:
        do = "look again: a run was exported again; or fix the lake, or what else the query names"
        raise JournalError("to read what the query asks for", _first_line(error), do) from None
    except duckdb.Error as error:
        seen = str(error).strip()
        raise UsageError("SQL that DuckDB takes", seen, "`ssdrig query --show NAME` prints an example") from None


def _connected(lake: read.Lake, threads: int | None, sql: str) -> "duckdb.DuckDBPyConnection":
    """Nothing of the query is at fault where the lake's own files cannot be opened. Raises JournalError."""
    duckdb, arrow = needs("duckdb"), needs("pyarrow")
    try:
        return read.connect(lake, threads, sql)
    except (duckdb.InvalidInputException, duckdb.InvalidTypeException, arrow.ArrowException) as error:
        do = "export the run again: remove the file and repeat `ssdrig export`"
        raise JournalError(f"Parquet files in {lake.place.words}", _first_line(error), do) from None


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def _plain(value: Any) -> Any:
    """A value for JSON; NaN becomes null. DuckDB's sums of integers, and numbers such as 0.5 in a query,
    come as decimals: they are numbers."""
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(element) for key, element in value.items()}
    return [_plain(element) for element in value] if isinstance(value, list | tuple) else value


def _csv(value: Any) -> Any:
    """A cell: as JSON unless it is a text or a number."""
    value = _plain(value)
    return as_cell(json.dumps(value, default=str) if isinstance(value, dict | list) else value)


def rows_of(table: "pa.Table") -> Iterator[dict[str, Any]]:
    for batch in table.to_batches(1000):
        yield from batch.to_pylist()


def lines(table: "pa.Table") -> list[str]:
    """A table for people: numbers to six digits, wide text cut, MOST_ROWS rows."""
    shown = [table.column_names, *(list(map(_cell, row.values())) for row in rows_of(table.slice(0, MOST_ROWS)))]
    numbers = [str(field.type).startswith(("int", "uint", "float", "double", "decimal")) for field in table.schema]
    widths = [max(len(row[i]) for row in shown) for i in range(len(numbers))]
    pad = lambda text, i: text.rjust(widths[i]) if numbers[i] else text.ljust(widths[i])
    out = ["  ".join(pad(text, i) for i, text in enumerate(row)).rstrip() for row in shown]
    if table.num_rows > MOST_ROWS:
        out.append(f"… {table.num_rows - MOST_ROWS} more rows: --csv prints all")
    return out


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, datetime.datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    text = printable(str(value))
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def _date(text: str) -> str:
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        raise UsageError("a date such as 2026-11-30", repr(text), "give year, month and day, in UTC") from None
