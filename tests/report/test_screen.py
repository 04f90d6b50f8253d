"""report/screen.py: what a run came to, at its end: on the terminal, and with --json as the report has it."""

import json
import os
import signal
from types import SimpleNamespace

import pytest
import synthetic_plan
import synthetic_run

from ssdrig import report
from ssdrig.base.progress import Progress
from ssdrig.reading import summary, table
from ssdrig.report import screen
from ssdrig.run import run
from ssdrig.run.teardown import SIGNALS
from ssdrig.views import documents, terms


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """A terminal that holds the whole table."""
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    base = tmp_path_factory.mktemp("ended")
    main = synthetic_run.write(base, iops=[4000] * 6 + [1000] * 24, zoom_s=20)
    return {
        "steps": synthetic_plan.steps(base, name="steps"),
        "grid": synthetic_plan.grid(base, falling=0.1, rounds=6, name="grid"),
        "dark": synthetic_plan.grid(base, rounds=1, power=False, name="dark"),
        "main": main,
    }


def row(lines, name):
    """The cells of the row that begins with a name, of each table that has it: a terminal of 80 columns has two."""
    rows = [line.strip()[len(name) :].split("  ") for line in lines if line.strip().startswith(name + "  ")]
    assert rows, "\n".join(lines)
    return [cell.strip() for cells in rows for cell in cells if cell]


@pytest.mark.usefixtures("short_loads_have_errors")
def test_a_row_for_each_step_and_window_with_the_figures_of_the_report(folders):
    lines, figures = screen.ended(folders["steps"])
    assert figures == documents.of_table(table.load(folders["steps"]))
    clean = ["4.00", "2\u202f000 ± 160", "8.19 ± 0.66", "800 ± 64", "2.000 ± 0.023", "1\u202f000 ± 81", "1.000 ± 0.021"]
    assert row(lines, "clean") == clean
    assert row(lines, "late")[:5] == ["2.00", "2\u202f000", "8.19", "800", "2.000 ± 0.024"]
    assert row(lines, "after")[-1] == "3.00 ± 0.11" and row(lines, "trim")[:2] == ["0.250", "–"]
    assert any(line.startswith("  no WA: ") and "fill" in line for line in lines)
    assert "  not run: rest, 0 s" in lines and not any("trim" in line for line in lines if "  no " in line)


@pytest.mark.usefixtures("short_loads_have_errors")
def test_a_row_for_each_point_of_the_rounds_that_stand_for_it(folders):
    """The writes of 4 KiB fall from 100 to 50; of the last five rounds the mean is 70."""
    lines, _ = screen.ended(folders["grid"])
    assert row(lines, "rounds/point read=0 block=4KiB")[1] == "70 ± 14 ✕"
    assert row(lines, "rounds/point read=100 block=64KiB")[:2] == ["10.0", "3\u202f000 ✕"]
    assert "  rounds, iops read=0 block=4KiB: STEADY STATE NOT ACHIEVED" in lines
    assert any("not run: rounds/point read=100 block=512B and 1 more" in line for line in lines)


def test_what_is_not_known_has_its_reason(folders):
    lines, _ = screen.ended(folders["dark"])
    assert row(lines, "rounds/point read=0 block=4KiB")[4:6] == ["–", "–"]
    lines_ = [line for line in lines if line.startswith("  no W, µJ per I/O: the run has no power samples (")]
    assert len(lines_) == 1 and lines_[0].endswith("and 3 more)")
    assert not any(line.endswith("not known") for line in lines)


def test_the_windows_of_a_consistency_run(folders):
    lines, figures = screen.ended(folders["main"])
    assert row(lines, "load")[0] == "30.0" and row(lines, "fresh")[1] == "4\u202f000"
    assert row(lines, "steady")[:2] == ["10.0", "1\u202f000"]
    (load,) = [row for row in figures["rows"] if row["do"] == "load"]
    assert load["windows"]["steady"]["iops_mean"] == 1000


STEADY = {"power_mean_W": "2.500 ± 0.029", "energy_uJ_per_io": "2\u202f500 ± 29"}


