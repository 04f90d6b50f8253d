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
    said, described = [], []
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
    here = type("Rig", (), {name: named[name] for name in WORKED_OUT})()
    lane = SimpleNamespace(free=lambda: None, stamp_us=lambda: 4)
    sampler = SimpleNamespace(config_id=0, running=True, lane=lane)
    sampler.describe = lambda: described.append(1) or {"rail": 0, "config": sampler.config_id}
    sampler.recover = lambda: setattr(sampler, "config_id", sampler.config_id + 1)
    here.samplers, here.streaming, here.about, here.fast, here.boot, here.lost_at = [sampler], False, None, None, 7, 0
    here.idle_hello = None
    here.switch = SimpleNamespace(state="idle", tripped={}, describe=lambda: {"state": here.switch.state})
    here.scope = SimpleNamespace(describe=lambda: [])
    here.link = SimpleNamespace(framed=lambda kind, text: text, owe=lambda text: said.append(json.loads(text)))
    here.log = lambda *words: None
    return here, sampler, said, described


def test_while_the_rig_streams_only_the_switch_is_described_anew():
    here, _, said, described = rig()
    for _ in range(2):
        here.hello()
    assert len(described) == 2 and said[0] == said[1]
    assert (said[0]["protocol"], said[0]["boot"], said[0]["switch"]) == (wire.PROTOCOL, 7, {"state": "idle"})
    assert said[0]["rails"] == [{"rail": 0, "config": 0, "calibration": {"by": "meter"}}]
    here.streaming = True
    here.switch.state = "tripped"
    for _ in range(3):
        here.hello()
    assert len(described) == 2 and said[-1] == said[0] | {"switch": {"state": "tripped"}}


def test_a_sensor_that_is_configured_again_is_described_anew():
    here, sampler, said, described = rig()
    here.hello()
    here.streaming = True
    here.find(sampler)
    assert said[-1]["rails"][0]["config"] == 1 and len(described) == 2
    here.hello()
    assert said[-1]["rails"][0]["config"] == 1 and len(described) == 2


def test_the_first_hello_of_a_stream_finds_it_worked_out():
    here, sampler, said, described = rig()
    sampler.prepare = sampler.go = lambda: None
    sampler.chip = SimpleNamespace(conversion_us=1000)
    here.go()
    assert len(described) == 1
    here.hello()
    assert len(described) == 1 and said[-1]["rails"][0]["rail"] == 0


def test_an_idle_hello_in_a_stream_makes_nothing_new():
    here, _, said, _ = rig()
    here.hello()
    here.streaming = True
    frames = []
    here.link.owe = frames.append
    here.hello()
    here.switch.state = "off"
    here.hello()
    here.switch.state = "idle"
    here.hello()
    assert frames[0] is frames[2] is here.idle_hello and json.loads(frames[0]) == said[0]
    assert json.loads(frames[1])["switch"] == {"state": "off"}
