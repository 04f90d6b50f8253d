"""Settings of a drive that a killed run left changed: reported, refused to the next run, and put back. The drive is a
stand-in for nvme-cli that stores its features in files and waits at a chosen call, where the run is really killed."""

import dataclasses
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_tools import Tools
from guarding import against, tree  # noqa: F401  fixture

from ssdrig.base.errors import DriveError, UnsafeTarget
from ssdrig.commands import drives as command
from ssdrig.drive import features, guard, unrestored
from ssdrig.drive.inventory import find

SERIAL = "S6Z1NX0W100001"
CALL = """
hold() { touch here; while [ -f here ]; do sleep 0.02; done; [ -f killed ] && exit 1; }
[ -f gone ] && { echo "No such device" >&2; exit 1; }
[ "$1" = set-feature ] && {
  echo x >> sets
  [ "$(wc -l < sets)" = "$(cat wait_at)" ] && [ "$(cat wait)" = before ] && hold
}
case "$1 $3" in
"get-feature --feature-id=12") [ "$5" = --raw-binary ] && { cat table; exit 0; }
  echo "get-feature:0x0c, Current value:0x0000000$(cat 12)";;
get-feature*) [ -f "${3#--feature-id=}" ] || { echo "NVMe status: Invalid Field(0x4002)" >&2; exit 1; }
  echo "get-feature:0x00, Current value:0x0000000$(cat "${3#--feature-id=}")";;
set-feature*) echo "${4#--value=}" > "${3#--feature-id=}"; [ "$6" ] && cat "${6#--data=}" > table;;
esac
[ "$1" = set-feature ] && [ "$(wc -l < sets)" = "$(cat wait_at)" ] && [ "$(cat wait)" = after ] && hold
exit 0
"""
# the `set` step, the teardown and the journal of a run; power_state is set twice, as a plan with states does
RUN = """
import dataclasses, sys
from pathlib import Path
from types import SimpleNamespace
from ssdrig.base.progress import Progress
from ssdrig.drive import conditions, guard, inventory, unrestored
from ssdrig.run.steps import set as step
from ssdrig.run.teardown import Stop, Teardown
from ssdrig.runs import journal
root, runs = sys.argv[1:]
drive = inventory.find("S6Z1NX0W100001", root)
at = (drive.name, root, drive.controller)
bench = SimpleNamespace(
    drive=dataclasses.asdict(drive),
    setting=lambda key: conditions.setting(key, *at),
    change=lambda key, value: conditions.change(key, value, *at),
    put_back=lambda key, before: conditions.put_back(key, before, *at),
)
with Stop(Progress(True)) as stop, guard.hold(drive, drive.serial, root), Teardown(stop, Progress(True)) as teardown:
    book = journal.create(runs, {"drive": bench.drive})
    stage = SimpleNamespace(bench=bench, book=book, teardown=teardown)
    for keys in ({"write_cache": "off"}, {"apst": "off"}, {"power_state": 1}, {"power_state": 2}, {"governor": "fast"}):
        step.carry_out(SimpleNamespace(keys=keys), stage, 1)
        if stop.asked():
            break
"""
FIRST = {"2": "0", "6": "1", "12": "1"}
NAMES = {"2": "power_state", "6": "write_cache", "12": "apst"}
TABLE = bytes.fromhex("18640000" + "00" * 4) + bytes(features.TABLE_BYTES - 8)
SETS = 8  # four by the plan, four at its end


