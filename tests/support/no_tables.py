"""For tests of counters: no table of the user (ata_units.toml) lies beside them, and none is kept."""

import pytest

from ssdrig.drive.smart import ata_table


@pytest.fixture(autouse=True)
def no_table_of_the_user(tmp_path, monkeypatch):
    """The path where one would be read."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    ata_table.forget()
    yield tmp_path / "ssdrig" / "ata_units.toml"
    ata_table.forget()
