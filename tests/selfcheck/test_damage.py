"""A run folder damaged in any way: `report` says so, and neither fails with a traceback nor gives another number
without a word. The whole of it, 3 500 damages of a run on the virtual bench: ./ssdrig selfcheck damage."""

import pytest
import synthetic_run

from selfcheck import damage
from ssdrig.runs import integrity, journal

RANDOM, STRUCTURED, OLD, FORGED = 40, 60, 25, 30


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return synthetic_run.write(tmp_path_factory.mktemp("runs"), [900] * 5 + [300, 500] * 3, zoom_s=5)


@pytest.mark.slow
def test_random_damages(run):
    assert damage.trials(run, RANDOM, structured=False, seed=11) == []


@pytest.mark.slow
def test_structured_damages(run):
    assert damage.trials(run, STRUCTURED, structured=True, seed=12) == []


@pytest.mark.slow
def test_forged_files_of_fio_with_their_sums_made_anew(run):
    assert damage.forgeries(run, FORGED, seed=14) == []


@pytest.mark.slow
def test_folders_without_sums_give_no_traceback(tmp_path):
    old = synthetic_run.write(tmp_path, [900] * 5 + [300, 500] * 3, zoom_s=5)
    damage.unsealed(old)
    assert integrity.damage(old) == []
    assert [f for f in damage.trials(old, OLD, structured=True, seed=13, with_page=True) if "traceback" in f] == []


def test_the_harness_sees_what_it_must(run, monkeypatch):
    """Without the sums a SIMULATED run becomes a real one silently; a reader that stumbles is a traceback."""

    def real(path):
        path.write_text(path.read_text().replace('"simulated": true, "started"', '"simulbted": true, "started"'))

    want = damage.figures(run)
    assert damage.trial(run, "run.json", real, want) is None
    monkeypatch.setattr(integrity, "damage", lambda folder: [])
    assert damage.trial(run, "run.json", real, want) == "silent: simulated"
    monkeypatch.setattr(journal, "events", lambda folder: [][1])
    assert damage.trial(run, "run.json", lambda path: None, want).startswith("traceback: IndexError")
