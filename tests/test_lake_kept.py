"""An export believes neither the place that it writes to nor the run folder that it reads."""

import json

import pytest
from lake_runs import counts, run

from ssdrig.errors import JournalError
from ssdrig.lake import place, read, write


def test_an_export_looks_whether_the_place_has_kept_it(tmp_path, monkeypatch):
    """A place may say yes to all, as a proxy or a bucket of another kind does."""
    made, where = run(tmp_path, "mine", [500]), place.open_place(str(tmp_path / "lake"))
    sizes = place.Place.sizes
    monkeypatch.setattr(place.Place, "sizes", lambda *words: [None, *sizes(*words)[1:]])
    with pytest.raises(JournalError, match="all files of mine"):
        write.export(made, where, "berlin")
    assert counts(read.look(where))["run"] == 0
    monkeypatch.setattr(place.Place, "sizes", sizes)
    done = write.export(made, where, "berlin")
    assert done.new and not write.export(made, where, "berlin").new
    (tmp_path / "lake" / done.files[0]).unlink()  # by someone who tidied up
    assert write.export(made, where, "berlin").new and (tmp_path / "lake" / done.files[0]).exists()
    (tmp_path / "lake" / done.files[-1]).write_bytes(b"PAR1")
    with pytest.raises(JournalError, match="the row of a run"):
        write.export(made, where, "berlin")


@pytest.mark.parametrize("utc_ns", [None, "x", 10**30, float("nan"), {}])
def test_a_run_that_began_at_no_time_is_refused(tmp_path, utc_ns):
    made = run(tmp_path, "made", [500])
    header = json.loads((made / "run.json").read_text())
    header["started"]["utc_ns"] = utc_ns
    (made / "run.json").write_text(json.dumps(header))
    with pytest.raises(JournalError):
        write.export(made, place.open_place(str(tmp_path / "lake")), "berlin")
