"""reading/course.py: the load that a run is about, and whether it came to its end."""

import pytest
import synthetic_plan
import synthetic_run

from ssdrig.reading import course, table, whole_run

STOPPED = {"ok": False, "why": "it broke"}


def ended(tmp_path, state, ok, rule="never"):
    """Such a run, whose load of 60 s ended after 20 s with `ok` (None: it did not end)."""
    folder = synthetic_run.write(tmp_path, [4000] * 20, zoom_s=2, state=state, power=False)
    header, events = synthetic_run.journal_of(folder)
    header["plan"]["params"] |= {"time": "60 s", "rule": rule}
    load = [event for event in events if event["kind"] == "step.end" and event["step"] == "load"]
    for event in load:
        event |= {"ok": ok} if ok else STOPPED
    remaining = [event for event in events if ok is not None or event not in load]
    synthetic_run.put(folder, header, remaining)
    return table.in_full(folder).figures["windows"]["all"]


@pytest.mark.parametrize(
    ("state", "ok", "rule", "times"),
    [
        ("complete", True, "never", "0–20 s"),
        ("failed", True, "never", "0–20 s"),  # something later went wrong
        ("failed", False, "never", "0–20 s of 60 s: cut short"),
        ("interrupted", False, "pts", "0–20 s of at most 60 s: cut short"),
        (None, None, "never", "0–20 s of 60 s: cut short"),
    ],
)
def test_a_load_that_did_not_come_to_its_end_is_not_called_whole(tmp_path, state, ok, rule, times):
    figures = ended(tmp_path, state, ok, rule)
    how = times.partition(": ")[2] or None
    assert (figures["label"], figures["unfinished"]) == (f"{'load' if how else 'whole load'}, {times}", how)


def test_the_load_of_a_run_is_its_longest(tmp_path):
    """Of the steps outside repeats; of a plan that has none, of the points."""
    steps, grid = table.load(synthetic_plan.steps(tmp_path / "s")), table.load(synthetic_plan.grid(tmp_path / "g"))
    assert whole_run.principal(steps).act.path in ("clean", "after")
    assert whole_run.principal(grid).act.path == "rounds/point"
    assert whole_run.longest([]) is None


@pytest.mark.parametrize("make", [synthetic_plan.steps, synthetic_plan.grid])
def test_the_load_of_any_plan_is_read_in_full(tmp_path, make):
    data, figures, _ = table.in_full(make(tmp_path), samples=True)
    assert len(data.iops) >= 2 and set(figures) == set(course.KEYS)
    ((words, t_s, _),) = data.moments
    assert words == "all" and len(t_s) == pytest.approx(len(data.iops) * 1005, rel=0.02)
    assert data.lat_in_window["all"].sum() == data.iops.sum() and len(data.fine_mean_W)


def test_a_run_without_a_load_has_figures_of_none(tmp_path):
    folder = synthetic_plan.Writer(tmp_path, synthetic_plan.STEPS)
    folder.step("trim", 1.0)
    course = table.in_full(folder.end())
    assert course.figures["iops_mean"] is None and set(course.figures["windows"].values()) == {None}
    assert not len(course.data.iops)
