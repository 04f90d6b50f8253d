"""Which runs a lake holds, and their rows for SQL: a view for each kind, of the files that the rows of runs name."""

import io
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from ssdrig.base.errors import JournalError
from ssdrig.publish.lake import needs, schema
from ssdrig.publish.lake.place import Place

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

# Kinds whose view has one more column, `file`, a number for each file of the lake: to group hundreds of millions of
# rows by it, instead of by the text that is the same in all rows of a file, takes a fifth less time.
FILE = {"sample": ("run", "export", "part", "rail")}
KIND = f"schema={schema.VERSION}/kind={{}}"  # folder of a kind
# in the path of a lake: DuckDB would read them as a pattern, a separator or its own partition
READ_OTHERWISE = re.compile(r"[*?\[\]\\=]")


class Lake(NamedTuple):
    """What a lake held when it was looked at. `runs`: the rows of all runs, with date and lab; `files`: those of each
    other kind."""

    place: Place
    runs: "pa.Table"
    files: dict[str, list[str]]


def row_of(place: Place, mark: str) -> dict[str, Any] | None:
    """The row of a run; None where the lake has none. Raises JournalError for an invalid row."""
    content = place.read(mark)
    if content is None:
        return None
    try:
        # by no other thread: one that lets go of Python's bytes when Python has ended is a process that aborts
        how = {"use_threads": False, "pre_buffer": False}
        row = needs("pyarrow.parquet").read_table(io.BytesIO(content), **how).to_pylist()[0]
        if not {"export", "t_ns", "t_utc", "serial", "samples"} <= {*row} or not isinstance(row["files"], list):
            raise KeyError("other columns")
    except (needs("pyarrow").ArrowException, OSError, IndexError, KeyError) as error:
        do = "remove it, then export the run again"
        raise JournalError(f"the row of a run: {place.path(mark)}", str(error).splitlines()[0], do) from error
    return row


def look(place: Place, since: str | None = None, until: str | None = None) -> Lake:
    """The runs that are in the lake, begun on these dates (YYYY-MM-DD, both included). Raises JournalError."""
    dataset = needs("pyarrow.dataset")
    pa = needs("pyarrow")
    folder = KIND.format(schema.MARK)
    names = [name for name in place.names(folder) if name.endswith(".parquet")]
    date = lambda name: name.removeprefix(f"{folder}/date=").partition("/")[0]
    names = [name for name in names if (since or "") <= date(name) <= (until or "9999")]
    marked = _with_partition(schema.plain(schema.MARK))
    if names:
        opened = dataset.dataset(
            [place.path(name) for name in names],
            marked,
            filesystem=place.filesystem,
            format="parquet",
            partitioning=_partitioning(place),
            partition_base_dir=place.root,
        )
        try:
            runs = opened.to_table()
        except (OSError, pa.ArrowException) as error:
            raise JournalError(f"rows of runs in {place.words}", str(error), "look again, or fix the lake") from error
    else:
        runs = marked.empty_table()
    files: dict[str, list[str]] = {kind: [] for kind in schema.kinds() if kind != schema.MARK}
    for name in (name for of_run in runs["files"].to_pylist() for name in of_run or ()):
        kind = name.removeprefix(KIND.format("")).partition("/")[0]
        if kind in files:
            files[kind].append(name)
    return Lake(place, runs, files)


def connect(lake: Lake, threads: int | None = None, sql: str = "") -> "duckdb.DuckDBPyConnection":
    """A connection with a view of each kind that the SQL names, or of all where it names none: the files of a kind are
    opened for its view, which takes longer than many a query. Raises ToolMissing."""
    connection = needs("duckdb").connect()
    if threads:
        connection.execute(f"SET threads = {threads}")
    connection.execute("SET TimeZone = 'UTC'")
    connection.register(schema.MARK, lake.runs)
    named = {kind for kind in (schema.MARK, *lake.files) if kind in sql.lower()}
    for kind, names in lake.files.items():
        if named and kind not in named:
            continue
        if names and lake.place.is_local and not READ_OTHERWISE.search(lake.place.root):
            _of_files(connection, lake.place, kind, names)
            continue
        rows = dataset_of(lake, kind) if names else _with_partition(schema.plain(kind)).empty_table()
        connection.register(f"{kind} rows" if kind in FILE else kind, rows)
        if kind in FILE:
            number = f"hash({', '.join(FILE[kind])})"
            connection.execute(f'CREATE VIEW "{kind}" AS SELECT *, {number} AS file FROM "{kind} rows"')
    return connection


def dataset_of(lake: Lake, kind: str) -> Any:
    """The files of a kind as an Arrow dataset, for any engine that reads one."""
    return needs("pyarrow.dataset").dataset(
        [lake.place.path(name) for name in lake.files[kind]],
        _with_partition(schema.plain(kind)),
        filesystem=lake.place.filesystem,
        format="parquet",
        partitioning=_partitioning(lake.place),
        partition_base_dir=lake.place.root,
    )


def _of_files(connection: "duckdb.DuckDBPyConnection", place: Place, kind: str, names: list[str]) -> None:
    """DuckDB reads local files itself. A column that an older file does not have is null."""
    text = ", ".join("'" + place.path(name).replace("'", "''") + "'" for name in names)
    types = "{'date': DATE, 'lab': VARCHAR}"
    source = f"read_parquet([{text}], union_by_name = true, hive_partitioning = true, hive_types = {types})"
    there = {row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
    wanted = schema.plain(kind)
    columns = [f'"{n}"' if n in there else f'NULL::{_SQL[str(wanted.field(n).type)]} AS "{n}"' for n in wanted.names]
    columns += [*schema.PARTITION, *(["file_index AS file"] if kind in FILE else [])]
    connection.execute(f'CREATE VIEW "{kind}" AS SELECT {", ".join(columns)} FROM {source}')


_SQL = {
    "string": "VARCHAR",
    "list<item: string>": "VARCHAR[]",
    "list<element: string>": "VARCHAR[]",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "bool": "BOOLEAN",
    "timestamp[us, tz=UTC]": "TIMESTAMPTZ",
}


def _partitioning(place: Place) -> Any:
    dataset, pa = needs("pyarrow.dataset"), needs("pyarrow")
    return dataset.partitioning(pa.schema([("date", pa.date32()), ("lab", pa.string())]), flavor="hive")


def _with_partition(of: "pa.Schema") -> "pa.Schema":
    pa = needs("pyarrow")
    return of.append(pa.field("date", pa.date32())).append(pa.field("lab", pa.string()))
