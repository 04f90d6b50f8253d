"""Points of a retention test for InfluxDB, from the events that its steps write."""

import json
from collections import Counter

import numpy as np
from fake_influx import parse_line

from ssdrig.base.overprovisioning import MIB
from ssdrig.plan.kinds import retention_layout as layouts
from ssdrig.publish.influx import line_protocol, points
from ssdrig.retention import passes, storage
from ssdrig.retention.reading import Read

LAYOUT = layouts.make(4096, 64 * MIB, 64 * MIB)
T_NS = 1_000_000_000_000
SOLD = {"model": "M", "serial": "S"}


def read(piece: int, us: int, bad=()) -> Read:
    rows = np.array([(piece * 256 + at, -7) for at in bad], np.int64).reshape(-1, 2)
    return Read(piece, np.full(8, us * 1000), MIB, 256, rows)


def judged(bad: dict) -> dict:
    """What a step `recall` says of a pass (retention/verifying.py); `bad`: piece -> blocks."""
    base = passes.middle([passes.piece(read(piece, 250)) for piece in layouts.of_kinds(LAYOUT, ("baseline",))])
    reads = [
        read(piece, 900 if piece in bad else 250, bad.get(piece, ()))
        for piece in layouts.of_kinds(LAYOUT, layouts.KEPT)
    ]
    runs = passes.runs(np.concatenate([one.bad for one in reads]))
    judged_ = passes.judge(LAYOUT, [passes.piece(one) for one in reads], runs, base)
    few = ("blocks", "bad", "classes", "share_most", "uber", "slowdown")
    return {"slow": len(judged_["slow"]), **{key: judged_[key] for key in few}}


def emitted(path, events) -> dict[str, list[dict]]:
    """{measurement: fields of its points}, of a run with these events."""
    path.mkdir()
    header = {"schema": 1, "run": "r", "started": {"t_ns": T_NS, "utc_ns": T_NS}, "drive": SOLD, "method": {}}
    (path / "run.json").write_text(json.dumps(header))
    (path / "lock").write_text("")
    every = [{"kind": "run.start"}, {"kind": "clock.anchor", "utc_ns": T_NS}, *events]
    every.append({"kind": "run.end", "state": "complete"})
    lines = [json.dumps({"t_ns": T_NS + i, "step": "recall"} | event) + "\n" for i, event in enumerate(every)]
    (path / "events.jsonl").write_text("".join(lines))
    with points.Emitter(path) as emitter:
        emitter.step(True)
    points_ = [parse_line(line) for line in (path / "points.lp").read_bytes().splitlines()]
    assert Counter(m for m, *_ in points_) == points.counts(path)
    assert all(dict(tags)["run"] == "r" for m, tags, *_ in points_ if m.startswith("retention"))
    return {name: [fields for m, _, fields, _ in points_ if m == name] for name, *_ in points_}


def end(log: storage.Log | None) -> dict:
    moved = {"nand_written_bytes": 5_000_000, "refreshes": 3, "soft_ecc_errors": 12, "uncorrectable_reads": 0}
    moved |= {"media_errors": 1, "temperature_C": 7, "power_cycles": None}
    return {"kind": "retention.end", "storage": storage.effect(log, 120.0), "since_power_on": moved}


def test_a_baseline_a_pass_and_what_the_storage_costs_are_a_point_each(tmp_path):
    base = {"MBps": 498.2, "p50_us": 251.0, "p99_us": 290.5, "max_us": 612.0, "pieces": 6}
    passed = judged({1: (4, 5), 9: (200,)})
    one = {"kind": "retention.pass", "number": 1, **passed}
    two = {"kind": "retention.pass", "number": 2, **judged({})}
    log = storage.constant(40, 100)
    points_ = emitted(tmp_path / "r", [{"kind": "retention.baseline", **base}, one, two, end(log)])
    assert points_["retention_baseline"] == [{"bw_MBps": base.pop("MBps"), **base}]
    first, second = points_["retention_pass"]
    assert (first["number"], first["bad"], first["slow"], first["classes"]) == (1, 3, 2, "UNREADABLE")
    assert (second["number"], second["bad"], second["classes"]) == (2, 0, "") and first["blocks"] == second["blocks"]
    assert first["uber"] == 3 / (first["blocks"] * 4096 * 8) and second["uber"] == 0 < second["uber_most"]
    assert first["share_most"] == passed["share_most"] and first["slowdown"] > second["slowdown"]
    (stored,) = points_["retention_storage"]
    assert (stored["hours"], stored["off_hours"], stored["covers"]) == (100, 120, 100 / 120)
    at_30 = [stored[f"equivalent_30C_{eV}eV_h"] for eV in ("0_6", "0_8", "1_1")]
    assert 100 < at_30[0] < at_30[1] < at_30[2] and stored["equivalent_40C_0_6eV_h"] == 100
    assert (stored["nand_written_bytes"], stored["refreshes"], stored["media_errors"]) == (5_000_000, 3, 1)
    schema = line_protocol.read_schema()
    written = {name: set().union(*of) for name, of in points_.items() if name.startswith("retention")}
    assert written == {name: set(of.fields) for name, of in schema.items() if name.startswith("retention")}


def test_what_is_not_known_is_not_written(tmp_path):
    """Of a storage that nobody has noted, and of a drive whose counters are not there."""
    empty = {**judged({}), "share_most": None, "uber": passes.uber(0, 0), "slowdown": None}
    bare = {**end(None), "since_power_on": {"refreshes": None}}
    points_ = emitted(
        tmp_path / "r", [{"kind": "retention.pass", "number": 1, **empty}, bare, {"kind": "retention.end"}]
    )
    assert set(points_["retention_pass"][0]) == {"number", "blocks", "bad", "classes", "slow"}
    assert points_["retention_storage"] == [{"off_hours": 120.0}]


def test_an_event_of_other_kinds_gives_no_field(tmp_path):
    odd = [{"kind": "retention.baseline", "MBps": "fast", "p50_us": 1.0, "pieces": 1.5}]
    odd += [{"kind": "retention.pass", "number": "1"}, {"kind": "retention.end", "storage": {"hours": True}}]
    points_ = emitted(tmp_path / "r", odd)
    assert points_["retention_baseline"] == [{"p50_us": 1.0}] and points_["retention_pass"] == [{"classes": ""}]
    assert "retention_storage" not in points_
