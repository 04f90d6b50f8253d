"""A lake wherever people put it, and what `query` says of it: numbers as numbers, and whose fault an error is."""

import csv
import io
import json
import os
from pathlib import Path

import pytest
from lake_runs import lake_of, run, tree
from test_lake_query import asked

from ssdrig import cli
from ssdrig.base.errors import JournalError, UsageError
from ssdrig.publish.lake import place, read, write


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    return run(tmp_path_factory.mktemp("runs"), "made", [1000, 1000])


NAMES = ["a[1]", "what?", "all*", "lab=rome", "date=2020-01-01/kind=run", "back\\slash", "it's"]


def seen_in(lake: read.Lake) -> dict[str, list[dict]]:
    """The dates, labs and numbers of rows of each kind, and from how many files the samples come."""
    select = "SELECT date, lab, count(*) AS n FROM {} GROUP BY ALL"
    files = "SELECT count(DISTINCT file) AS files, count(file) AS n FROM sample"
    with read.connect(lake) as connection:
        queries = {kind: select.format(kind) for kind in ("run", *lake.files)} | {"files": files}
        return {what: connection.sql(sql).to_arrow_table().to_pylist() for what, sql in queries.items()}


@pytest.fixture(scope="module")
def plain(made, tmp_path_factory) -> dict[str, list[dict]]:
    seen = seen_in(lake_of(tmp_path_factory.mktemp("plain"), made))
    assert seen["second"][0]["n"] > 0 and seen["files"] == [{"files": 1, "n": seen["sample"][0]["n"]}]
    return seen


@pytest.mark.parametrize("name", [NAMES[0], *(pytest.param(name, marks=pytest.mark.slow) for name in NAMES[1:])])
def test_a_lake_in_a_folder_of_any_name(made, plain, tmp_path, name):
    assert seen_in(lake_of(tmp_path / name / "lake", made)) == plain


@pytest.mark.parametrize("where", ["ftp://x/y", "s3://", "file:///tmp/x"])
def test_other_places_are_refused(where):
    with pytest.raises(UsageError):
        place.open_place(where)


