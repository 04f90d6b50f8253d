"""schemas/lake.toml as Arrow schemas: what may be written, by which encoding, and rows checked against it."""

import functools
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ssdrig.base import shipped
from ssdrig.publish.lake import needs

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_FILE = shipped.path("schemas/lake.toml")
VERSION = 1
MARK = "run"  # the kind whose row is written last
PARTITION = ("date", "lab")  # of a path, and columns of no file
OF_PATHS = {"schema", "kind", *PARTITION}
DICTIONARY = {"text", "f32"}
DELTA = {"t_utc", "t_ns"}
BITS = {"i32": 32, "i64": 64, "utc": 64}
KINDS: dict[str, Any] = {
    **dict.fromkeys(("text", "long"), str),
    **dict.fromkeys(BITS, int),
    **dict.fromkeys(("f32", "f64"), (int, float)),
    **{"bool": bool, "texts": list},
}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class RowError(ValueError):
    """What the schema does not allow: a defect of the caller, never of the data."""


class Column(NamedTuple):
    id: int
    type: str


def parse(text: str) -> dict[str, dict[str, Column]]:
    """Text of lake.toml -> columns by kind and name. RowError for what an engine would misread."""
    document = tomllib.loads(text)
    if document.pop("schema", None) != VERSION:
        raise RowError(f"lake.toml: schema is not {VERSION}")
    kinds = {kind: {name: Column(*fields) for name, fields in table.items()} for kind, table in document.items()}
    for kind, columns in kinds.items():
        ids = [column.id for column in columns.values()]
        for name, (number, type_) in columns.items():
            if not _NAME.fullmatch(name) or name in OF_PATHS or type_ not in KINDS or number < 1:
                raise RowError(f"lake.toml: {kind}.{name} = [{number}, {type_!r}] cannot be a column")
        if len({*ids}) < len(ids) or len({name.lower() for name in columns}) < len(columns):
            raise RowError(f"lake.toml: {kind} has a duplicate id, or two names that differ only in case")
    return kinds


@functools.cache
def kinds() -> dict[str, dict[str, Column]]:
    """Columns by kind and name."""
    return parse(SCHEMA_FILE.read_text(encoding="utf-8"))


@functools.cache
def of(kind: str) -> "pa.Schema":
    """The Arrow schema of a kind, each field with its id."""
    pa = needs("pyarrow")
    types = {
        "text": pa.dictionary(pa.int32(), pa.string()),
        "long": pa.string(),
        "texts": pa.list_(pa.string()),
        "i32": pa.int32(),
        "i64": pa.int64(),
        "f32": pa.float32(),
        "f64": pa.float64(),
        "bool": pa.bool_(),
        "utc": pa.timestamp("us", "UTC"),
    }
    return pa.schema(
        pa.field(name, types[type_], metadata={b"PARQUET:field_id": str(number).encode()})
        for name, (number, type_) in kinds()[kind].items()
    )


def plain(kind: str) -> "pa.Schema":
    """As readers have it: text is text."""
    pa = needs("pyarrow")
    unpacked = lambda field: pa.field(field.name, pa.string()) if pa.types.is_dictionary(field.type) else field
    return pa.schema(unpacked(field) for field in of(kind))


def written_as(kind: str) -> dict[str, Any]:
    """How pyarrow.parquet.ParquetWriter is to encode a kind."""
    columns = kinds()[kind]
    dictionary = [name for name, (_, type_) in columns.items() if type_ in DICTIONARY or name == "dt_ns"]
    return {
        "compression": "zstd",
        "compression_level": 9,  # 3 % smaller than 3 of samples, at a tenth more time to write; the same to read
        "use_dictionary": dictionary,
        "column_encoding": {name: "DELTA_BINARY_PACKED" for name in columns if name in DELTA},
        "store_schema": False,  # else pyarrow alone would read text as dictionaries
    }


def table(kind: str, rows: Iterable[Mapping[str, Any]]) -> "pa.Table":
    """Rows as an Arrow table; what a row does not have is null. RowError for what the schema does not allow."""
    pa = needs("pyarrow")
    rows, schema = list(rows), of(kind)
    unknown = sorted({name for row in rows for name in row} - {*schema.names})
    if unknown:
        raise RowError(f"{kind}: no column {', '.join(unknown)}")
    arrays = []
    for field in schema:
        try:
            values = [writable(row.get(field.name), kinds()[kind][field.name].type) for row in rows]
        except TypeError as error:
            raise RowError(f"{kind}.{field.name}: {error}") from None
        arrays.append(pa.array(values, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def writable(value: Any, type_: str) -> Any:
    """The value as Arrow takes it. Not-a-numbers, and integers that 64 bits do not hold (a hostile counter), are not
    known; text is valid UTF-8. Raises TypeError."""
    if value is None:
        return None
    if isinstance(value, bool) != (type_ == "bool") or not isinstance(value, KINDS[type_]):
        raise TypeError(f"{value!r:.40} is not a {type_}")
    if type_ in BITS:
        return value if abs(value) < 1 << (BITS[type_] - 1) else None
    if type_ == "texts":
        return [writable(element, "text") for element in value]
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    return None if value != value else value
