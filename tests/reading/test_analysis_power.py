"""The rig's part of a run on the run's axis, from rails made by hand: watts, idle and fill, and what is said."""

from types import SimpleNamespace

import numpy as np
import pytest
from test_analysis_events import SECOND, event, run
from test_window_figures import FACTS, exactly

from ssdrig.base.errors import RigError
from ssdrig.meter import rails, reduced, uncertainty
from ssdrig.meter.power import Closure, Gaps
from ssdrig.reading import power as part
from ssdrig.reading.rundata import NearEdges


def closure(**more) -> Closure:
    return Closure(**dict.fromkeys(("raw_percent", "corrected_percent", "host_J", "chip_J", "seconds"), 0.0), **more)


def rail(number=0, watts=2.0, until_s=1000.0, **more) -> SimpleNamespace:
    """A rail of constant power until `until_s` of the axis."""
    made = {
        "rail": number,
        "name": f"r{number}",
        "watts": watts,
        "until_ns": round((until_s + 1) * SECOND),
        "span_ns": (SECOND, SECOND),
        "mean_V": 5.0,
        "facts": FACTS,
        "closure": closure(chip_clock_ppm=0.0, resolution_percent=0.0),
        "fast": None,
        "counts": {"unconverted": 0},
        "energy_filled_J": 0.0,
        "gaps": Gaps(*[np.empty(0, np.int64)] * 6),
        "samples_before": lambda edges_ns: np.arange(len(edges_ns)),
        "clipped_before": lambda edges_ns: np.zeros(len(edges_ns), int),
        "edges": lambda t_ns: uncertainty.Edges(np.asarray(t_ns), np.zeros(len(t_ns)), np.zeros((len(t_ns), 9))),
        "largest_error_ns": lambda edges_ns: np.full(len(edges_ns) - 1, 5.0),
        "scatters_W": lambda edges_ns: np.zeros((2, len(edges_ns) - 1)),
        "lows": lambda edges_ns: np.zeros((2, len(edges_ns) - 1)),
        "near": SimpleNamespace(**dict.fromkeys(NearEdges._fields, lambda edges_ns: np.full(len(edges_ns), np.nan))),
        "lost": [],
        "clipped_in": lambda begin_ns, end_ns: (0, 100),
    }
    return SimpleNamespace(**made | more)


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """A function that reads a run of 3 s with these rails; arithmetic of constant power stands in for rails.py."""

    def known(powers, edges_ns):
        return np.array([all(end <= p.until_ns for p in powers) for end in np.asarray(edges_ns)[1:]])

    def steps(powers, edges):
        energies_J = sum(p.watts for p in powers) * np.diff(edges) / SECOND
        return np.where(known(powers, edges), energies_J, np.nan)

    def energy(powers, begin_ns, end_ns):
        if not known(powers, [begin_ns, end_ns]).all():
            return None
        return sum(p.watts for p in powers) * (end_ns - begin_ns) / SECOND

    def extremes(powers, edges_ns):
        assert edges_ns[0] == SECOND and (np.diff(edges_ns) == edges_ns[1] - edges_ns[0]).all()
        watts, step_s = sum(p.watts for p in powers), np.diff(edges_ns) / SECOND
        return watts - step_s, watts + step_s

    for name, stand_in in (
        ("known", known),
        ("steps_J", steps),
        ("energy_J", energy),
        ("losses", lambda power: power.lost),
        ("uncertainty_W", lambda powers, span_ns, watts: 0.01 * sum(watts)),
    ):
        monkeypatch.setattr(rails, name, stand_in)
    monkeypatch.setattr(reduced, "extremes_W", extremes)

    def load(*powers, events=(), k=1, rig=True, n=3, t0_ns=SECOND):
        def load_rails(path, edges_ns, heads, watch, timed):
            if not powers:
                raise RigError("samples", "none", "look")
            steps = [e["t_ns"] for e in data.events if e.get("step") == "idle"]
            assert {7} <= {*edges_ns.tolist()} and edges_ns.dtype == np.int64
            assert {*(steps if len(steps) == 2 else ())} <= {*timed.t_ns.tolist()}
            return list(powers)

        monkeypatch.setattr(reduced, "load_rails", load_rails)
        data = run(list(events), k=k, t0_ns=t0_ns)
        data.header["rig"] = {} if rig else None
        data.iops = np.zeros(n)
        steps = [e["t_ns"] for e in data.events if e.get("step") == "idle"]
        edges = steps if len(steps) == 2 else []
        asked = reduced.Asked.of(np.array(edges, np.int64))
        powers_of = part.read_powers(data, tmp_path, np.array([7]), timed=asked)
        part.on_grid(data, powers_of)
        rest = part.rest(data, powers_of, edges)
        data.idle_mean_W, data.idle_uncertainty_W = rest.mean_W, rest.uncertainty_W
        for of, watts in zip(data.rails, rest.of_rails, strict=False):
            of.idle_mean_W = watts
        return data

    return load


