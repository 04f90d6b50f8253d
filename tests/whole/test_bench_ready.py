"""The wait for a process of the virtual bench: as long as it works, with its progress; else its own words."""

import json
import subprocess
import sys

import pytest

from ssdrig.base import kernels
from ssdrig.base.errors import DriveError
from ssdrig.virtual import bench

WORKS = "import time\nwhile time.process_time() < {}: pass\n"
READY = "print('{\"ready\": 1}', flush=True)\n"


@pytest.fixture
def ready(tmp_path, monkeypatch):
    """Waits for Python on a text, as for the drive's server; returns the ready line and what was shown."""
    monkeypatch.setattr(bench, "IDLE_S", 1.0)
    processes = []

    def wait(text: str, check=lambda: None) -> tuple[dict, list[str]]:
        log, shown = tmp_path / "log", []
        with open(log, "wb") as errors:
            line = [sys.executable, "-c", text]
            processes.append(subprocess.Popen(line, stdout=subprocess.PIPE, stderr=errors))
        return bench._ready(processes[-1], log, DriveError, "the drive", check, shown.append), shown

    yield wait
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_start_that_computes_longer_than_the_idle_limit_becomes_ready(ready):
    line, shown = ready(WORKS.format(2) + READY)
    assert line == {"ready": 1} and shown == []


def test_a_compilation_is_shown_with_its_functions(ready):
    text = 'import time\nfor n in (1, 2):\n print(\'{"compiling": %d, "of": 9}\' % n, flush=True); time.sleep(0.3)\n'
    line, shown = ready(text + READY)
    assert line == {"ready": 1}
    assert "1 of 9 functions" in shown[0] and "2 of 9 functions" in shown[-1]


def test_a_start_that_waits_for_another_that_compiles_is_not_stuck(ready):
    text = "import time\nfor n in range(8):\n print('{\"waiting\": 7}', flush=True); time.sleep(0.25)\n"
    line, shown = ready(text + READY)
    assert line == {"ready": 1} and "process 7" in shown[0]


def test_a_start_that_uses_no_cpu_is_stuck(ready):
    with pytest.raises(DriveError) as raised:
        ready("import time; time.sleep(600)")
    assert "no CPU time used for 1 s" in raised.value.seen


def test_a_start_that_died_is_reported_with_its_code_and_last_words(ready):
    with pytest.raises(DriveError) as raised:
        ready("import sys; print('first\\nno room', file=sys.stderr); sys.exit(3)")
    assert raised.value.seen.endswith("exit code 3: no room")


def test_what_the_check_raises_ends_the_start(ready):
    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ready("import time; time.sleep(600)", stop)


def test_a_process_that_waits_for_the_compile_lock_reports_its_holder(tmp_path, monkeypatch):
    """The holder is named as long as it uses CPU time, and no longer."""
    monkeypatch.setattr(kernels, "FOLDER", tmp_path)
    monkeypatch.setattr(kernels, "LOOK_S", 0.05)
    lines = []
    monkeypatch.setattr(kernels, "_tell", lines.append)
    hold = (
        f"import fcntl, os, time\nf = open({str(tmp_path / 'lock')!r}, 'w'); fcntl.flock(f, fcntl.LOCK_EX)\n"
        "f.write(str(os.getpid())); f.flush(); print(flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", hold + WORKS.format(1)], stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        with kernels.compiling("part"):
            assert (tmp_path / "lock").read_text().isdigit()
    assert lines and all(line == {"waiting": holder.pid} for line in lines)


@pytest.mark.slow
def test_a_first_start_compiles_as_many_functions_as_its_progress_promises(tmp_path):
    text = (
        "import json\nfrom ssdrig.base import kernels\nkernels.FOLDER = None\n"
        "from ssdrig.virtual.flash.presets import PRESETS\n"
        "seen = []; kernels.tell_progress(seen.append)\n"
        "from ssdrig.virtual.device.device import warm_up\nwarm_up(PRESETS['sata-tlc'])\nprint(json.dumps(seen[-1]))\n"
    ).replace("kernels.FOLDER = None\n", f"import pathlib; kernels.FOLDER = pathlib.Path({str(tmp_path)!r})\n")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"compiling": kernels.FUNCTIONS, "of": kernels.FUNCTIONS}
