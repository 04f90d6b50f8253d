"""firmware/rig.py, its very source on CPython: what a hello says, and what of it is worked out anew."""

import ast
import json
from types import SimpleNamespace

from conftest import ROOT

from ssdrig.meter import wire

WORKED_OUT = ("hello", "_about", "go", "find")


def rig():
    """(a rig with these functions of the source, its sensor, what it has said, how often that was described)."""
    module = ast.parse((ROOT / "firmware/rig.py").read_text())
    (source,) = (node for node in module.body if isinstance(node, ast.ClassDef) and node.name == "Rig")
    functions = [node for node in source.body if isinstance(node, ast.FunctionDef) and node.name in WORKED_OUT]
    sent, described = [], []
    board = dict.fromkeys(("NAME", "SERIAL", "BUILD", "REVISION"), "x")
    board |= {"SIMULATED": True, "BUSES": [], "GATE_SUPPLY": None}
    named = {
        "json": json,
        "wire": wire,
        "board": SimpleNamespace(**board),
        "calibration": SimpleNamespace(load=lambda: {"0": {"by": "meter"}}),
        "FIRMWARE": "0.1.0",
        "IDLE": "idle",
        "gc": SimpleNamespace(collect=lambda: None),
        **{"ticks_us": lambda: 10**6, "ticks_diff": lambda a, b: a - b, "RETRY_us": 200_000, "LOST": OSError},
    }
    exec(compile(ast.Module(functions, []), "rig.py", "exec"), named)
    rig_ = type("Rig", (), {name: named[name] for name in WORKED_OUT})()
    lane = SimpleNamespace(free=lambda: None, stamp_us=lambda: 4)
    sampler = SimpleNamespace(config_id=0, running=True, lane=lane)
    sampler.describe = lambda: described.append(1) or {"rail": 0, "config": sampler.config_id}
    sampler.recover = lambda: setattr(sampler, "config_id", sampler.config_id + 1)
    rig_.samplers, rig_.streaming, rig_.about, rig_.fast, rig_.boot, rig_.lost_at = [sampler], False, None, None, 7, 0
    rig_.idle_hello = None
    rig_.switch = SimpleNamespace(state="idle", tripped={}, describe=lambda: {"state": rig_.switch.state})
    rig_.scope = SimpleNamespace(describe=lambda: [])
    rig_.link = SimpleNamespace(framed=lambda kind, text: text, owe=lambda text: sent.append(json.loads(text)))
    rig_.log = lambda *words: None
    return rig_, sampler, sent, described


def test_while_the_rig_streams_only_the_switch_is_described_anew():
    rig_, _, sent, described = rig()
    for _ in range(2):
        rig_.hello()
    assert len(described) == 2 and sent[0] == sent[1]
    assert (sent[0]["protocol"], sent[0]["boot"], sent[0]["switch"]) == (wire.PROTOCOL, 7, {"state": "idle"})
    assert sent[0]["rails"] == [{"rail": 0, "config": 0, "calibration": {"by": "meter"}}]
    rig_.streaming = True
    rig_.switch.state = "tripped"
    for _ in range(3):
        rig_.hello()
    assert len(described) == 2 and sent[-1] == sent[0] | {"switch": {"state": "tripped"}}


def test_a_sensor_that_is_configured_again_is_described_anew():
    rig_, sampler, sent, described = rig()
    rig_.hello()
    rig_.streaming = True
    rig_.find(sampler)
    assert sent[-1]["rails"][0]["config"] == 1 and len(described) == 2
    rig_.hello()
    assert sent[-1]["rails"][0]["config"] == 1 and len(described) == 2


def test_the_first_hello_of_a_stream_finds_it_worked_out():
    rig_, sampler, sent, described = rig()
    sampler.prepare = sampler.go = lambda: None
    sampler.chip = SimpleNamespace(conversion_us=1000)
    rig_.go()
    assert len(described) == 1
    rig_.hello()
    assert len(described) == 1 and sent[-1]["rails"][0]["rail"] == 0


def test_an_idle_hello_in_a_stream_makes_nothing_new():
    rig_, _, sent, _ = rig()
    rig_.hello()
    rig_.streaming = True
    frames = []
    rig_.link.owe = frames.append
    rig_.hello()
    rig_.switch.state = "off"
    rig_.hello()
    rig_.switch.state = "idle"
    rig_.hello()
    assert frames[0] is frames[2] is rig_.idle_hello and json.loads(frames[0]) == sent[0]
    assert json.loads(frames[1])["switch"] == {"state": "off"}
