"""No code of the folder that ssdrig is started in is run, by it or by the children that it starts."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_plans import FILLED, HEAD

from ssdrig.publish.influx import push
from ssdrig.virtual import bench as virtual_bench

ROOT = Path(__file__).parents[2]
TRAPS = ("random queue json socket numpy ssdrig mpremote pip serial pytest zlib sitecustomize usercustomize").split()
TRAP = "import os\nopen({marker!r}, 'a').write(__name__ + '\\n')\n"
MODULE = {"-m", "-c"}


@pytest.fixture
def traps(tmp_path, monkeypatch):
    """A folder of modules that leave their names in a file, which is returned; the current folder."""
    folder, marker = tmp_path / "traps", tmp_path / "marker"
    folder.mkdir()
    for name in TRAPS:
        (folder / f"{name}.py").write_text(TRAP.format(marker=str(marker)))
    for name in ("ssdrig", "numba"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(TRAP.format(marker=str(marker)))
    (folder / "x.pth").write_text(f"import os; open({str(marker)!r}, 'a').write('pth')\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "host"))
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    yield marker
    assert not marker.exists(), marker.read_text()


def test_every_python_that_is_started_by_name_has_a_safe_path():
    unsafe = []
    for path in (ROOT / "host/ssdrig").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.List | ast.Tuple):
                continue
            words = [ast.unparse(one) for one in node.elts]
            for at, word in enumerate(words[:-1]):
                if word in ("sys.executable", "python") and words[at + 1] == "'-m'" and "pytest" not in words[at + 2]:
                    unsafe.append(f"{path.name}:{node.lineno}")
    assert not unsafe


def test_a_pusher_runs_no_code_of_the_current_folder(traps, tmp_path):
    pusher = push.start(tmp_path / "none", "http://127.0.0.1:1/x")
    assert pusher.wait(600) == 8  # there is no such run


@pytest.mark.parametrize("module", ["ssdrig.virtual.cable", "ssdrig.virtual.serve"])
def test_a_virtual_bench_runs_no_code_of_the_current_folder(traps, tmp_path, module):
    child = virtual_bench._spawn(module, ["--no-such-option"], tmp_path / "log")
    assert child.wait(600) == 2
    assert "No module" not in (tmp_path / "log").read_text()


@pytest.mark.parametrize("words", [["--version"], ["plans"], ["drives"], ["virtual", "--list-presets"]])
def test_the_launcher_runs_no_code_of_the_current_folder(traps, tmp_path, words, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", ".")
    monkeypatch.setenv("PYTHONSTARTUP", str(traps.parent / "traps/json.py"))
    done = subprocess.run([ROOT / "ssdrig", *words], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def test_the_launcher_gives_its_children_a_safe_path(tmp_path):
    """Its own lines, with a Python that shows what it was given."""
    text = (ROOT / "ssdrig").read_text()
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / "ssdrig").write_text(text)
    python = tmp_path / ".venv/bin/python"
    python.write_text('#!/bin/sh\necho "$PYTHONSAFEPATH|$PYTHONPATH|${PYTHONHOME-none}|${PYTHONSTARTUP-none}"\n')
    python.chmod(0o755)
    environ = os.environ | {"PYTHONSAFEPATH": "", "PYTHONPATH": "x", "PYTHONHOME": "/x", "PYTHONSTARTUP": "x.py"}
    done = subprocess.run(["sh", tmp_path / "ssdrig"], capture_output=True, text=True, env=environ, timeout=600)
    assert done.stdout == f"1|{tmp_path}/host|none|none\n"


@pytest.mark.slow
@pytest.mark.keeps_time
def test_a_whole_run_runs_no_code_of_the_current_folder(traps, tmp_path):
    """Drive, board, fio, player and report, without the environment that the launcher gives them."""
    play = '[[step]]\nname = "play"\ndo = "replay"\nbench = "bench-light-like"\nios = 2000\nrange = "64 MiB"\n'
    filled = FILLED.replace('do = "fill"\n', 'do = "fill"\nrange = "64 MiB"\n')
    (tmp_path / "plan.toml").write_text(HEAD + filled + play + 'idle_cap = "5 ms"\n')
    words = ["run", tmp_path / "plan.toml", "--virtual", "sata-tlc", "--capacity", "256MiB", "--quiet"]
    argv = [sys.executable, "-P", "-m", "ssdrig", *words, "--runs", tmp_path / "runs"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stderr
