"""Points of a power-loss campaign for InfluxDB, from the journal of a run and of its parts."""

import json
from collections import Counter

from fake_influx import parse_line

from ssdrig.plan.rules import chance
from ssdrig.publish.influx import line_protocol, points

DRIVE = {"model": "M", "serial": "S"}
T_NS = 1_000_000_000_000


def judged(cut, **more):
    event = {"step": "cuts", "cut": cut, "aim": "random", "shape": "float", "control": None, "judged": True}
    event |= {"fired_ns": T_NS + cut * 10**9, "failed": False, "findings": {}, "in_flight": 3, "unflushed_bytes": 4096}
    event |= {"delta_flush_us": None, "lost_volatile": 5, "ready_s": 0.5, "unsafe_shutdowns": 1, "recharge_J": None}
    event |= {"boot_J": 1, "fall": {"t90_10_us": 900.5, "holdup_us": None}, "why_not": ""}
    return event | more


SESSIONS = [
    judged(1),
    judged(2, failed=True, findings={"LOST_FUA": 2, "LOST_FLUSHED": 1, "TORN_LB": 4}, delta_flush_us=-12.5),
    judged(3, control="no-cut"),
    judged(4, judged=False, why_not="no cut"),
    judged(5, aim="flush:-2..2", fall={"t90_10_us": None, "holdup_us": 2100}, fired_ns=None, recharge_J=0.5),
]


def folder(path, sessions, header):
    path.mkdir()
    started = {
        "schema": 1,
        "run": "r",
        "started": {"t_ns": T_NS, "utc_ns": T_NS},
        "drive": DRIVE,
        "method": {},
    } | header
    (path / "run.json").write_text(json.dumps(started))
    (path / "lock").write_text("")
    events = [{"t_ns": T_NS, "kind": "run.start"}, {"t_ns": T_NS, "kind": "clock.anchor", "utc_ns": T_NS}]
    events += [{"t_ns": T_NS + i, "kind": "session.judged", **session} for i, session in enumerate(sessions)]
    events += [{"t_ns": T_NS + 99, "kind": "run.end", "state": "complete"}]
    (path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


def emitted(path):
    with points.Emitter(path) as emitter:
        emitter.step(True)
    lines = [parse_line(line) for line in (path / "points.lp").read_bytes().splitlines()]
    assert Counter(m for m, *_ in lines) == points.counts(path)
    return {name: [(dict(tags), fields, t) for m, tags, fields, t in lines if m == name] for name, *_ in lines}


def test_a_judged_cut_is_a_point_and_the_bounds_as_they_stood_then(tmp_path):
    points_ = emitted(folder(tmp_path / "r", SESSIONS, {}))
    cuts = [(f["aim"], f["shape"], f["cut"], f["fail"], t - T_NS) for _, f, t in points_["powerloss_cut"]]
    assert cuts[:2] == [("random", "float", 1, 0, 10**9), ("random", "float", 2, 1, 2 * 10**9)]
    assert cuts[2][:3] == ("flush:-2..2", "float", 5) and len(cuts) == 3, "no control session, nothing unjudged"
    _, one, _ = points_["powerloss_cut"][1]
    assert one["classes"] == "LOST_FLUSHED,LOST_FUA,TORN_LB" and one["lost_durable"] == 3 and one["torn"] == 4
    assert one["ready_ms"] == 500 and one["t90_10_us"] == 900.5 and one["delta_flush_us"] == -12.5
    assert "holdup_us" not in one and "recharge_J" not in one and "delta_flush_us" not in points_["powerloss_cut"][0][1]
    assert all(f["k"] == f["k_most"] for _, f, _ in points_["powerloss_bound"])
    bounds = [(f["aim"], f["k"], f["n"], f["p_upper"]) for _, f, _ in points_["powerloss_bound"]]
    of = chance.upper_bound
    assert bounds == [
        ("random", 0, 1, of(0, 1)),
        ("mix", 0, 1, of(0, 1)),
        ("random", 1, 2, of(1, 2)),
        ("mix", 1, 2, of(1, 2)),
        ("flush:-2..2", 0, 1, of(0, 1)),
        ("mix", 1, 3, of(1, 3)),
    ]
    written = {
        name: set().union(*(f for _, f, _ in of)) for name, of in points_.items() if name.startswith("powerloss")
    }
    schema = line_protocol.read_schema()
    assert written == {name: set(schema[name].fields) for name in ("powerloss_cut", "powerloss_bound")}


def test_the_bound_of_a_part_goes_on_with_the_cuts_before_it(tmp_path):
    run = folder(tmp_path / "r", SESSIONS[:2], {})
    part = folder(run / "part-2", [judged(6)], {"resumed": {"part": 2}})
    assert [f["n"] for _, f, _ in emitted(part)["powerloss_bound"]] == [3, 3]
    assert [f["k"] for _, f, _ in emitted(part)["powerloss_bound"]] == [1, 1]


def test_a_session_of_other_kinds_gives_no_field_and_keeps_back_none(tmp_path):
    odd = {"findings": {"LOST_FUA": "many", "TORN_LB": [1]}, "cut": "x", "in_flight": {}, "boot_J": "1"}
    odd |= {"fired_ns": 1 << 70, "fall": {"t90_10_us": "fast"}, "ready_s": True}
    odd |= {"lost_volatile": 1.5, "unsafe_shutdowns": False}
    points_ = emitted(folder(tmp_path / "r", [judged(1) | odd, judged(2)], {}))
    first, second = (fields for _, fields, _ in points_["powerloss_cut"])
    assert first["lost_durable"] == 0 and not {"cut", "in_flight", "boot_J", "t90_10_us", "unsafe"} & set(first)
    assert second["cut"] == 2 and second["boot_J"] == 1
