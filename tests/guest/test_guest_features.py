"""What a plan's `set` step changes of an NVMe drive, and how much of it is allocated, through an unmodified kernel and
nvme-cli: the SIMULATED drive over NVMe/TCP, whose own counts are the other side."""

import pytest
from serving import Serving

from guest.connected import Connected
from guest.machine import COMMAND, PATIENTLY

pytestmark = pytest.mark.slow

MIB = 1 << 20
SOURCE = """
import json, sys
from ssdrig.drive import features
controller, was, said = sys.argv[0], {}, {}
found, unknown = features.read(controller, 1)
def tried(key, *to):
    was[key] = features.setting(key, controller)
    wanted = [*to, *was[key][1:]]
    errors = [features.change(key, controller, wanted)]
    seen = features.setting(key, controller)
    errors.append(features.change(key, controller, was[key]))
    said[key] = {"errors": errors, "as wanted": seen == wanted != was[key], "back": features.setting(key, controller)}
tried("write_cache", "write through")
tried("apst", "off")
features.change("apst", controller, ["off", *was["apst"][1:]])  # else an idle drive goes on to a lower state by itself
tried("power_state", "1")
features.change("apst", controller, was["apst"])
too_high = features.change("power_state", controller, ["31"])
print(json.dumps({"found": found, "unknown": unknown, "was": was, "said": said, "too high": too_high}))
"""
SETTINGS = """
import json, sys
from ssdrig.drive import conditions, features
with conditions.awake("power_state", sys.argv[1]):
    print(json.dumps({key: features.setting(key, sys.argv[0]) for key in ("write_cache", "apst", "power_state")}))
"""
PLAN = """
schema = 1
name = "left"
title = "Settings"
source = "a test"
about = "a test"

[[step]]
name = "set"
do = "set"
write_cache = "off"
apst = "off"
power_state = 1

[[step]]
name = "stay"
do = "idle"
time = "600 s"
"""
AT_REST = """grep -l '"step.start".*"stay"' /dev/shm/left/*/events.jsonl"""
USED = "import sys; from ssdrig.drive import features; print(features.used_bytes(sys.argv[0], 1, timeout_s=60))"


@pytest.fixture(scope="module")
def drive(machine, tmp_path_factory):
    words = ("--preset", "nvme-tlc", "--capacity", "1GiB", "--nvme-tcp", "127.0.0.1:0", "--die-with-parent")
    served = Serving(tmp_path_factory.mktemp("features"), *words)
    try:
        connected = Connected(machine, served)
        yield connected
        connected.end()
    finally:
        served.end()


def test_features_are_set_seen_and_put_back(drive, needs):
    needs("nvme")
    answer = drive.machine.python(SOURCE, drive.controller).json()
    assert answer["found"]["nvme.write_cache"] == "on" and answer["found"]["nvme.lba_format"].startswith("0: 512 B")
    assert set(answer["unknown"]) <= {"nvme.tmt1_C", "nvme.tmt2_C", "nvme.apst_table", "nvme.hmb"}
    for key, reply in answer["said"].items():
        assert reply == {"errors": [None, None], "as wanted": True, "back": answer["was"][key]}, key
    assert "nvme" in answer["too high"].lower() or "invalid" in answer["too high"].lower()


@pytest.mark.parametrize("number", ["KILL", "INT"])
def test_settings_of_a_killed_run_are_reported_and_put_back_and_a_stopped_run_restores_them(drive, needs, number):
    needs("nvme")
    machine = drive.machine
    state = {"XDG_STATE_HOME": "/dev/shm/state"}
    now = lambda: machine.python(SETTINGS, drive.controller, drive.node).json()
    ssdrig = lambda *words: machine.python(PATIENTLY + COMMAND, "ssdrig", *words, timeout_s=400, **state)
    was = now()
    assert was["power_state"] == ["0"] and was["apst"][0] == "on"
    machine.sh("rm -rf /dev/shm/left; mkdir /dev/shm/left")
    machine.do("put", "/dev/shm/left.toml", PLAN)
    run = ("run", "/dev/shm/left.toml", "--drive", drive.serial, "--runs", "/dev/shm/left")
    machine.start_python("run", PATIENTLY + COMMAND, "ssdrig", *run, "--destroy-data", drive.serial, **state)
    try:
        machine.until(AT_REST, timeout_s=400)
    except AssertionError as error:
        raise AssertionError(str(machine.ended("run", timeout_s=1))) from error
    changed = now()
    assert (changed["write_cache"][0], changed["apst"][0], changed["power_state"]) == ("write through", "off", ["1"])
    machine.sh(f"kill -{number} $(sed -n 's/.*\"pid\": *\\([0-9]*\\).*/\\1/p' /dev/shm/left/*/events.jsonl | head -1)")
    machine.ended("run")
    if number == "INT":
        assert now() == was
        return
    assert now() == changed
    second = ssdrig(*run, "--destroy-data", drive.serial)
    assert second.exit_code == 3 and f"drives --put-back {drive.serial}" in second.stderr, str(second)
    [row] = [row for row in ssdrig("drives", "--json", "--no-smart").json() if row["serial"] == drive.serial]
    [refusal] = [refusal["why"] for refusal in row["refusals"] if refusal["check"] == "settings"]
    assert all(key in refusal for key in was), refusal
    back = ssdrig("drives", "--put-back", drive.serial)
    assert back.exit_code == 0 and now() == was, str(back)
    assert "settings:" not in ssdrig(*run, "--dry-run").stderr


def test_what_is_allocated_is_what_was_written_and_not_trimmed(drive, needs):
    needs("nvme")
    machine = drive.machine

    def used() -> int:
        return int(machine.python(USED, drive.controller).stdout)

    before = used()
    machine.do("fill", drive.node, "allocated\n", [16 * MIB], 8 * MIB)
    assert used() - before == 8 * MIB
    machine.do("discard", drive.node, 16 * MIB, 6 * MIB)
    assert used() - before == 2 * MIB
