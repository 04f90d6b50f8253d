"""The switch in the firmware behind the cable: aims, profiles, tokens, interlock, residual, hang, end and nonsense."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simboard import FAST, SLOW, Board, changed_firmware, make_feed, until
from switchcuts import answer, arm, command, cut, power, streaming, true_us

from ssdrig.base import soft_start
from ssdrig.meter import wire
from ssdrig.virtual import cable

pytestmark = pytest.mark.slow  # not of real time: its boards have a time of their own (simboard.py)

QUICK = {
    "bulk_uF": 10.0,
    "gate_us": 0.0,
    "source_mOhm": 0.0,
}  # the drive is off 18 us after the edge: 10 uF (5^2 - 4^2) V^2 / (2 x 2.5 W)
DIES_us = 18


def test_a_cut_at_a_device_time_is_right_to_a_microsecond(tmp_path):
    """Across the wrap of ticks_us, while samples stream; the edge itself, seen by the simulated drive."""
    wanted = [(1 << 30) + 1_500_000 * k + 7919 for k in (-1, 0, 1)]
    with Board(tmp_path, 2.5, {**QUICK, "start_ticks": (1 << 30) - 3_500_000}) as b:
        streaming(b)
        for k, at in enumerate(wanted):
            report = cut(b, profile="float", when={"t_us": at}, off_ms=1, residual_ms=5)
            assert report["fired_us"] == at, k
        downs = [true_us(b, t) for t, powered in power(b, 6) if not powered]
        assert [abs(d - w - DIES_us) <= 1 for d, w in zip(downs, wanted)] == [True] * 3, [
            d - w for d, w in zip(downs, wanted)
        ]
        assert "possible are" in cut(b, when={"t_us": at})
        assert b.missed() == 0 and b.logs() == ""


def test_a_glitch_is_not_stretched_by_firmware_that_is_held_up(tmp_path):
    """The firmware stands still for 60 ms right after the edge: the pulse is 3000 us long all the same."""
    with Board(tmp_path, 2.5, {**QUICK, "stalls": [[2.5, 60]]}) as b:
        streaming(b)
        at = b.truth()[0]["tick0"] + 2_500_000 - 500
        report = cut(b, profile="glitch", glitch_us=3000, when={"t_us": at})
        down, up = (true_us(b, t) for t, _ in power(b, 2))
    assert report["ok"] and report["off_us"] == 3000 and report["fired_us"] == at
    assert down == pytest.approx(at + DIES_us, abs=1)
    v = 4.0 - 0.010 * (3000 - DIES_us) * 1e-6 / 10e-6  # the leakage goes on
    assert up == pytest.approx(at + 3000 + (4.0 - v) / 5 * 1000 * soft_start.WHOLE_ms[5000], abs=3)


@pytest.mark.parametrize("edge", ["rising", "falling"])
def test_an_edge_on_an_input(tmp_path, edge):
    """Only an edge of the right kind that comes after the start; the report's time is that of the gate."""
    times = [[1 + 0.3000011 * k, 20, k % 2] for k in range(60)]
    with Board(tmp_path, 2.5, {**QUICK, "edges": times}) as b:
        streaming(b)
        b.until(lambda: b.samples()[-1][1] > b.truth()[0]["tick0"] + 1_400_000)
        before = b.samples()[-1][1]
        report = cut(b, profile="float", when={"edge": edge, "gpio": 20, "timeout_ms": 3000}, off_ms=1, residual_ms=5)
        right = [b.truth()[0]["tick0"] + s * 1e6 * (1 + 15e-6) for s, _, level in times if level == (edge == "rising")]
        wanted = min(right, key=lambda t: abs(report["fired_us"] - t))
        assert report["ok"] and abs(report["fired_us"] - wanted) <= 1 and before < wanted < before + 2_000_000
        (down, _), *_ = power(b, 1)
        assert true_us(b, down) == pytest.approx(wanted + DIES_us, abs=1)


