"""reduced.py against the plain formulas of power.py and rails.py on all samples at once, whatever a stream has: equal
numbers, times and extremes, energies but for rounding."""

import json

import numpy as np
import plain_rails
import pytest
import stream
from sample_tapes import W, broken_tape
from test_calibration import line_of
from test_rails import interleaved_tape
from test_summary import same

from ssdrig.base.errors import RigError
from ssdrig.meter import pieces, rails, reduced, samples, wire
from ssdrig.runs import journal, rigbin

S = 10**9


@pytest.fixture(params=[1, 7, 500])
def at_once(request, monkeypatch):
    """Frames in a piece."""
    monkeypatch.setattr(pieces, "FRAMES_AT_ONCE", request.param)


def edges_of(powers) -> np.ndarray:
    """Seconds from before the first sample to behind the last; and samples of each rail, one in so many, at both sides
    of gaps and at the ends, with the nanoseconds around each: edges that lie on the borders of pieces."""
    there = [power for power in powers if len(power.t_ns)]
    first, last = min(p.t_ns[0] for p in there), max(p.t_ns[-1] for p in there)
    edges = [np.arange(first - 2 * S, last + 3 * S, S)]
    for power in there:
        chosen = [power.t_ns[::350], power.t_ns[49::350], power.t_ns[[0, -1]], power.gaps.from_ns, power.gaps.to_ns]
        edges += [
            np.concatenate(chosen)[:, None].repeat(3, 1).ravel() + np.resize([-1, 0, 1], 3 * sum(map(len, chosen)))
        ]
    return np.unique(np.concatenate(edges))


