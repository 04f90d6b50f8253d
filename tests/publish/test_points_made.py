"""Points of a run that has ended are made once and for all, and quickly."""

import json

import pytest
import synthetic_run
from fake_influx import FakeInflux
from point_runs import IOPS, POINTS, emit, made, read, run  # noqa: F401  fixtures

from ssdrig.base.progress import Progress
from ssdrig.publish.influx import made as mark
from ssdrig.publish.influx import points, push
from ssdrig.publish.influx import sender as influx

pytestmark = pytest.mark.keeps_time


def pushed(run, fake):
    return push.push(run, influx.target(fake.url, {}), False, 20, Progress(quiet=True))


def emitted(run, ended):
    with points.Emitter(run, ended) as emitter:
        emitter.step(True)
    return (run / POINTS).read_bytes()


def test_points_made_at_the_end_are_those_of_a_follower(made, tmp_path):
    """The same points; power within what the error of the clock lets differ: a sample more or less in a second."""
    whole = synthetic_run.write(tmp_path / "a", IOPS * 4, name="one")
    live, late = read(emit(synthetic_run.write(tmp_path / "b", IOPS * 4, name="one"))), read(emitted(whole, True))
    assert json.loads((whole / "points.made").read_text())["turn_s"] == mark.ENDED_S > 1
    at = {(m, tags, t): fields for m, tags, fields, t in live}
    assert {(m, tags, t) for m, tags, _, t in late} == set(at) and len(late) == len(live)
    for m, tags, fields, t in late:
        if m not in ("power", "drive_power"):
            assert fields == at[m, tags, t]
            continue
        assert abs(fields["samples"] - at[m, tags, t]["samples"]) <= 1
        assert fields["energy_J"] == pytest.approx(at[m, tags, t]["energy_J"], rel=1e-3)
    assert sum(f["samples"] for m, _, f, _ in late if m == "power") == sum(
        f["samples"] for m, _, f, _ in live if m == "power"
    )


@pytest.mark.parametrize("keep", [0.3, 0.9])
def test_what_a_power_cut_left_of_them_is_taken_up(made, tmp_path, keep):
    folder = synthetic_run.write(tmp_path, IOPS * 4, name="one")
    whole = emitted(folder, True)
    (folder / POINTS).write_bytes(whole[: int(len(whole) * keep)])
    assert emitted(folder, False) == whole, "made anew they are other lines"


def test_a_run_that_was_made_whole_is_only_sent(run, monkeypatch):
    with FakeInflux() as fake, FakeInflux() as other:
        first = pushed(run, fake)
        assert first.pending == 0 and mark.whole(run)
        monkeypatch.setattr(points.Emitter, "step", lambda *_, **__: pytest.fail("made again"))
        assert pushed(run, fake) == first and len(fake.seen) == 1
        assert pushed(run, other) == first and other.stored == fake.stored


def test_what_comes_to_the_run_afterwards_is_made_too(run):
    with FakeInflux() as fake:
        first = pushed(run, fake)
        events = (run / "events.jsonl").read_bytes()
        (run / "events.jsonl").write_bytes(events + events.splitlines(keepends=True)[3])
        assert mark.whole(run) is None
        assert pushed(run, fake).lines == first.lines + 1


@pytest.mark.parametrize(
    "content", ["", "[]", '{"schema": 1, "turn_s": 1, "whole": null}', '{"schema": 2, "turn_s": 7}']
)
def test_lines_of_another_schema_are_made_anew(run, content):
    whole = emit(run)
    (run / POINTS).write_bytes(b"power,run=r,kind=old p_mean_W=1 5\n" + whole)
    (run / "points.cursor").write_text("{}")
    (run / "points.made").write_text(content)
    assert emit(run) == whole and not (run / "points.cursor").exists()


@pytest.mark.parametrize("harm", ["shorter", "longer", "bytes", "whole"])
def test_a_mark_that_does_not_fit_is_not_believed(run, harm):
    whole = emit(run)
    document = json.loads((run / "points.made").read_text())
    if harm == "shorter":
        (run / POINTS).write_bytes(whole[:-50])
    elif harm == "longer":
        (run / POINTS).write_bytes(whole + b"power,run")
    else:
        document["whole"] = 5 if harm == "whole" else document["whole"] | {"bytes": 7}
        (run / "points.made").write_text(json.dumps(document))
    with FakeInflux() as fake:
        pushed(run, fake)
        assert (run / POINTS).read_bytes() == whole and len(fake.stored) == len(whole.splitlines())


def test_an_unreadable_run_is_no_whole_one(tmp_path):
    assert mark.whole(tmp_path) is None
