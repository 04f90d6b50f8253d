"""On the SIMULATED board: dips, the cut that follows a power signature, and a crowbar on a rail that does not fall."""

import pytest
from simboard import Board, cable, changed_firmware, make_feed
from switchcuts import command, cut, on, power, streaming, true_us

from ssdrig.meter import wire

pytestmark = pytest.mark.slow  # not of real time: its boards have a time of their own (simboard.py)

QUICK = {"bulk_uF": 10.0, "gate_us": 0.0, "source_mOhm": 0.0}  # the drive is off 18 us after the edge
FULL = {"profile": "dips", "dips": 4, "down_us": 500, "up_us": 4000}  # it takes 3 ms to be full again


def test_a_train_of_dips(tmp_path):
    """Four times off and on, each as long as asked, by DMA; power returns by itself."""
    with Board(tmp_path, 2.5, QUICK) as b:
        streaming(b)
        report = cut(b, **FULL)
        downs = [true_us(b, t) for t, powered in power(b, 8) if not powered]
    assert report["ok"] and report["off_us"] == 4 * 500 + 3 * 4000
    assert [t - report["fired_us"] for t in downs] == pytest.approx([18 + 4500 * k for k in range(4)], abs=3)
    assert (report["rails"][0]["crowbar_mJ"], report["rails"][0]["released"]) == (None, None)


def test_a_cut_follows_a_power_signature(tmp_path):
    """The load ends; eight readings below 0.2 A later, and then between 20 and 40 ms by the seed, power goes."""
    ring = make_feed(tmp_path / "feed", 2.5)
    with Board(tmp_path, faults=QUICK, feed_path=tmp_path / "feed") as b:
        streaming(b)
        raw = round(0.2 / 9.765625e-6)
        when = {"samples": 8, "below_raw": raw, "rail": 0, "after_us": [20_000, 40_000], "seed": 3}
        b.send(wire.CUT, command(b, profile="float", when=when, off_ms=1, residual_ms=5))
        b.read(0.2)
        assert not b.bodies(wire.CUT_REPORT)
        cable.fill(ring, 0.25)
        b.until(lambda: b.bodies(wire.CUT_REPORT))
        ((down, _), *_) = power(b, 1)
        fired = true_us(b, down)
        b.until(lambda: b.samples()[-1][1] > fired)
        low = [t for _, t, _, current in b.samples() if current < raw and t < fired]
    assert 20_000 - 100 <= fired - low[7] <= 40_000 + 3000
    seen = fired - low[7]
    assert seen > 20_500  # the seed's own delay, not the least


def test_a_crowbar_on_a_rail_that_is_fed_lets_go(tmp_path):
    """4.5 V by 0.05 Ohm from elsewhere: 9 W in the resistor. It lets go after 22 ms, says so at once and in the answer,
    and the next cut's steps have the pin again."""
    fed = {"side_V": 4.5, "side_ohm": 0.05, "source_mOhm": 0.0}
    with Board(tmp_path, 2.5, fed | changed_firmware(tmp_path, "switch.py", GIVE_UP_us=300_000)) as b:
        streaming(b)
        report = cut(b, profile="crowbar", off_ms=1, residual_ms=50)
        (rail,) = report["rails"]
        assert not report["ok"] and "power stays off" in report["why"] and rail["residual_mV"] > 4400
        assert rail["released"] == "the rail did not fall" and rail["crowbar_mJ"] == pytest.approx(8.8 * 22.5, rel=0.1)
        assert "rail 0: the crowbar let go: the rail did not fall" in b.logs()
        assert on(b, unsafe=True)["ok"]
        again = cut(b, profile="ramp", fall_us=20_000, bulk_uF=[470], off_ms=30, residual_ms=50)
        assert again["rails"][0]["released"] and again["rails"][0]["crowbar_mJ"] < 400
