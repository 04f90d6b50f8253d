"""What a release names: one version everywhere, and the files that hosts of repositories look for."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from ssdrig import __version__

ROOT = Path(__file__).resolve().parents[2]


def constant(path: str, name: str) -> str:
    """The string that a module assigns to a name."""
    tree = ast.parse((ROOT / path).read_text())
    values = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name
    ]
    return ast.literal_eval(values[0])


def citation() -> dict[str, str]:
    """Key -> text of the top level of CITATION.cff, which has one line for each."""
    lines = re.findall(r"^([a-z-]+):(.*)((?:\n +.*)*)", (ROOT / "CITATION.cff").read_text(), re.M)
    return {key: (text + more).strip() for key, text, more in lines}


@pytest.mark.parametrize(
    "version",
    [
        pytest.param(lambda: tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"], id="package"),
        pytest.param(lambda: constant("firmware/rig.py", "FIRMWARE"), id="firmware"),
        pytest.param(lambda: citation()["version"], id="citation"),
        pytest.param(lambda: re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)[1], id="changelog"),
    ],
)
def test_version_is_the_same(version):
    assert version() == __version__


def test_citation_has_what_its_format_requires():
    """Citation File Format 1.2.0: cff-version, message, title and authors are required."""
    fields = citation()
    assert fields["cff-version"] == "1.2.0" and fields["license"] == "MIT"
    assert all(fields[key] for key in ("message", "title", "authors"))
