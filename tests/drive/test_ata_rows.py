"""The table of attributes: which entry is for which drive, which row for which attribute, and what is refused."""

from pathlib import Path

import pytest

from ssdrig.base.errors import UsageError
from ssdrig.drive.smart import ata_table
from ssdrig.drive.smart.ata_table import Entry, Rows

SOME = Path("some.toml")
NONE = frozenset()


def entry(*rows, **table) -> Entry:
    return Entry({"rows": list(rows)} | (table or {"family": ""}), SOME)


@pytest.mark.parametrize(
    "table, drive, fits",
    [
        ({"model": "^SSD 8"}, (None, None, "SSD 860", "", NONE), True),
        ({"model": "^SSD 8"}, (None, None, "my SSD 860", "", NONE), False),
        ({"model": "8", "firmware": "B$"}, (None, False, "860", "AB", NONE), True),
        ({"model": "8", "firmware": "B$"}, (None, False, "860", "BA", NONE), False),
        ({"family": "Intel", "model": "8"}, ("My Intel", True, "860", "", NONE), True),
        ({"family": "Intel", "model": "8"}, ("My Intel", True, "970", "", NONE), False),
        ({"family": "Intel"}, ("Samsung", True, "860", "", NONE), False),
        # every drive but one that smartctl says it does not know
        ({"family": ""}, ("Samsung", True, "", "", NONE), True),
        ({"family": ""}, (None, None, "", "", NONE), True),
        ({"family": ""}, (None, False, "", "", NONE), False),
        # a name that only the database has stands for the family where the file does not say
        ({"family": "Intel", "proof": ["A"]}, (None, None, "", "", frozenset("AB")), True),
        ({"family": "Intel", "proof": ["A"]}, (None, None, "", "", frozenset("B")), False),
        ({"family": "Intel", "proof": ["A"]}, (None, False, "", "", frozenset("A")), False),
        ({"family": "Intel"}, (None, None, "", "", frozenset("A")), False),
        ({"family": "Intel", "proof": ["A"]}, ("Samsung", True, "", "", frozenset("A")), False),
    ],
)
def test_which_entries_are_for_a_drive(table, drive, fits):
    assert entry(**table).fits(*drive) == fits


def test_the_row_that_stands_first_goes_first():
    first = entry([9, "A", "pe_mean", "raw"], [0, "A", "pe_max", "raw"])
    second = entry([9, "", "pe_mean", "word 0"], [0, "", "pe_min", "raw"], [8, "A", "pe_rated", "raw"])
    rows = Rows([first, second])
    assert rows.of(9, "A") == [(0, "pe_mean", "raw"), (1, "pe_max", "raw"), (3, "pe_min", "raw")]
    assert rows.of(8, "A") == [(1, "pe_max", "raw"), (3, "pe_min", "raw"), (4, "pe_rated", "raw")]
    assert rows.of(9, "B") == [(2, "pe_mean", "word 0"), (3, "pe_min", "raw")]
    assert rows.of(7, "B") == [(3, "pe_min", "raw")]
    assert Rows([second, first]).of(9, "A") == [(0, "pe_mean", "word 0"), (1, "pe_min", "raw"), (4, "pe_max", "raw")]


def test_an_attribute_that_is_not_what_its_name_says():
    rows = Rows([entry([9, "A", "pe_max", "raw"], [9, "A", "nothing", ""], [9, "A", "pe_mean", "raw"])])
    assert rows.of(9, "A") == [(0, "pe_max", "raw")]


@pytest.mark.parametrize(
    "entries, compresses", [((), False), ((False,), False), ((False, True), True), ((True,), True)]
)
def test_a_drive_compresses_if_one_of_its_entries_says_so(entries, compresses):
    assert Rows([entry(model="x", compresses=word) for word in entries]).compresses is compresses


@pytest.mark.parametrize(
    "row, good",
    [
        ([9, "A", "pe_mean", "raw"], True),
        ([9, "", "pe_mean", "raw"], True),
        ([9, "A", "pe_mean", "cooked"], False),
        ([9, "A", "pe_mean", 512], False),
        ([9, "A", "pe_meen", "raw"], False),
        ([9, "A", "host_written_high", "raw"], True),
        ([9, "A", "host_written_high", 512], False),
        ([9, "A", "host_written", 1], True),
        ([9, "A", "host_written", "?"], True),
        ([9, "A", "host_written", 0], False),
        ([9, "A", "host_written", -1], False),
        ([9, "A", "host_written", True], False),
        ([9, "A", "host_written", "raw"], False),
        ([9, "A", "host_written", 0.5], False),
        ([9, "A", "nothing", ""], True),
        ([9, "A", "nothing", "raw"], False),
        (["9", "A", "pe_mean", "raw"], False),
        ([9, 1, "pe_mean", "raw"], False),
        ([9, "A", "pe_mean"], False),
        ([9, "A", "pe_mean", "raw", "x"], False),
        ("9Ax?", False),
        ((9, "A", "pe_mean", "raw"), False),
        (9, False),
    ],
)
def test_rows_that_are_refused(row, good):
    if good:
        assert ata_table._checked(row, SOME) == tuple(row)
    else:
        with pytest.raises(UsageError, match="some.toml"):
            ata_table._checked(row, SOME)


