"""ruff and pyrefly find nothing; the rules and what is exempt stand in pyproject.toml."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = str(ROOT / "pyproject.toml")
PYTHON = ["host", "tests", "firmware", "hardware"]
# of the environment that runs the tests, wherever that is
TYPES = (
    "pyrefly",
    "check",
    "--output-format",
    "min-text",
    "--summary=none",
    "--python-interpreter-path",
    sys.executable,
)
# what is wrong with types, and what pyrefly calls it
A = "class A:\n    x: int = 1\n\n    def f(self, x: int) -> int:\n        return x\n\n\n"
WRONG_TYPES = {
    "an argument": ("def f(x: int): ...\n\n\nf('text')", "bad-argument-type"),
    "an argument of NumPy's": ("import numpy\n\nnumpy.zeros(3, absent=4)", "no-matching-overload"),
    "None as an argument": ("def f(x: int | None):\n    abs(x)", "bad-argument-type"),
    "an argument too few": (f"{A}A().f()", "missing-argument"),
    "an argument too many": (f"{A}A().f(1, 2)", "bad-argument-count"),
    "an argument of another name": (f"{A}A().f(y=1)", "unexpected-keyword"),
    "no attribute": (f"{A}A().y", "missing-attribute"),
    "no attribute of None": ("def f(x: str | None):\n    x.strip()", "missing-attribute"),
    "no attribute of a module": ("import ssdrig.runs.walk\n\nssdrig.walk.absent", "missing-attribute"),
    "no name of a module": ("from ssdrig.runs.walk import absent", "missing-module-attribute"),
    "no module": ("import ssdrig.absent", "missing-import"),
    "no name": ("absent", "unknown-name"),
    "a coroutine that nobody awaits": (
        "async def f() -> None: ...\n\n\nasync def g() -> None:\n    f()",
        "unused-coroutine",
    ),
    "no return": ("def f(x: int) -> int:\n    if x:\n        return 1", "bad-return"),
    "a returned value": ("def f(x: int) -> str:\n    return x", "bad-return"),
    "an assigned value": ("x: int = 'text'", "bad-assignment"),
    "an operand": ("def f(x: int | None):\n    x + 1", "unsupported-operation"),
    "an operand after an if": (
        "def f(x: bool):\n    y = 1\n    if x:\n        y = 'no'\n    y + 1",
        "unsupported-operation",
    ),
    "a key": ("def f(x: dict[str, int]):\n    x[1]", "bad-index"),
    "a list of others": ("def f(x: list[float]): ...\n\n\ndef g(x: list[int]):\n    f(x)", "bad-argument-type"),
    "another argument of a subclass": (f"{A}class B(A):\n    def f(self, x: str) -> int: ...", "bad-override"),
    "another value of a subclass": (f"{A}class B(A):\n    def f(self, x: int) -> str: ...", "bad-override"),
    "fewer arguments of a subclass": (f"{A}class B(A):\n    def f(self) -> int: ...", "bad-override"),
    "another attribute of a subclass": (f"{A}class B(A):\n    x: str = ''", "bad-override-mutable-attribute"),
}


def says(*words: str) -> str:
    """What a checker prints about this tree; "" when it finds nothing."""
    done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("ruff", "format", "--check", "--quiet", "--no-cache", *PYTHON),
        ("ruff", "check", "--quiet", "--no-cache", "--output-format", "concise", *PYTHON),
        pytest.param(TYPES, marks=pytest.mark.slow),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_nothing_is_found(words):
    assert says(*words) == ""


@pytest.mark.parametrize(
    "code, rule",
    [
        ("def f():\n    return absent", "F821"),
        (f"f = 1  # {'x' * 120}", "E501"),
        ("def f():\n    return 1\n\n\ndef f():\n    return 2", "F811"),
        ("'%d %d' % (1,)", "F507"),
        ("'%d' % 'text'", "PLE1307"),
    ],
)
def test_ruff_finds_something_where_there_is(code, rule, tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text(code + "\n")
    assert rule in says("ruff", "check", "--config", SETTINGS, "--no-cache", "--output-format", "concise", str(bad))


@pytest.mark.slow
def test_pyrefly_finds_what_is_wrong_with_types(tmp_path):
    files = {tmp_path / f"bad{i}.py": case for i, case in enumerate(WRONG_TYPES.values())}
    for path, (code, _) in files.items():
        path.write_text(code + "\n")
    lines = says(*TYPES, "--config", SETTINGS, *map(str, files)).splitlines()
    errors = {
        match[1]: match[2] for match in (re.search(r"(bad\d+\.py):.*\[([\w-]+)\]$", line) for line in lines) if match
    }
    assert [errors.get(path.name) for path in files] == [kind for _, kind in files.values()]


def test_no_code_is_left_out_of_the_format():
    for folder in PYTHON:
        for path in (ROOT / folder).rglob("*.py"):
            assert "# fmt: " + "skip" not in path.read_text(), path
