"""What is committed: the folders and files that the project consists of, and nothing that came in by accident."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOP = {
    ".ci",
    ".gitignore",
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "firmware",
    "hardware",
    "host",
    "pyproject.toml",
    "requirements-bench.lock",
    "requirements-completion.lock",
    "requirements-hardware-test.lock",
    "requirements-lake-test.lock",
    "requirements-lake.lock",
    "requirements-serve.lock",
    "requirements-test.lock",
    "requirements-uv.lock",
    "requirements.lock",
    "schemas",
    "ssdrig",
    "tests",
}
LARGEST_BYTES = 4_000_000  # the board of KiCad is 2.5 MB; a package that was fetched is larger


def committed() -> list[str]:
    """Paths that git tracks; skips where this is no clone or git is absent."""
    try:
        done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("git is not installed")
    if done.returncode or not (ROOT / ".git").exists():
        pytest.skip("this tree is no clone of git")
    return done.stdout.split("\0")[:-1]


def test_the_top_level_is_fixed():
    assert {path.split("/")[0] for path in committed()} == TOP


def test_no_committed_file_is_large():
    files = [ROOT / path for path in committed() if (ROOT / path).is_file()]
    assert [str(path) for path in files if path.stat().st_size > LARGEST_BYTES] == []
