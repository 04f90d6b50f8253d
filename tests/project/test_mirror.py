"""Which modules have no test file of their name: `python tests/project/test_mirror.py` lists them, and they only become
fewer."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST = 368


def lacking() -> list[str]:
    """Modules of host/ssdrig without a test_<module>.py, a view or a room without a test_<folder>.py."""
    tests = {path.stem.removeprefix("test_") for path in ROOT.glob("tests/*/test_*.py")}
    package = ROOT / "host/ssdrig"
    paths = []
    for path in sorted(package.rglob("*.py")):
        name = path.parent.name if path.stem in ("__init__", "html") else path.stem
        if name not in tests:
            paths.append(path.relative_to(package).as_posix())
    return paths


def test_modules_without_a_test_of_their_name_only_become_fewer():
    assert len(lacking()) <= MOST


if __name__ == "__main__":
    print("\n".join(lacking()))