def test_without_a_rig_or_samples_power_is_not_known(loaded):
    data = loaded(rail(), rig=False)
    assert data.notes == ["power: not measured, the run had no rig"] and data.rails == []
    assert np.isnan(data.energy_J).all() and len(data.energy_J) == 3
    data = loaded()
    assert len(data.notes) == 1 and data.notes[0].startswith("power: ") and np.isnan(data.power_max_W).all()


@pytest.mark.parametrize("k", [1, 2])
def test_energy_of_a_second_of_drive_time(loaded, k):
    """A second of a drive that is dilated twice takes two of the host's, and half of the energy of both."""
    data = loaded(rail(), k=k)
    assert data.energy_J.tolist() == data.power_mean_W.tolist() == [2, 2, 2]
    assert (data.power_min_W.tolist(), data.power_max_W.tolist()) == ([2 - k] * 3, [2 + k] * 3)
    (only,) = data.rails
    assert only.power_mean_W is data.power_mean_W and only.power_max_W is data.power_max_W
    assert data.notes == [] and data.closure is not None and (only.facts, only.volts_V) == (FACTS, 5.0)


@pytest.mark.parametrize("k", [1, 2])
def test_each_rail_has_its_own(loaded, k):
    data = loaded(rail(0, 2.0), rail(1, 3.0, until_s=2.0 * k), k=k)
    assert data.energy_J[:2].tolist() == [5, 5] and np.isnan(data.energy_J[2])
    assert data.rails[0].power_mean_W.tolist() == [2, 2, 2]
    assert data.rails[1].power_mean_W[:2].tolist() == [3, 3] and np.isnan(data.rails[1].power_mean_W[2])
    assert [rail.power_max_W.tolist() for rail in data.rails] == [[2 + k] * 3, [3 + k] * 3]


def test_a_run_without_a_load_has_rails_and_idle_power(loaded):
    steps = [event(-9, "step.start", step="idle"), event(-5, "step.end", step="idle")]
    data = loaded(rail(), t0_ns=None, events=steps)
    assert np.isnan(data.energy_J).all() and len(data.rails) == 1 and data.idle_mean_W == 2.0


IDLE = [event(-9, "step.start", step="idle"), event(-5, "step.end", step="idle")]


@pytest.mark.parametrize("k", [1, 2])
def test_idle_power(loaded, k):
    data = loaded(rail(0, 2.0), rail(1, 3.0), k=k, events=IDLE)
    assert (data.idle_mean_W, data.idle_uncertainty_W) == (5.0, exactly(0.05))
    assert [rail.idle_mean_W for rail in data.rails] == [2.0, 3.0] and data.notes == []


