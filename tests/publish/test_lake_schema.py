"""schemas/lake.toml: what it may say, its examples, and what of it stands in the files."""

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ssdrig.base.errors import ToolMissing
from ssdrig.drive.smart import counters
from ssdrig.publish import lake
from ssdrig.publish.lake import schema, write
from ssdrig.reading import errors, window_figures
from ssdrig.reading.row import KEYS

EXAMPLES = Path(__file__).parents[2] / "schemas/examples/lake"


def examples(name: str) -> list[dict]:
    return [json.loads(line) for line in (EXAMPLES / name).read_text().splitlines()]


class Memory:
    """A place that keeps one file."""

    def __init__(self):
        self.file = io.BytesIO()

    def writing(self, name):
        import contextlib

        return contextlib.nullcontext(self.file)


def written(kind: str, rows: list[dict]) -> pa.BufferReader:
    place = Memory()
    write._write(place, "x", kind, [schema.table(kind, rows)], {"run": "r"})
    return pa.BufferReader(place.file.getvalue())


@pytest.mark.slow
@pytest.mark.parametrize("kind", schema.kinds())
def test_good_examples_come_back_as_they_were_written(kind):
    rows = [example["row"] for example in examples("good.jsonl") if example["kind"] == kind]
    assert rows
    for row, back in zip(rows, pq.read_table(written(kind, rows)).to_pylist(), strict=True):
        values = {name: value for name, value in back.items() if value is not None}
        values["t_utc"] = round(values["t_utc"].timestamp() * 1e6)
        assert values == {n: pytest.approx(v, rel=1e-7) if isinstance(v, float) else v for n, v in row.items()}


@pytest.mark.parametrize("example", examples("bad.jsonl"), ids=lambda example: example["says"])
def test_bad_examples_are_refused(example):
    with pytest.raises(schema.RowError) as error:
        schema.table(example["kind"], [example["row"]])
    assert example["says"] in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "schema = 2",
        'schema = 1\n[run]\na = [1, "text"]\nb = [1, "text"]',
        'schema = 1\n[run]\na = [1, "text"]\nA = [2, "text"]',
        'schema = 1\n[run]\na = [0, "text"]',
        'schema = 1\n[run]\na = [1, "float"]',
        'schema = 1\n[run]\nlab = [1, "text"]',
        'schema = 1\n[run]\n"a b" = [1, "text"]',
    ],
)
def test_what_an_engine_would_misread_is_no_schema(text):
    with pytest.raises(schema.RowError):
        schema.parse(text)


@pytest.mark.parametrize("kind", schema.kinds())
def test_files_have_field_ids_types_for_every_engine_and_the_encodings(kind):
    rows = [example["row"] for example in examples("good.jsonl") if example["kind"] == kind]
    file = pq.ParquetFile(written(kind, rows))
    fields = {field.name: field for field in file.schema_arrow}
    for name, (number, type_) in schema.kinds()[kind].items():
        assert fields[name].metadata == {b"PARQUET:field_id": str(number).encode()}
        assert not pa.types.is_dictionary(fields[name].type), "who reads it finds text"
        assert type_ != "utc" or str(fields[name].type) == "timestamp[us, tz=UTC]"  # Spark takes no nanoseconds
    assert file.metadata.metadata[b"kind"] == kind.encode() and b"ARROW:schema" not in file.metadata.metadata
    columns = [file.metadata.row_group(0).column(i) for i in range(len(fields))]
    assert {column.compression for column in columns} == {"ZSTD"}
    for column in columns:
        wanted = {"t_ns": "DELTA_BINARY_PACKED", "t_utc": "DELTA_BINARY_PACKED", "V": "RLE_DICTIONARY"}
        wanted |= {"I": "RLE_DICTIONARY", "dt_ns": "RLE_DICTIONARY", "run": "RLE_DICTIONARY"}
        name = column.path_in_schema
        assert name not in wanted or wanted[name] in column.encodings, (name, column.encodings)


def test_every_figure_has_its_column():
    known = schema.kinds()
    assert {term.key for term in window_figures.TERMS} | ({*KEYS} - {"errors"}) <= {*known["figure"]}
    assert {*counters.FIGURES} <= {*known["smart"]}
    assert {f"{key}_error" for key in errors.KEYS} <= {*known["figure"]}


def test_what_64_bits_do_not_hold_and_what_is_not_a_number_is_not_known():
    table = schema.table("smart", [{"media_errors": 1 << 63, "percentage_used": float("nan"), "reason": "a\ud800b"}])
    row = table.to_pylist()[0]
    assert (row["media_errors"], row["percentage_used"], row["reason"]) == (None, None, "a?b")


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.fs", None)
    with pytest.raises(ToolMissing) as error:
        lake.needs("pyarrow.fs")
    assert "pyarrow" in str(error.value) and "--extra lake" in str(error.value)