def test_after_samples_above_a_threshold(tmp_path):
    """Power steps from 1 to 4 W: the cut comes after the fifth sample above 2 W and within one conversion more."""
    ring = make_feed(tmp_path / "feed", 1.0)
    with Board(tmp_path, faults={"source_mOhm": 0}, feed_path=tmp_path / "feed") as b:
        streaming(b)
        above = round(0.4 / 9.765625e-6)
        when = {"samples": 5, "above_raw": above, "rail": 0}
        b.send(wire.CUT, command(b, when=when, off_ms=1, residual_ms=20))
        assert b.hello()["switch"]["state"] == "waiting"
        n = len(b.samples())
        b.until(lambda: len(b.samples()) > n + 100)
        assert b.bodies(wire.CUT_REPORT) == []
        cable.fill(ring, 4.0)
        report = json.loads(b.until(lambda: b.bodies(wire.CUT_REPORT))[0])
        b.until(lambda: b.samples()[-1][1] > report["fired_us"])
        high = [t for _, t, _, i in b.samples() if i > above and t <= report["fired_us"]]
        assert report["ok"] and len(high) == 5
        assert 0 < report["fired_us"] - high[-1] < 1102


def test_tokens(tmp_path):
    """One cut each, the latest only, for so long as the firmware says (10 s, made 3 here); and the stream must run."""
    with Board(tmp_path, 2.5, {"rail": SLOW, **changed_firmware(tmp_path, "switch.py", VALID_us=3_000_000)}) as b:
        b.hello()
        assert "stream must run" in cut(b)
        streaming(b)
        first, valid_ms = arm(b)
        second, _ = arm(b)
        assert valid_ms == 3000 and first != second
        ask = lambda token: json.dumps(
            {"token": token, "rails": [0], "profile": "glitch", "glitch_us": 1, "when": {"now": True}}
        ).encode()
        for token in (first, second):  # the wrong one disarms
            kind, body = answer(b, wire.CUT, ask(token), wire.CUT_REPORT, wire.REFUSED)
            assert kind == wire.REFUSED and "not armed" in json.loads(body)["why"]
        third, _ = arm(b)
        assert answer(b, wire.CUT, ask(third), wire.CUT_REPORT, wire.REFUSED)[0] == wire.CUT_REPORT
        assert answer(b, wire.CUT, ask(third), wire.CUT_REPORT, wire.REFUSED)[0] == wire.REFUSED
        fourth, _ = arm(b)
        sent_us = b.samples()[-1][1]
        b.until(lambda: b.samples()[-1][1] > sent_us + 3_200_000)
        assert answer(b, wire.CUT, ask(fourth), wire.CUT_REPORT, wire.REFUSED)[0] == wire.REFUSED
        assert b.truth()[0]["power"] == []


def test_firmware_that_hangs_while_the_rail_is_off_is_reset_and_the_rail_is_on(tmp_path):
    with Board(tmp_path, 2.5, {"rail": SLOW, "stalls": [[4.0, 60_000]]}) as b:
        streaming(b)
        assert cut(b, residual_ms=20)["ok"]
        b.until(lambda: len(b.truth()) == 2)
        assert [p for _, p in power(b, 1)] == [False]
        b.frames.clear()
        assert b.hello()["switch"]["off"] == []


def test_the_end_of_the_program_leaves_the_rail_on(tmp_path):
    with Board(tmp_path, 2.5) as b:
        streaming(b)
        assert cut(b, residual_ms=20)["ok"]
        b.send(wire.QUIT)
        b.until(lambda: [p for _, p in b.truth()[0]["power"]] == [False, True])


def test_a_host_that_does_not_read_loses_nothing_of_a_cut_but_its_report(tmp_path):
    """Not until the cut is over, and it comes when nothing has been taken for long: samples are counted, the rail comes
    back at its time, no frame is torn."""
    with Board(tmp_path, 2.5, FAST) as b:
        streaming(b)
        token, _ = arm(b)
        when = {"random_us": [5_000_000, 5_000_000], "seed": 1}
        b.send(
            wire.CUT,
            json.dumps({"token": token, "rails": [0], "profile": "crowbar", "when": when, "off_ms": 600}).encode(),
        )
        until(lambda: [p for _, p in b.truth()[0]["power"]] == [False, True])
        (down, _), (up, _) = b.truth()[0]["power"]
        assert (up - down) / 1e6 == pytest.approx(602, abs=3)
        n = len(b.samples())
        b.until(lambda: len(b.samples()) > n + 6000)
        assert b.damaged == []
        steps = [y[0] - x[0] for x, y in zip(b.samples(), b.samples()[1:])]
        assert min(steps) == 1 and sum(s - 1 for s in steps) == b.missed() > 1000
        assert b.hello()["switch"]["state"] == "idle"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 40), 1 << 40)
    | st.floats(allow_nan=False, allow_infinity=False, width=16)
    | st.text(max_size=6),
    lambda x: (
        st.lists(x, max_size=3)
        | st.dictionaries(
            st.sampled_from(["now", "t_us", "random_us", "seed", "samples", "rail", "edge", "x"]), x, max_size=3
        )
    ),
    max_leaves=6,
)
HOW = st.dictionaries(
    st.sampled_from(
        [
            "rails",
            "profile",
            "when",
            "off_ms",
            "glitch_us",
            "fall_us",
            "bulk_uF",
            "residual_mV",
            "residual_ms",
            "unsafe",
            "token",
        ]
    ),
    JSON,
    max_size=5,
)