class Drive:
    """The stand-in and a process that runs on it."""

    def __init__(self, tree, folder: Path, monkeypatch):
        self.tools, self.tree, self.runs = Tools(folder / "tools", monkeypatch), tree, folder / "runs"
        self.tools.put("nvme", CALL)
        for name, text in (FIRST | {"wait": "after", "wait_at": "0", "sets": ""}).items():
            (self.tools.folder / name).write_text(text)
        (self.tools.folder / "table").write_bytes(TABLE)
        self.governor = folder / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
        self.governor.parent.mkdir(parents=True, exist_ok=True)
        self.governor.write_text("slow\n")

    def run(self, wait: str, wait_at: int, number: int, lost: bool = False) -> int:
        """Start the run, send it a signal at a call of nvme; returns its exit code. `lost`: the drive goes then."""
        (self.tools.folder / "wait").write_text(wait)
        (self.tools.folder / "wait_at").write_text(str(wait_at))
        words = [sys.executable, "-c", RUN, self.tree.root, self.runs]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
            deadline = time.monotonic() + 60
            while not (self.tools.folder / "here").exists():
                assert process.poll() is None, process.stderr.read()
                assert time.monotonic() < deadline
                time.sleep(0.01)
            process.send_signal(number)
            if number == signal.SIGKILL:
                process.wait()
                (self.tools.folder / "killed").touch()  # the call in hand ends with it
            if lost:
                (self.tools.folder / "gone").touch()
            (self.tools.folder / "wait_at").write_text("0")
            (self.tools.folder / "here").unlink()
            process.communicate()
        return process.returncode

    @property
    def node(self) -> str:
        return f"{self.tree.root}/dev/nvme0n1"

    def changed(self) -> dict[str, str]:
        """The settings whose value is not the first."""
        seen = {NAMES[name]: (self.tools.folder / name).read_text().strip() for name in FIRST}
        first = {NAMES[name]: value for name, value in FIRST.items()}
        governor = self.governor.read_text().strip()
        return {key: value for key, value in seen.items() if value != first[key]} | (
            {} if governor == "slow" else {"governor": governor}
        )

    def left(self) -> dict[str, str]:
        """What is reported to the next run."""
        drive = find(SERIAL, self.tree.root)
        reports = unrestored.of(drive, self.node, lambda serial: guard.busy(serial, self.tree.root), self.tree.root)
        return {key: one.before[key][0] for one in reports for key in one.now}


@pytest.fixture
def drive(tree, tmp_path, monkeypatch):
    return Drive(tree, tmp_path, monkeypatch)


BEFORE = {"power_state": "0", "write_cache": "write back", "apst": "on", "governor": "slow"}


@pytest.mark.parametrize("wait", ["before", "after"])
@pytest.mark.parametrize("at", range(1, SETS + 1))
def test_each_setting_that_a_killed_run_left_changed_is_reported_refused_and_put_back(drive, at, wait):
    assert drive.run(wait, at, signal.SIGKILL) == -signal.SIGKILL
    changed = drive.changed()
    assert drive.left() == {key: BEFORE[key] for key in changed}
    if not changed:
        assert (at, wait) in ((1, "before"), (SETS, "after")) and "settings" not in against(drive.tree, "nvme0n1")
        return
    refusal = against(drive.tree, "nvme0n1", SERIAL)["settings"]
    assert f"drives --put-back {SERIAL}" in refusal and all(key in refusal for key in changed)
    with pytest.raises(UnsafeTarget), guard.hold(find(SERIAL, drive.tree.root), SERIAL, drive.tree.root):
        pass
    [run] = drive.runs.iterdir()
    with guard.hold(find(SERIAL, drive.tree.root), SERIAL, drive.tree.root, resumed=run) as held:
        for one in unrestored.of(held.drive, held.path, lambda serial: False, drive.tree.root):
            unrestored.put_back(one, held.drive, drive.tree.root)
    assert drive.changed() == {} == drive.left() and not list(unrestored.folder().iterdir())
    assert (drive.tools.folder / "table").read_bytes() == TABLE
    with guard.hold(find(SERIAL, drive.tree.root), SERIAL, drive.tree.root):
        pass


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("at", [1, 3, 4, 6])
def test_a_run_that_is_asked_to_stop_leaves_nothing_changed(drive, at, number):
    drive.run("after", at, number)
    assert drive.changed() == {} == drive.left() and not list(unrestored.folder().glob("*"))


@pytest.mark.parametrize("cache", ["1", "0"])
def test_after_a_loss_of_power_only_a_setting_that_the_drive_has_kept_is_reported(drive, cache):
    """The drive does not answer when the run ends; it comes back as after a reset, its write cache perhaps as it was
    set."""
    assert drive.run("after", 3, signal.SIGTERM, lost=True) == 1  # the step fails, and so does what puts it back
    assert set(drive.left()) == {"write_cache", "apst", "power_state"}, "what cannot be asked is not known to be back"
    (drive.tools.folder / "gone").unlink()
    for name, value in (FIRST | {"6": cache}).items():
        (drive.tools.folder / name).write_text(value)
    assert drive.left() == ({"write_cache": "write back"} if cache == "0" else {})


def test_a_setting_that_was_set_twice_is_noted_until_its_first_value_is_back(drive):
    drive.run("after", 5, signal.SIGKILL)  # the first of the two duties of power_state
    assert drive.changed()["power_state"] == "1" and drive.left()["power_state"] == "0"


