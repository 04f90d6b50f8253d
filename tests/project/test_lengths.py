"""One module, one subject: a file that grows past the limit is split by subject, not by length."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMIT = 900  # lines


def test_no_file_is_past_the_limit():
    files = [path for room in ("host", "firmware", "hardware", "tests") for path in (ROOT / room).rglob("*.py")]
    long = {str(path.relative_to(ROOT)): n for path in files if (n := len(path.read_text().splitlines())) > LIMIT}
    assert len(files) > 500 and long == {}