def test_nonsense_is_refused_in_words(tmp_path):
    """Commands that are well framed and mean nothing: N each time, the board lives, the rail stays on."""
    with Board(tmp_path, 2.5, {"rail": SLOW}) as b:
        streaming(b)
        boot = b.truth()[0]["boot"]

        @settings(max_examples=80, deadline=None, database=None)
        @given(HOW, st.booleans(), st.binary(max_size=40), st.sampled_from([wire.CUT, wire.ON]))
        def storm(how, sound, raw, kind):
            token, _ = arm(b)
            whole = {"token": token, "rails": [0], "profile": "float", "when": {"now": True}, **how} if sound else how
            if whole.get("when") == {"now": True} or kind == wire.ON:
                whole["rails"] = "0"
            body = raw if raw and not sound else json.dumps(whole).encode()
            report, words = answer(b, kind, body, wire.CUT_REPORT, wire.REFUSED)
            assert report == wire.REFUSED, body
            assert json.loads(words)["why"]

        storm()
        nasty = [
            {"when": {"now": ["y"]}},
            {"when": {"now": 1}},
            {"rails": [{}]},
            {"rails": [[0]]},
            {"rails": [0, 0]},
            {"rails": {}},
            {"rails": [True, True]},
            {"rails": [None]},
            {"rails": []},
            {"profile": {}},
            {"when": {"samples": 1, "above_raw": 0, "rail": []}},
            {"when": {"edge": {}, "gpio": 20, "timeout_ms": 1}},
            {"when": []},
            {"off_ms": True},
            {"when": {"edge": "rising", "gpio": 10, "timeout_ms": 1}},
            {"when": {"random_us": [5000, 2000], "seed": 1}},
            {"when": {"now": True, "t_us": 1}},
            {"profile": "glitch", "glitch_us": 5, "off_ms": 5},
            {"profile": "glitch"},
            {"glitch_us": 5},
            {"profile": "ramp"},
            {"profile": "ramp", "fall_us": 50000},
            {"fall_us": 50000, "bulk_uF": [470]},
            {"profile": "ramp", "fall_us": 50000, "bulk_uF": [{}]},
            {"profile": "ramp", "fall_us": 1 << 70, "bulk_uF": [470]},
            {"profile": "ramp", "fall_us": 0, "bulk_uF": [0]},
            {"token": []},
            {"x": 1},
        ]
        for how in nasty:
            assert isinstance(cut(b, **how), str), how
        scope = {"gpio": 26, "rate": 500_000, "before": 0, "after": 1, "trigger": "now"}
        wrong = [
            {"gpio": {}},
            {"gpio": [26, {}]},
            {"gpio": []},
            {"gpio": [26, 26]},
            {"rate": 500_000.0},
            {"rate": []},
            {"trigger": []},
            {"after": 0},
        ]
        for how in (*({**scope, **w} for w in wrong), {"gpio": 26}, [], None, 3, "x", {"rails": [[]]}):
            for kind in (wire.SCOPE, wire.ON, wire.CUT):
                assert (
                    answer(b, kind, json.dumps(how).encode(), wire.REFUSED, wire.CUT_REPORT, wire.WAVEFORM)[0]
                    == wire.REFUSED
                )
        assert [t["boot"] for t in b.truth()] == [boot] and b.truth()[0]["power"] == []
        n = len(b.samples())
        b.until(lambda: len(b.samples()) > n + 100)
