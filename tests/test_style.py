"""ruff and mypy find nothing; the rules and what is exempt stand in pyproject.toml."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ["host", "tests", "firmware", "hardware"]


def says(*words: str) -> str:
    """What a checker prints about this tree; "" when it finds nothing."""
    done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("ruff", "format", "--check", "--quiet", *PYTHON),
        ("ruff", "check", "--quiet", "--output-format", "concise", *PYTHON),
        pytest.param(("mypy", "--no-error-summary", "host/ssdrig"), marks=pytest.mark.slow),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_nothing_is_found(words):
    assert says(*words) == ""


@pytest.mark.slow
def test_the_checkers_find_something_where_there_is(tmp_path):
    """The rules are in force: a name that is not there, a wrong type."""
    bad = tmp_path / "bad.py"
    bad.write_text(f"def f(x: int) -> str:\n    return x + absent  # {'x' * 120}\n\n\nf('text')\n")
    settings = str(ROOT / "pyproject.toml")
    lint = says("ruff", "check", "--config", settings, "--no-cache", "--output-format", "concise", str(bad))
    assert "F821" in lint
    types = says("mypy", "--config-file", settings, "--cache-dir", str(tmp_path / "cache"), str(bad))
    assert "[name-defined]" in types and "[arg-type]" in types


def test_no_code_is_left_out_of_the_format():
    for folder in PYTHON:
        for path in (ROOT / folder).rglob("*.py"):
            assert "# fmt: " + "skip" not in path.read_text(), path