def assert_equal(run) -> list[reduced.Reduced]:
    plain = samples.load_rails(run)
    edges = edges_of(plain)
    reduced_rails = reduced.load_rails(run, edges[::-1])
    joules = max(1.0, *(abs(p.energy_J).max(initial=0.0) for p in plain))
    seconds = reduced.seconds_with_samples(run)
    assert_same_compiled(run, edges, reduced_rails)
    assert [of.tolist() for of in seconds] == [np.unique(power.t_ns // S).tolist() for power in plain]
    close = {"rel": 1e-9, "abs": 1e-12 * joules}
    for p, r in zip(plain, reduced_rails, strict=True):
        assert (r.rail, r.name, r.span_ns, r.counts) == (p.rail, p.name, p.span_ns, p.counts)
        if p.span_ns is None:
            assert not r.before.any() and rails.dark(r).tolist() == rails.dark(p).tolist()
            continue
        cuts = np.searchsorted(p.t_ns, edges)
        assert r.samples_before(edges).tolist() == cuts.tolist()
        assert r.clipped_before(edges).tolist() == np.searchsorted(p.clipped, cuts).tolist()
        assert r.integral_J(edges) == pytest.approx(p.integral_J(edges), **close)
        worst = [float(p.err_ns[a:z].max(initial=0.0)) for a, z in zip(cuts[:-1], cuts[1:], strict=True)]
        assert r.largest_error_ns(edges).tolist() == worst
        low, high = ([f(p.P[a:z]) if z > a else np.nan for a, z in zip(cuts[:-1], cuts[1:])] for f in (np.min, np.max))
        assert np.array_equal(r.extremes_W(edges), [low, high], equal_nan=True)
        for ours, theirs in zip(r.gaps, p.gaps, strict=True):
            assert ours == pytest.approx(theirs, **close)
        assert (r.mean_V, r.energy_filled_J) == pytest.approx((p.mean_V, p.energy_filled_J), rel=1e-9)
        assert r.facts == p.facts and (r.closure is None) == (p.closure is None)
        if p.closure:
            assert vars(r.closure) == pytest.approx(vars(p.closure), rel=1e-6, abs=1e-6)
            assert r.closure.instead == p.closure.instead
        assert rails.dark(r).tolist() == rails.dark(p).tolist()
    if all(len(p.t_ns) for p in plain):  # the sum of all rails, by steps of which one may have no cell
        t_ns, watts = plain_rails.grid(plain)
        inside = [watts[(t_ns >= a) & (t_ns < z)] for a, z in zip(edges[:-1], edges[1:])]
        inside = [w[np.isfinite(w)] for w in inside]
        low, high = ([f(w) if len(w) else np.nan for w in inside] for f in (np.min, np.max))
        assert np.array(reduced_rails[0].extremes_W(edges, of_sum=True)) == pytest.approx(
            np.array([low, high]), rel=1e-6, nan_ok=True
        )
    return reduced_rails


def assert_same_compiled(run, edges, reduced_rails):
    """What the compiled code says is the same to the last bit, but for a mean."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "COMPILED_SAMPLES", 0)
        patch.setattr(journal, "LONG_BYTES", 0)
        compiled = reduced.load_rails(run, edges)
    for one, other in zip(reduced_rails, compiled, strict=True):
        assert other.mean_V == pytest.approx(one.mean_V, rel=1e-12, nan_ok=True)
        other.mean_V = one.mean_V
        plain, ours = (
            vars(of) | {"own_W": vars(of.own_W), "sum_W": vars(of.sum_W), "near": None} for of in (one, other)
        )
        assert {key for key in plain if not same(plain[key], ours[key])} == set()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_losses_resets_and_a_second_go(tmp_path, seed, at_once):
    rails = assert_equal(broken_tape(np.random.default_rng(seed)).run(tmp_path))
    assert len(rails[0].gaps.at) > 5 and rails[0].counts["resets"] == 1


@pytest.mark.slow
def test_several_rails(tmp_path, at_once):
    watts = (lambda t: 2.0 + t % 0.3, lambda t: 3.0 + t % 0.7, lambda t: 1.0)
    tape = interleaved_tape(4, watts, periods_us=(740, 1000, 930), gone=(1.5, 2.7), missed={(2, 30), (0, 44), (0, 45)})
    rails = assert_equal(tape.run(tmp_path))
    assert len(rails) == 3 and rails[1].gaps.ns.max() > S


def test_a_rail_that_never_sent_anything(tmp_path):
    tape = stream.started(rails=(0, 3))
    tape.stream(60)
    rails = assert_equal(tape.run(tmp_path))
    assert [one.span_ns is None for one in rails] == [False, True]
    assert np.isnan(rails[0].extremes_W(rails[0].edges_ns, of_sum=True)).all()


@pytest.mark.slow
def test_configurations_calibrations_limits_and_negative_currents(tmp_path, at_once):
    """A new configuration in the middle that is calibrated; readings below zero and at the register's end; the chip's
    accumulator twice in each segment; frames that no hello explains."""
    hello = json.loads(stream.hello(configs=(0, 1)))
    hello["rails"][1] |= {"current_lsb_pA": 4 * stream.CURRENT_LSB_PA}
    hello["rails"][1]["calibration"] = {"V": line_of(1.02, 0.1), "I": line_of(0.98, -0.001)}
    tape = stream.started()

    def closing(index, config):
        tape.frame(wire.ENERGY, stream.energy(index, tape.t_us, index * 1e-3, config=config))

    for config in (0, 1):
        index = tape.stream(10, current=2 * W, config=config)
        closing(index, config)
        index = tape.stream(10, first_index=index, current=-W // 2, config=config)
        index = tape.stream(3, first_index=index, current=(1 << 19) - 1, config=config)
        index = tape.stream(2, first_index=index, config=9)
        index = tape.stream(10, first_index=index, lose=[4], config=config)
        closing(index, config)
        tape.frame(wire.HELLO, json.dumps(hello).encode())
    (rail,) = assert_equal(tape.run(tmp_path))
    assert rail.closure and rail.counts["unconverted"] == 200 and rail.clipped[-1] == 300


@pytest.mark.slow
def test_a_boot_without_pings(tmp_path, at_once):
    tape = broken_tape(np.random.default_rng(1))
    tape.rows = [row for row in tape.rows if row[0] != rigbin.PING]
    assert_equal(tape.run(tmp_path))


def test_a_single_sample(tmp_path):
    tape = stream.started()
    tape.stream(1, n=1)
    assert_equal(tape.run(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_nonsense_with_a_good_checksum(tmp_path, seed, monkeypatch):
    """As test_samples.py has it: whatever the plain formulas make of it, the same comes out in pieces."""
    monkeypatch.setattr(pieces, "FRAMES_AT_ONCE", 3)
    dice = np.random.default_rng(seed)
    tape = broken_tape(dice)
    rows = []
    for kind, payload, t_ns in tape.rows:
        fate = dice.random()
        if fate < 0.1:
            at = int(dice.integers(len(payload)))
            payload = payload[:at] + dice.bytes(1) + payload[at + 1 :]
        elif fate < 0.12:
            payload = payload[: int(dice.integers(len(payload)))]
        rows += [] if 0.14 < fate < 0.2 else [(kind, payload, t_ns)] * (1 + (fate > 0.97))
    tape.rows = rows
    assert_equal(tape.run(tmp_path))


@pytest.mark.parametrize("rails_of", [(0,), (0, 1)])
def test_the_highest_power_around_edges_that_may_be_off(tmp_path, rails_of):
    """As all samples at once have it, of one rail and of the sum of two."""
    tape = stream.started(rails=rails_of)
    dice = np.random.default_rng(len(rails_of))
    for _ in range(40):
        at_us = tape.t_us
        for rail in rails_of:
            tape.t_us = at_us
            tape.stream(1, current=int(dice.integers(5_000, 50_000)), rail=rail)
    run = tape.run(tmp_path)
    plain = samples.load_rails(run)
    t_ns, watts = (plain[0].t_ns, plain[0].P) if len(plain) == 1 else plain_rails.grid(plain)
    step_ns = (int(t_ns[-1]) - int(t_ns[0])) // 7
    edges = int(t_ns[0]) + 10 + step_ns * np.arange(1, 6)
    near = reduced.load_rails(run, edges, timed=reduced.Asked.of(edges, step_ns / 5))[0].near
    off_ns = near.error_ns
    assert (off_ns > step_ns / 5).all() and (off_ns < step_ns / 2).all()

    def highest(from_ns, to_ns):
        of = [watts[(t_ns >= a) & (t_ns < z)] for a, z in zip(from_ns, to_ns, strict=True)]
        return [w[np.isfinite(w)].max() for w in of]

    steps = {
        "before_W": (edges - off_ns, edges),
        "after_W": (edges, edges + off_ns),
        "since_W": (edges[:-1] + off_ns[:-1], edges[1:]),
        "until_W": (edges[:-1], edges[1:] - off_ns[1:]),
    }
    for name, span in steps.items():
        assert getattr(near, name)(edges) == pytest.approx(np.array(highest(*span)), rel=1e-6), name


def test_other_edges_are_refused(tmp_path):
    tape = stream.started()
    tape.stream(20)
    (rail,) = reduced.load_rails(tape.run(tmp_path), [stream.T0_NS, stream.T0_NS + S])
    assert rail.integral_J([]).tolist() == [] and rail.extremes_W([stream.T0_NS])[0].tolist() == []
    for edges in ([stream.T0_NS + 1], [stream.T0_NS, stream.T0_NS + S + 1]):
        with pytest.raises(ValueError, match="not reduced to these edges"):
            rail.integral_J(edges)


def test_without_samples_and_without_edges(tmp_path):
    with pytest.raises(RigError, match="frames without any"):
        reduced.load_rails(stream.started(rails=(0, 1)).run(tmp_path), [])
    tape = stream.started()
    tape.stream(20)
    (rail,) = reduced.load_rails(tape.run(tmp_path / "more"), [])
    assert rail.span_ns and rail.mean_V == pytest.approx(5.0)


def test_a_file_that_becomes_shorter_is_said(tmp_path, monkeypatch):
    tape = stream.started()
    tape.stream(20)
    run, read = tape.run(tmp_path), samples.decoded

    def cut_behind(*args):
        numbers = read(*args)
        with open(run / "rig.bin", "r+b") as file:
            file.truncate(500)
        return numbers

    monkeypatch.setattr(samples, "decoded", cut_behind)
    with pytest.raises(RigError, match="become shorter"):
        reduced.load_rails(run, [])


def test_a_run_without_the_file_is_said(tmp_path):
    run = stream.started().run(tmp_path)
    (run / "rig.bin").unlink()
    with pytest.raises(RigError, match="0 frames without any"):
        reduced.load_rails(run, [])
