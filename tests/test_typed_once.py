"""Knowledge has one home. Each test here fails as soon as a second copy of it appears, or where both ends of a contract
differ."""

import re
from pathlib import Path

import pytest

REPO = Path(__file__).parents[1]
HOST = REPO / "host/ssdrig"
SOURCES = {str(p.relative_to(HOST)): p.read_text() for p in sorted(HOST.rglob("*.py"))}
FIRMWARE = {p.name: p.read_text() for p in sorted((REPO / "firmware").glob("*.py"))}


def places(pattern: str, sources: dict[str, str] = SOURCES) -> set[str]:
    """The files in which the regular expression matches."""
    return {name for name, text in sources.items() if re.search(pattern, text)}


ROUNDED = r"\{[^{}]*(?:/|>>)\s*[\w.*]+:[^{}]*\}\s*(?:[kKMGTP]i?B)\b"  # {count / 1e9:.2f} GB
UNIT_TABLE = r"""(?:["'](?:GB|GiB|TB)["']\s*[:,]\s*(?:1e|10|1 <<))|(?:(?:1e9|10\*\*9|1 << 30)\s*,\s*["']G)"""


def test_bytes_and_durations_are_put_into_words_in_one_place():
    assert places(UNIT_TABLE) == {"words.py"}
    assert places(ROUNDED) == set()
    assert places(r"divmod\([^()]*, 3600\)") == {"words.py"}


@pytest.mark.parametrize("text", ['f"{n / 1e9:.2f} GB"', 'f"{len(x) / 1e6:.1f} MB"', "f'{a[0] / GB:.3g} GB'"])
def test_a_second_way_to_round_bytes_is_found(text):
    assert places(ROUNDED, {"new.py": text})