@pytest.mark.usefixtures("short_loads_have_errors")
@pytest.mark.parametrize("width", [60, 100, 200])
def test_each_figure_has_its_stated_error_at_every_width(folders, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    figures = table.load(folders["main"]).rows[2].windows["steady"]
    assert {key: terms.with_error(figures[key], figures["errors"][key], 3) for key in STEADY} == STEADY
    many = [one for _, one in summary.of_folders([folders["main"]] * 5)]
    shown = {
        "ended": "\n".join(screen.ended(folders["main"])[0]),
        "few": screen.short_table(many[:2]),
        "many": screen.short_table(many),
        "brief": "\n".join(screen.brief([folders["main"]] * 2, 1)),
    }
    for name, text in shown.items():
        assert [value for value in STEADY.values() if value not in text] == [], (name, width)
        rows = [line for line in text.splitlines() if " ± " in line]
        assert rows and max(map(len, rows)) <= width, (name, width)


@pytest.fixture
def performed(folders, capsys):
    """performed(name, quiet, json) -> (stdout, stderr) of a run that came to this folder."""

    def perform(name, quiet=False, json_=False, folder=None, exit_code=0):
        end = {"state": "complete", "why": None, "exit_code": 0}
        args = SimpleNamespace(json=json_, jsonl=False)
        _, code = run.performed(args, Progress(quiet), lambda *more: (folder or folders[name], end))
        assert code == exit_code
        return capsys.readouterr()

    return perform


def test_the_end_of_a_run_prints_them(performed, folders):
    out, err = performed("steps", json_=True)
    assert json.loads(out)["figures"] == json.loads(json.dumps(screen.ended(folders["steps"])[1]))
    assert "  clean " in err and err.index("  clean ") < err.index("complete: all steps done")
    assert performed("steps", quiet=True) == ("", "")


def test_figures_that_cannot_be_had_are_not_the_runs_fault(performed, tmp_path):
    out, err = performed("none", json_=True, folder=tmp_path)
    assert json.loads(out)["figures"] is None and "figures: not to be had, " in err


@pytest.fixture
def old_handlers():
    """Handlers of signals that end the test, so that one that is not held fails it and leaves pytest alive."""

    def escaped(number, _frame):
        raise AssertionError(f"signal {number} was not held")

    before = {number: signal.signal(number, escaped) for number in SIGNALS}
    yield
    for number, handler in before.items():
        assert signal.signal(number, handler) is escaped


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("where", ["ended", "write", "print"])
def test_a_signal_during_the_last_figures_leaves_the_last_line(performed, monkeypatch, old_handlers, number, where):
    """The last line is owed to the script that reads it; a series of runs goes no further."""
    hurry = 3 if where == "print" else 1

    def signalled(call):
        def calls(*args, **keys):
            for _ in range(hurry):
                os.kill(os.getpid(), number)
            return call(*args, **keys)

        return calls

    at = {"ended": (screen, "ended"), "write": (report, "write"), "print": (run, "_print")}[where]
    monkeypatch.setattr(*at, signalled(getattr(*at)))
    out, err = performed("steps", json_=True, exit_code=130)
    (line,) = out.splitlines()
    document = json.loads(line)
    assert document["state"] == "complete" and (document["figures"] is None) is (where != "print")
    assert document["exit_code"] == (0 if where == "print" else 130)
    assert "complete: all steps done" in err


def test_a_signal_behind_an_interrupted_run_hurries_its_figures_only(folders, monkeypatch, capsys, old_handlers):
    """The signal that stopped the run, another during its teardown, and a third: each is counted, one raises."""

    def stopped(args, show, stop, teardown):
        teardown.push("a duty", lambda: None)
        with stop.held():
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGTERM)
        return folders["steps"], {"state": "interrupted", "why": "stopped by SIGTERM", "exit_code": 130}

    ended = screen.ended

    def slow(folder):
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGTERM)
        return ended(folder)

    monkeypatch.setattr(screen, "ended", slow)
    _, code = run.performed(SimpleNamespace(json=True, jsonl=False), Progress(True), stopped)
    document = json.loads(capsys.readouterr().out)
    assert code == document["exit_code"] == 130 and document["figures"] is None and document["state"] == "interrupted"


def test_a_signal_while_runs_are_compared_leaves_the_last_line(folders, monkeypatch, capsys, old_handlers):
    monkeypatch.setattr(screen, "repeated", lambda folders: os.kill(os.getpid(), signal.SIGINT))
    args = SimpleNamespace(json=True, jsonl=False)
    assert run._repeated([folders["steps"]] * 2, args, Progress(True)) == 130
    assert json.loads(capsys.readouterr().out)["spread"] is None
