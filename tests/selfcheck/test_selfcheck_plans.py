"""The check of forecasts against the ledger: its comparison, its table, and that it goes on where it was stopped."""

import json

import pytest

from selfcheck import plans
from ssdrig.base.errors import LoadError

ACTS = [
    {"path": "fill", "point": {}, "rounds": None, "written_bytes": [100, 100]},
    {"path": "rounds/point", "point": {"read": 0}, "rounds": [5, 25], "written_bytes": [10, 20]},
    {"path": "rounds/point", "point": {"read": 100}, "rounds": [5, 25], "written_bytes": [0, 0]},
]
ROW = {"written_bytes": 105, "expected_bytes": [90, 110], "class_bytes": [50, 500], "took_s": 3.0, "expected_s": [2, 4]}


def test_a_step_of_a_repeat_counts_as_often_as_it_ended():
    events = [{"kind": "step.end", "step": "rounds/point", "point": {"read": read}} for read in (0, 100, 0, 100, 0)]
    events += [{"kind": "step.end", "step": "fill"}, {"kind": "step.start", "step": "fill"}]
    assert plans.expected(ACTS, plans.times_of(events), "written_bytes") == (130, 160)


@pytest.mark.parametrize(
    ("size", "span", "off"), [(105, (90, 110), 5.0), (0, (0, 0), 0.0), (1, (0, 0), float("inf")), (80, (100, 100), 20)]
)
def test_bytes_are_held_against_the_middle_of_the_range(size, span, off):
    assert plans.off_percent(size, span) == pytest.approx(off)


def test_what_a_drive_wrote_in_another_run_is_not_counted(tmp_path):
    truth = tmp_path / "truth"
    truth.mkdir()
    (truth / "counts.jsonl").write_text('{"host_write_bytes": 700}\n{"host_write_bytes": 750}\n')
    (truth / "ledger.json").write_text('{"host_write_bytes": 760}')
    assert plans.written_bytes(tmp_path) == 60


def test_check_goes_on_where_it_was_stopped(tmp_path, monkeypatch, capfd):
    rows, measured = tmp_path / "rows", []

    def row(name, runs):
        measured.append(name)
        if len(measured) == 2:
            raise LoadError("a run", "exit code 8", "")
        return {"plan": name, "why": None, **ROW}

    monkeypatch.setattr(plans, "_row", row)
    monkeypatch.setattr(plans, "lasts_s", lambda name: -len(name))
    plans.plans(plans=1, rows=str(rows))
    figures = plans.plans(plans=3, rows=str(rows))
    assert measured[1:] == sorted(measured[1:], key=len, reverse=True)
    assert len(measured) == len(set(measured)) == 3 and len(rows.read_text().splitlines()) == 3
    assert [(figure.value, figure.met) for figure in figures[-3:]] == [(0, True), (0, True), (1, False)]
    assert [figure.value for figure in figures[:2]] == pytest.approx([5.0, 5.0])
    assert json.loads(rows.read_text().splitlines()[1])["why"] == "exit code 8 of a run"
    assert "5.00 %" in capfd.readouterr().err
    plans.plans(plans=3, rows=str(rows))
    assert measured[3:] == [measured[1]]  # whose run had failed
