"""A follower of a run that is being written: the same samples and seconds, however they come."""

import numpy as np
import pytest
import stream
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_tapes import broken_tape

from ssdrig.meter import samples, wire


@pytest.mark.slow
@given(seed=st.integers(0, 1000), pieces=st.integers(1, 60), final_only=st.booleans())
@settings(max_examples=15, deadline=None)
def test_a_follower_gives_the_same_however_it_is_fed(tmp_path_factory, seed, pieces, final_only):
    """Same seconds, same numbers, read at once or in any pieces: a restarted follower repeats itself exactly."""
    dice = np.random.default_rng(seed)
    tape = broken_tape(dice)
    run = tape.run(tmp_path_factory.mktemp("follow"))
    file = run / "rig.bin"
    data = file.read_bytes()
    at_once = list(samples.Follower(run).seconds(final=True))
    file.write_bytes(b"")
    follower, rows = samples.Follower(run), []
    for cut in sorted([*dice.integers(0, len(data), pieces - 1).tolist(), len(data)]):
        file.write_bytes(data[:cut])  # also in the middle of a record
        rows += [] if final_only else list(follower.seconds())
    rows += list(follower.seconds(final=True))
    assert rows == at_once
    p = samples.load(run)
    assert sum(s.samples for _, s in rows) == len(p.t_ns)
    assert [s.t_ns for _, s in rows] == sorted({s.t_ns for _, s in rows})
    assert sum(s.energy_J for _, s in rows) == pytest.approx(p.energy_measured_J + p.energy_filled_J, rel=0.2)


def test_a_follower_agrees_with_the_whole_run(tmp_path):
    tape = stream.started()
    tape.stream(200, lose=(33, 90))
    run = tape.run(tmp_path)
    rows = [s for _, s in samples.Follower(run).seconds(final=True)]
    whole = samples.per_second(samples.load(run), rows[0].t_ns, len(rows))
    assert [s.samples for s in rows] == whole.samples.tolist()
    assert [s.lost for s in rows] == whole.lost.tolist() and sum(s.lost for s in rows) == 100
    assert [s.energy_J for s in rows] == pytest.approx(whole.energy_J.tolist(), abs=1e-5)
    assert [s.p_mean_W for s in rows] == pytest.approx(whole.p_mean_W.tolist(), rel=1e-12)


def test_a_follower_waits_until_a_second_has_settled(tmp_path):
    tape = stream.started()
    tape.stream(60)
    run = tape.run(tmp_path)
    follower = samples.Follower(run)
    early = [s.t_ns for _, s in follower.seconds()]
    late = [s.t_ns for _, s in follower.seconds(final=True)]
    first = stream.T0_NS // 10**9 * 10**9
    assert (
        early == [first]
        and late == [first + 10**9, first + 2 * 10**9, first + 3 * 10**9][: len(late)]
        and len(late) >= 2
    )
    assert list(follower.seconds(final=True)) == []


def test_a_hello_that_comes_late_holds_the_follower_up_but_loses_nothing(tmp_path):
    tape = stream.started()
    tape.stream(60)
    tape.stream(20, first_index=3000, config=1)
    tape.frame(wire.HELLO, stream.hello(configs=(0, 1)))
    tape.stream(100, first_index=4000, config=1)
    run = tape.run(tmp_path)
    rows = [s for _, s in samples.Follower(run).seconds(final=True)]
    assert sum(s.samples for s in rows) == 9000 and sum(s.lost for s in rows) == 0


def test_a_hello_that_never_comes_does_not_stop_the_follower(tmp_path):
    tape = stream.started()
    tape.stream(60)
    tape.stream(20, first_index=3000, config=9)
    tape.stream(400, first_index=4000)
    rows = [s for _, s in samples.Follower(tape.run(tmp_path)).seconds(final=True)]
    assert sum(s.samples for s in rows) == 23_000 and sum(s.lost for s in rows) == 1000