def noted(drive, key: str = "write_cache", **facts) -> Path:
    """A file as a killed run leaves it, with other facts."""
    one = dataclasses.asdict(find(SERIAL, drive.tree.root))
    unrestored.note(one, drive.runs / "run", key, ["write back" if key == "write_cache" else "slow"])
    [path] = unrestored.folder().glob("*.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | facts))
    return path


def test_a_restart_of_the_host_lets_all_lapse_but_the_write_cache(drive):
    (drive.tools.folder / "6").write_text("0")
    drive.governor.write_text("fast")
    noted(drive, boot_id="another")
    assert drive.left() == {"write_cache": "write back"}
    path = noted(drive, "governor", boot_id="another")
    assert drive.left() == {}
    path.unlink()
    noted(drive, "governor")
    assert drive.left() == {"governor": "slow"}


def test_a_twin_model_is_not_refused_for_the_drive_that_was_left_changed_but_for_a_setting_of_the_host(drive):
    drive.tree.nvme(1, serial="S6Z1NX0W100002", size_bytes=64 << 20)
    (drive.tools.folder / "6").write_text("0")
    noted(drive)
    assert "settings" in against(drive.tree, "nvme0n1") and "settings" not in against(drive.tree, "nvme1n1")
    drive.governor.write_text("fast")
    noted(drive, "governor")
    assert "settings" in against(drive.tree, "nvme0n1") and "governor" in against(drive.tree, "nvme1n1")["settings"]
    with guard.hold(find(SERIAL, drive.tree.root), root=drive.tree.root, reads=True):  # a live run's own
        assert "settings" not in against(drive.tree, "nvme0n1") | against(drive.tree, "nvme1n1")


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "null", '{"serial": 1}'),
        '{"serial": "S", "model": "M", "run": "r", "utc_ns": 1, "before": {"/etc/passwd": ["x"]}}',
        '{"serial": "S", "model": "M", "run": "r", "utc_ns": 1, "before": {"apst": []}}',
        '{"serial": "S", "model": "M", "run": "r", "utc_ns": 1e30, "before": {}}',
    ],
)
def test_a_file_that_no_run_wrote_is_named_and_nothing_is_set_by_it(drive, text):
    path = noted(drive)
    path.write_text(text)
    assert str(path) in against(drive.tree, "nvme0n1")["settings"]
    [left] = unrestored.of(find(SERIAL, drive.tree.root), drive.node, lambda serial: False, drive.tree.root)
    with pytest.raises(DriveError):
        unrestored.put_back(left, find(SERIAL, drive.tree.root), drive.tree.root)
    assert not (drive.tools.folder / "sets").read_text()


def test_names_of_runs_reach_the_terminal_without_control_characters(drive):
    (drive.tools.folder / "6").write_text("0")
    noted(drive, run="/runs/\x1b[2J\n; rm -rf")
    assert "\x1b" not in (words := against(drive.tree, "nvme0n1")["settings"]) and "\n" not in words


def test_a_setting_that_cannot_be_noted_is_a_note_of_the_run(drive, monkeypatch):
    monkeypatch.setattr(unrestored, "folder", lambda: Path("/proc/no/such"))
    with pytest.raises(DriveError, match="write_cache was write back"):
        noted(drive)


def test_put_back_that_the_drive_refuses_leaves_the_setting_noted(drive):
    drive.run("after", 3, signal.SIGKILL)
    (drive.tools.folder / "2").unlink()
    (drive.tools.folder / "2").mkdir()
    before = drive.left()
    [left] = unrestored.of(find(SERIAL, drive.tree.root), drive.node, lambda serial: False, drive.tree.root)
    with pytest.raises(DriveError, match="power_state"):
        unrestored.put_back(left, find(SERIAL, drive.tree.root), drive.tree.root)
    assert set(drive.left()) == {"power_state"} < set(before)


def test_the_command_puts_back_and_reports_each_setting(drive, monkeypatch, capsys):
    drive.run("after", 2, signal.SIGKILL)
    real = guard.hold
    root = drive.tree.root
    monkeypatch.setattr(command.inventory, "find", lambda word: find(word, root))
    monkeypatch.setattr(command.guard, "hold", lambda drive, reads: real(drive, root=root, reads=reads))
    monkeypatch.setattr(
        command.unrestored,
        "of",
        lambda drive, node, held, of=unrestored.of: of(drive, node, lambda serial: False, root),
    )
    monkeypatch.setattr(
        command.unrestored, "put_back", lambda left, drive, put=unrestored.put_back: put(left, drive, root)
    )
    asked = SimpleNamespace(put_back=SERIAL, json=False, no_smart=False)
    assert command.command(asked) == 0 and drive.changed() == {}
    assert capsys.readouterr().out.splitlines() == ["write_cache is write back again", "apst is on again"]
    assert command.command(asked) == 0 and "again" not in capsys.readouterr().out