@pytest.mark.parametrize("where", ["", " "])
def test_no_name_is_no_lake(made, where, tmp_path, monkeypatch):
    """As of a variable that is not set: `--parquet "$LAKE"`."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError):
        place.open_place(where)
    assert not os.listdir(tmp_path)


def test_folders_that_a_lake_needs_are_given_to_the_person_behind_sudo(tmp_path, monkeypatch):
    """Who is told before they are made."""
    folders = []
    monkeypatch.setattr(place.owner, "new", lambda path: folders.append((path, path.parent.exists())))
    with place.open_place(str(tmp_path / "lake")).writing("kind=run/a.parquet") as f:
        f.write(b"x")
    path = tmp_path / "lake/kind=run/a.parquet"
    assert folders[0] == (path, False) and path.read_bytes() == b"x"


def test_keys_in_an_address_are_not_shown():
    where = place.open_place("s3://key:secret@benches/lake?region=eu-central-1&endpoint_override=127.0.0.1:9")
    assert (where.words, where.root, where.is_local) == ("s3://benches/lake", "benches/lake", False)


@pytest.mark.parametrize("inside", ["", "lake", "fio/load"])
def test_a_lake_in_the_run_itself_is_refused(made, inside):
    """Its own files would be part of what is exported."""
    before = tree(made)
    with pytest.raises(UsageError, match="outside of the run folder"):
        write.export(made, place.open_place(str(made / inside)), "berlin")
    assert tree(made) == before and not (made / "lake").exists()


def test_a_lake_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(JournalError, match="no such folder"):
        asked("SELECT 1", "--lake", str(tmp_path / "typo"))


def test_a_damaged_file_is_no_fault_of_the_query(made, tmp_path):
    lake = lake_of(tmp_path / "lake", made)
    path = Path(lake.place.path(lake.files["second"][0]))
    for content in (path.read_bytes()[:1000], b"PAR1", b"", b"x" * 5000):
        path.write_bytes(content)
        with pytest.raises(JournalError):
            asked("SELECT count(*) FROM second", "--lake", str(tmp_path / "lake"))
    path.unlink()
    with pytest.raises(JournalError):
        asked("SELECT count(*) FROM second", "--lake", str(tmp_path / "lake"))


def test_only_the_kinds_that_a_query_names_are_opened(made, tmp_path, capsys):
    """A query of the rows of runs takes no longer for a thousand files of samples; one that names no kind sees all."""
    lake = lake_of(tmp_path / "lake", made)
    Path(lake.place.path(lake.files["second"][0])).unlink()
    for sql in ("SELECT run FROM run", "SELECT count(*) FROM Sample", 'SELECT count(*) FROM "FIGURE" NATURAL JOIN run'):
        assert asked(sql, "--lake", str(tmp_path / "lake")) == 0
    lake_of(tmp_path / "lake", made)
    capsys.readouterr()
    assert asked("SHOW TABLES", "--lake", str(tmp_path / "lake"), "--csv") == 0
    out = capsys.readouterr().out.split()
    assert {*out} >= {"run", "sample", "second", "smart", "event", "figure", "cut"}


def test_a_row_of_a_run_with_columns_of_other_types_is_an_error(made, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    lake_of(tmp_path / "lake", made)
    mark = next((tmp_path / "lake").rglob("made.parquet"))
    table = pq.read_table(mark, partitioning=None)
    for odd in (pa.array([["x"]]), pa.array(["x"]), pa.array([{"a": 1}])):
        pq.write_table(table.set_column(table.schema.get_field_index("samples"), "samples", odd), mark)
        with pytest.raises(JournalError, match="rows of runs"):
            asked("SELECT 1", "--lake", str(tmp_path / "lake"))


def test_a_query_that_needs_too_much_room_is_not_wrong_sql(made, tmp_path):
    lake_of(tmp_path / "lake", made)
    sql = (
        "SET memory_limit = '8MB'; SET max_temp_directory_size = '1KB'; SELECT * FROM range(9000000) ORDER BY random()"
    )
    with pytest.raises(JournalError, match="memory and disk"):
        asked(sql, "--lake", str(tmp_path / "lake"))


def test_sums_and_decimals_are_numbers(made, tmp_path, capsys):
    """DuckDB makes HUGEINT of a sum of integers, and DECIMAL of 0.5."""
    lake_of(tmp_path / "lake", made)
    sql = "SELECT sum(write_ios) AS ios, 0.5 AS half, 10.0 AS ten, [0.25] AS each FROM second WHERE step = 'load'"
    assert asked(sql, "--lake", str(tmp_path / "lake"), "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"ios": 2000, "half": 0.5, "ten": 10, "each": [0.25]}
    assert asked(sql, "--lake", str(tmp_path / "lake"), "--csv") == 0
    assert capsys.readouterr().out == "ios,half,ten,each\n2000,0.5,10,[0.25]\n"


def test_csv_has_lists_as_json_and_nothing_for_no_number(made, tmp_path, capsys):
    lake_of(tmp_path / "lake", made)
    sql = "SELECT ['a', 'it''s, \"b\"'] AS tags, 'nan'::DOUBLE AS x, {'c': NULL} AS d, MAP {'k': 1} AS m"
    assert asked(sql, "--lake", str(tmp_path / "lake"), "--csv") == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert json.loads(row["tags"]) == ["a", 'it\'s, "b"'] and row["x"] == "" and json.loads(row["d"]) == {"c": None}
    assert json.loads(row["m"]) == [["k", 1]]


def test_what_lies_below_a_lake_s_folder_is_no_partition_of_it(made, tmp_path):
    lake = lake_of(tmp_path / "lab=rome", made, lab="berlin")
    assert {*read.dataset_of(lake, "event").to_table(columns=["lab"])["lab"].to_pylist()} == {"berlin"}


@pytest.mark.parametrize("words", [["export", "{run}", "--parquet", "{lake}"], ["query", "hot", "--lake", "{lake}"]])
def test_a_lake_in_a_folder_that_is_no_utf_8_is_refused(made, tmp_path, capsys, words):
    """pyarrow takes no such path: it was a traceback."""
    lake = tmp_path / os.fsdecode(b"caf\xe9")
    lake.mkdir()
    assert cli.main([word.format(run=made, lake=lake) for word in words]) == 2
    assert "whose path is UTF-8" in capsys.readouterr().err and not [*lake.iterdir()]


def test_what_a_stranger_named_in_no_utf_8_is_no_file_of_a_lake(made, tmp_path):
    done = lake_of(tmp_path / "lake", made).place
    (tmp_path / "lake" / read.KIND.format("run") / os.fsdecode(b"\xe9.parquet")).touch()
    assert len(read.look(done).runs) == 1
