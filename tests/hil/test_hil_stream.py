"""What the rig measures over an undisturbed stretch: its rates, losses, energy, clock; and what a host does to it that
does not read."""

import time

import pytest

from ssdrig.meter import wire

CHIPS = {"INA226", "INA228", "INA229"}
OSCILLATOR = 0.01  # of the sensor chips, at most off


def test_it_says_what_it_is(hello):
    assert hello["protocol"] == wire.PROTOCOL
    assert hello["rails"] and {rail["chip"] for rail in hello["rails"]} <= CHIPS
    assert len({rail["rail"] for rail in hello["rails"]}) == len(hello["rails"])
    assert ("SIMULATED" in hello["board"]) == hello["simulated"]


def test_each_rail_delivers_the_rate_that_it_is_configured_for(stretch):
    powers, _ = stretch
    for power in powers:
        asked = 1e9 / power.facts["conversion_ns"]
        got = float(power.index[-1] - power.index[0]) / float(power.t_ns[-1] - power.t_ns[0]) * 1e9
        assert got == pytest.approx(asked, rel=OSCILLATOR), (
            f"rail {power.rail}: {got:.1f} conversions a second, {asked:.1f} asked for"
        )


def test_nothing_is_lost(stretch, request):
    powers, live = stretch
    for power in powers:
        given_up = power.closure.instead if power.closure else 0
        assert power.lost <= given_up, (
            f"rail {power.rail}: {power.lost} conversions lost, {given_up} given up for the accumulators"
        )
        seconds = float(power.t_ns[-1] - power.t_ns[0]) * 1e-9
        assert seconds > request.config.getoption("--hil-seconds") - 1
    counts = powers[0].counts
    assert {name: counts[name] for name in ("frames_lost", "repeated", "malformed", "resets")} == dict.fromkeys(
        ("frames_lost", "repeated", "malformed", "resets"), 0
    )
    assert all(power.counts["unconverted"] == 0 for power in powers)
    assert live["damaged"] <= 1 and live["boots"] == 1  # the rest of what an earlier host was sent


def test_the_energy_closes(stretch):
    closures = []
    for power in stretch[0]:
        c = power.closure
        if power.facts["chip"] == "INA226":
            continue  # it has no accumulators
        assert c, f"rail {power.rail} sent no energy"
        if c.resolution_percent < 0.05:
            closures.append(power.rail)
            assert abs(c.corrected_percent) < 0.2, f"rail {power.rail}: {c}"
            assert abs(c.chip_clock_ppm) < 1e6 * OSCILLATOR
    if not closures:
        pytest.skip("no rail draws enough for the chip's own rounding not to matter: connect a load")


def test_the_clock_keeps_its_bound(stretch, request):
    powers, live = stretch
    assert live["pongs"] > 5 * request.config.getoption("--hil-seconds")
    for power in powers:
        assert float(power.err_ns.max()) < 1e6, "the bound of a sample's time is above 1 ms"
        assert abs(power.clocks[-1].rate_ppm()) < 150, "crystals of board and host are further apart than crystals are"


def test_a_host_that_does_not_read_costs_samples_that_are_counted(line, request):
    def missed() -> dict[int, int]:
        heads = [wire.struct.unpack_from(wire.SAMPLES_HEAD, body) for body in line.bodies(wire.SAMPLES)]
        return {rail: count for rail, _, _, count, _, _ in heads}

    line.go()
    line.until(line.samples)
    deaf_s = request.config.getoption("--hil-deaf")
    for longer in (1, 2, 4):  # a SIMULATED board that a busy host lets run late fills its buffers later
        time.sleep(longer * deaf_s)
        line.read(1.0)
        before = len(line.bodies(wire.SAMPLES))
        line.until(lambda before=before: len(line.bodies(wire.SAMPLES)) > before + 20)
        if all(missed().values()):
            break
    assert line.damaged == [], "a frame was torn"
    seqs = [seq for _, seq, _ in line.frames]
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs))), "a frame that was numbered did not come"
    rails = {}
    for body in line.bodies(wire.SAMPLES):
        rail, _, n, missed, index, _ = wire.struct.unpack_from(wire.SAMPLES_HEAD, body)
        rails.setdefault(rail, []).append((index, n, missed))
    for rail, frames in rails.items():
        came, (index, n, missed) = sum(n for _, n, _ in frames), frames[-1]
        assert missed > 0, f"rail {rail} lost nothing: was the host deaf for long enough?"
        assert came + missed == index + n, f"rail {rail}: {came} came, {missed} counted as missed, of {index + n}"