@pytest.mark.parametrize(
    "table, good",
    [
        ({"model": "x", "rows": []}, True),
        ({"family": "x"}, True),
        ({"family": "x", "model": "x", "firmware": "x", "proof": [], "compresses": True, "rows": []}, True),
        ({"firmware": "x", "rows": []}, False),
        ({}, False),
        ({"model": "x", "rows": {}}, False),
        ({"model": "x", "proof": "A"}, False),
        ({"model": "x", "compresses": 1}, False),
        ({"model": "x", "colour": "red"}, False),
        ({"model": "("}, False),
        ({"model": 5}, False),
        ({"model": "x", "rows": [[9]]}, False),
    ],
)
def test_entries_that_are_refused(table, good):
    if good:
        made = Entry(table, SOME)
        assert made.rows == [] and made.compresses is table.get("compresses", False)
    else:
        with pytest.raises(UsageError, match="some.toml"):
            Entry(table, SOME)


@pytest.fixture
def users_table(tmp_path, monkeypatch):
    """A function that writes the user's table and reads all tables anew."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def write(text: str) -> None:
        (tmp_path / "ssdrig").mkdir(exist_ok=True)
        (tmp_path / "ssdrig/ata_units.toml").write_text(text)
        ata_table.forget()

    ata_table.forget()
    yield write
    monkeypatch.undo()
    ata_table.forget()


def test_the_users_table_goes_before_ours(users_table):
    ours = len(ata_table.entries())
    smartctl = {"model_name": "My Drive", "firmware_version": "F1"}
    before = ata_table.rows_for({}, smartctl).of(241, "Mine")
    users_table('[[drives]]\nmodel = "^My Drive$"\nfirmware = "^F1$"\nrows = [[241, "Mine", "host_written", 77]]\n')
    assert len(ata_table.entries()) == ours + 1
    assert ata_table.rows_for({}, smartctl).of(241, "Mine") == [(0, "host_written", 77), *before]
    poll = {"drive": {"model": "My Drive", "firmware": "F1"}}  # where smartctl said nothing
    assert ata_table.rows_for(poll, {}).of(241, "Mine") == [(0, "host_written", 77), *before]
    assert ata_table.rows_for(poll, {"model_name": "Other"}).of(241, "Mine") == before
    assert ata_table.rows_for(poll, {"firmware_version": "F2"}).of(241, "Mine") == before


def test_when_a_drive_counts_as_known(users_table):
    users_table('[[drives]]\nfamily = "Mine"\nproof = ["P"]\nrows = [[241, "A", "host_written", 77]]\n')
    table = {"ata_smart_attributes": {"table": [{"name": "P"}, {"name": 5}, {}]}}
    for smartctl, known in (
        (table, True),
        (table | {"in_smartctl_database": False}, False),
        (table | {"in_smartctl_database": True}, False),  # of a family that is not named
        (table | {"in_smartctl_database": "yes"}, True),  # no word of smartctl's
        ({"model_family": "Mine 5"}, True),
        ({"model_family": "Mine 5", "in_smartctl_database": False}, True),
        ({"model_family": "Yours"}, False),
        ({}, False),
    ):
        assert ((0, "host_written", 77) in ata_table.rows_for({}, smartctl).of(241, "A")) == known, smartctl


@pytest.mark.parametrize("text", ["[[drives", "drives = 5", "drives = [5]", "[drives]", "other = 1", "\xff"])
def test_users_tables_that_are_refused(users_table, text):
    users_table(text)
    with pytest.raises(UsageError, match="ata_units.toml"):
        ata_table.entries()


def test_a_users_table_that_cannot_be_read(users_table, tmp_path):
    users_table("")
    (tmp_path / "ssdrig/ata_units.toml").unlink()
    (tmp_path / "ssdrig/ata_units.toml").mkdir()
    with pytest.raises(UsageError, match="ata_units.toml"):
        ata_table.entries()
