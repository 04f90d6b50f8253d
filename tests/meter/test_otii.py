"""Channels as Otii 3 exports them, to the watts of a recording."""

import gzip

import numpy as np
import pytest

from ssdrig.base.errors import UsageError
from ssdrig.meter import otii


def channel(folder, name, rate, values, begin_s=0.0, device="Ace"):
    """A file as Otii 3 writes it: quoted headings, %.6f seconds, %.9g values."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name} - {device}.csv"
    rows = "".join(f"{begin_s + i / rate:.6f},{value:.9g}\n" for i, value in enumerate(values))
    path.write_text(f'"Timestamp","Value"\n{rows}')
    return path


def energy_J(rail):
    return float((rail.W[1:] * np.diff(rail.t_ns)).sum()) * 1e-9


def test_a_sample_of_current_holds_until_the_next_one(tmp_path):
    amperes = np.where(np.arange(4000) // 400 % 2, 0.3, 0.1)
    files = [
        channel(tmp_path, "Main current", 4000, amperes),
        channel(tmp_path, "Main voltage", 1000, np.full(1000, 5)),
    ]
    recording = otii.read(files)
    (rail,) = recording.rails
    assert (rail.name, recording.utc, recording.source) == ("Main", False, "Otii CSV (Ace)")
    assert rail.W.tolist() == pytest.approx((5 * amperes).tolist())
    assert (rail.t_ns[0], rail.t_ns[-1]) == (250_000, 1_000_000_000)  # each at the end of the time that it holds
    assert energy_J(rail) == pytest.approx(5 * 0.2 - 5 * 0.1 / 4000)  # without the first, whose time has no begin


def test_power_counts_before_current_times_voltage(tmp_path):
    files = [channel(tmp_path, "Main power", 1000, np.full(2000, 1.5))]
    files += [
        channel(tmp_path, "Main current", 1000, np.full(2000, 9)),
        channel(tmp_path, "Main voltage", 1000, [5] * 2000),
    ]
    (rail,) = otii.read(files).rails
    assert set(rail.W.tolist()) == {1.5} and set(rail.V.tolist()) == {5.0}


def test_the_voltage_that_was_held_is_taken(tmp_path):
    files = [
        channel(tmp_path, "Main current", 1000, np.ones(1000)),
        channel(tmp_path, "Main voltage", 10, range(1, 11)),
    ]
    (rail,) = otii.read(files).rails
    assert rail.V.tolist() == [1 + i // 100 for i in range(1000)]


def test_time_without_a_voltage_is_left_out_with_a_note(tmp_path):
    files = [channel(tmp_path, "Main current", 1000, np.ones(1000))]
    files += [channel(tmp_path, "Main voltage", 1000, np.full(400, 5), begin_s=0.3)]
    recording = otii.read(files)
    assert len(recording.rails[0].W) == 401 and any("599 samples" in note for note in recording.notes)


def test_a_fast_current_is_averaged_and_keeps_its_energy(tmp_path):
    watts = np.random.default_rng(3).uniform(0.5, 4, 50_000)
    (rail,) = otii.read([channel(tmp_path, "Main power", 50_000, watts)], 5.0).rails
    assert len(rail.t_ns) == 10_000 and rail.t_ns[-1] == 1_000_000_000
    assert rail.W.mean() == pytest.approx(watts.mean())


def test_rails_of_one_device_and_a_packed_file(tmp_path):
    files = [channel(tmp_path, name, 1000, [0.5] * 1500) for name in ("Main power", "ADC power")]
    packed = tmp_path / "packed" / files[0].name
    packed.parent.mkdir()
    packed = packed.with_name(packed.name + ".gz")
    packed.write_bytes(gzip.compress(files[0].read_bytes()))
    assert [rail.name for rail in otii.read([packed, files[1]], 5.0).rails] == ["Main", "ADC"]


def test_a_last_line_that_may_be_cut_is_left_out_with_a_note(tmp_path):
    power, volts = (
        channel(tmp_path, "Main power", 1000, [0.5] * 20),
        channel(tmp_path, "Main voltage", 1000, [5.0] * 20),
    )
    for path in (power, volts):
        path.write_text(path.read_text().rstrip()[:-1])
    seen = otii.read([power, volts])
    assert len(seen.rails[0].W) == 19 and len(seen.notes) == 2


@pytest.mark.parametrize(
    "names",
    [
        ("Main voltage",),
        ("Main current",),  # and no voltage
        ("UART logs", "Main power"),
        ("Sense+ voltage", "Main power"),
    ],
)
def test_channels_that_give_no_power_are_refused(tmp_path, names):
    with pytest.raises(UsageError):
        otii.read([channel(tmp_path, name, 1000, [5.0] * 100) for name in names])


def test_two_devices_or_one_channel_twice_are_refused(tmp_path):
    one = channel(tmp_path, "Main power", 1000, [1] * 100)
    for other in (
        channel(tmp_path, "Main power", 1000, [1] * 100, device="Arc"),
        channel(tmp_path / "b", "Main power", 1000, [1] * 100),
    ):
        with pytest.raises(UsageError):
            otii.read([one, other], 5.0)


@pytest.mark.parametrize("text", ["", '"Timestamp","Value"\n', '"Timestamp","Value"\n1,1\n0,1\n', "a,b\n1,2\n"])
def test_a_file_with_another_content_is_refused(tmp_path, text):
    path = channel(tmp_path, "Main power", 1000, [1] * 10)
    path.write_text(text)
    with pytest.raises(UsageError):
        otii.read([path], 5.0)