@pytest.mark.parametrize(
    "events", [[], IDLE[:1], [*IDLE, IDLE[1]], [event(1, "step.start", step="load"), event(2, "step.end", step="load")]]
)
def test_without_a_whole_idle_step_there_is_no_idle_power(loaded, events):
    data = loaded(rail(), events=events)
    assert data.idle_mean_W is data.idle_uncertainty_W is None and data.notes == []


def test_idle_power_of_a_rail_that_is_dark(loaded):
    data = loaded(rail(0), rail(1, until_s=-6), events=IDLE)
    assert data.idle_mean_W is None and [r.idle_mean_W for r in data.rails] == [2.0, None]
    words = "idle_mean_W: power samples do not cover the idle step"
    assert data.notes == [f"{words} of rail 1 (r1), so the sum is not known there"]
    assert loaded(rail(0, until_s=-6), events=IDLE).notes == [words]


def test_an_idle_step_that_took_no_time_has_no_power(loaded):
    data = loaded(rail(), events=[event(-5, "step.start", step="idle"), event(-5, "step.end", step="idle")])
    assert data.idle_mean_W is data.rails[0].idle_mean_W is None


def test_idle_samples_at_the_sensors_limit_have_no_uncertainty(loaded):
    at_limit = rail(1, clipped_in=lambda begin_ns, end_ns: (3, (end_ns - begin_ns) // SECOND))
    data = loaded(rail(0), at_limit, events=IDLE)
    assert data.idle_mean_W == 4.0 and data.idle_uncertainty_W is None
    bounds = "energy, mean and peaks there are lower bounds"
    assert data.notes == [f"power: 3 of 4 samples of the idle step of rail 1 (r1) are at the sensor's limit: {bounds}"]
    data = loaded(at_limit, events=IDLE)
    assert data.notes == [f"power: 3 of 4 samples of the idle step are at the sensor's limit: {bounds}"]


def test_an_uncertainty_without_end_is_none(loaded, monkeypatch):
    monkeypatch.setattr(rails, "uncertainty_W", lambda powers, span_ns, watts: np.inf)
    data = loaded(rail(), events=IDLE)
    assert data.idle_mean_W == 2.0 and data.idle_uncertainty_W is None


@pytest.mark.parametrize(("name", "words"), part.COUNTS.items())
def test_what_came_short_is_said(loaded, name, words):
    one, other = rail(0, counts={"unconverted": 0, name: 3}), rail(1, counts={"unconverted": 0, name: 4})
    assert loaded(rail(), other).notes == ([f"power: 4 {words}"] if name == "unconverted" else [])
    assert loaded(one, other).notes == [f"power: {7 if name == 'unconverted' else 3} {words}"]


def test_what_each_rail_lacks_is_said(loaded):
    lost = rail(
        1,
        closure=closure(chip_clock_ppm=0.0, resolution_percent=0.0, instead=6),
        lost=[(3 * SECOND, 5 * SECOND)],
        energy_filled_J=0.25,
    )
    of = " of rail 1 (r1)"
    data = loaded(rail(), lost)
    assert data.notes == [
        f"samples_lost: 6 conversions of the run{of} were given up to read the chip's accumulators",
        f"power: 0.25 J of the run{of} lie in gaps and were filled in by interpolation",
    ]
    assert data.marks == data.log == [(2.0, "no samples of rail 1 (r1) for 2.0 s")]
    assert loaded(lost).notes == [note.replace(of, "") for note in data.notes]
    odd = rail(1, facts=FACTS | {"chip": "?"}, closure=None)
    notes = [
        "power_uncertainty_percent of rail 1 (r1): the limits of chip ? are not known",
        "closure_percent: the rig sent fewer than two energy frames of one stretch of rail 1 (r1)",
    ]
    assert loaded(rail(), odd).notes == notes
    assert loaded(odd).notes == [note.replace(of, "") for note in notes]
    silent = rail(1, facts=FACTS | {"chip": "?"}, span_ns=None)
    data = loaded(rail(), silent)
    assert data.notes == [] and data.rails[1].facts is data.rails[1].volts_V is None
