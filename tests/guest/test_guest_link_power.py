"""SATA link power management through an unmodified kernel: its AHCI driver takes each word, a killed run leaves its
own, the next command reports it, and `drives --put-back` and `resume` put the old one back. QEMU's port has no link
whose power would change; what the link draws is shown on the virtual drive alone."""

import pytest

from guest import qemu
from guest.machine import COMMAND, PATIENTLY

pytestmark = pytest.mark.slow

SERIAL = qemu.SATA.serial
POLICY = "cat /sys/block/sda/device/../../scsi_host/host*/link_power_management_policy"
SET = """
import sys; from ssdrig.drive import conditions
conditions.change("alpm", sys.argv[0], "sda")
print(conditions.setting("alpm", "sda")[0])
"""
WORDS = ("min_power", "medium_power", "med_power_with_dipm", "max_performance")
PLAN = """
schema = 1
name = "link"
title = "Settings"
source = "a test"
about = "a test"

[[step]]
name = "set"
do = "set"
alpm = "min_power"

[[step]]
name = "stay"
do = "idle"
time = "{time_s} s"
"""
AT_REST = """grep -l '"step.start".*"stay"' /dev/shm/link/*/events.jsonl"""
KILL = "kill -KILL $(sed -n 's/.*\"pid\": *\\([0-9]*\\).*/\\1/p' /dev/shm/link/*/events.jsonl | head -1)"


def test_each_word_is_set_and_seen(guest):
    first = guest.sh(POLICY).strip()
    for word in (*WORDS, first):
        assert guest.python(SET, word).stdout.strip() == guest.sh(POLICY).strip() == word


@pytest.mark.parametrize("way", ["put-back", "resume"])
def test_policy_of_a_killed_run_is_reported_and_put_back(guest, needs, way):
    needs("smartctl")
    state = {"XDG_STATE_HOME": f"/dev/shm/link-{way}"}
    ssdrig = lambda *words: guest.python(PATIENTLY + COMMAND, "ssdrig", *words, timeout_s=400, **state)
    guest.python(SET, "max_performance")
    guest.sh("rm -rf /dev/shm/link; mkdir /dev/shm/link")
    guest.do("put", "/dev/shm/link.toml", PLAN.format(time_s=20 if way == "resume" else 600))
    run = ("run", "/dev/shm/link.toml", "--drive", SERIAL, "--runs", "/dev/shm/link")
    guest.start_python("run", PATIENTLY + COMMAND, "ssdrig", *run, "--destroy-data", SERIAL, **state)
    try:
        guest.until(AT_REST, timeout_s=400)
    except AssertionError as error:
        raise AssertionError(str(guest.ended("run", timeout_s=1))) from error
    assert guest.sh(POLICY).strip() == "min_power"
    guest.sh(KILL)
    assert guest.ended("run").exit_code == -9
    assert guest.sh(POLICY).strip() == "min_power"
    second = ssdrig(*run, "--destroy-data", SERIAL)
    assert second.exit_code == 3 and f"drives --put-back {SERIAL}" in second.stderr, str(second)
    [row] = [row for row in ssdrig("drives", "--json", "--no-smart").json() if row["serial"] == SERIAL]
    assert ["alpm" in refusal["why"] for refusal in row["refusals"] if refusal["check"] == "settings"] == [True]
    if way == "put-back":
        back = ssdrig("drives", "--put-back", SERIAL)
    else:
        folder = guest.sh("ls -d /dev/shm/link/*/").split()[0].rstrip("/")
        back = ssdrig("resume", folder, "--plan", "/dev/shm/link.toml", "--destroy-data", SERIAL)
    assert back.exit_code == 0 and guest.sh(POLICY).strip() == "max_performance", str(back)
    assert "settings:" not in ssdrig(*run, "--dry-run").stderr
