"""The pages in host/docs: the generated ones are what the code gives, the others name what exists; the arrows of the
rooms all go one way."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "host" / "docs"
sys.path.insert(0, str(DOCS))

import make
import rooms

from selfcheck.__main__ import registry
from ssdrig.base.errors import SsdrigError, exit_codes
from ssdrig.cli import COMMANDS
from ssdrig.plan import grammar

PAGES = {path.relative_to(ROOT): path.read_text() for path in [ROOT / "README.md", *sorted(DOCS.glob("**/*.md"))]}


@pytest.mark.slow
def test_generated_pages_are_what_the_code_gives():
    differ = [str(path.relative_to(ROOT)) for path, text in make.pages().items() if path.read_text() != text]
    assert not differ, f"{', '.join(differ)} differ from the code: run `python host/docs/make.py`"


@pytest.mark.slow
def test_no_file_imports_what_imports_it():
    uses = rooms.of_the_host()
    assert len(uses) > 100 and "ssdrig.runs.journal" in uses["ssdrig.meter.samples"]
    assert rooms.circles(uses) == []


def test_no_room_uses_what_uses_it():
    assert rooms.circles(rooms.joined(rooms.of_the_host())) == []
    assert rooms.circles(rooms.house(rooms.of_the_host())) == []


def test_rooms_floors_and_arrows_do_not_grow():
    uses = rooms.joined(rooms.of_the_host())
    assert len(uses) <= 25 and sum(map(len, uses.values())) <= 130 and max(rooms.floors(uses).values()) < 13


def test_the_firmware_has_no_circles():
    files = {path.stem: path for path in (ROOT / "firmware").glob("*.py")}
    uses = rooms.imports(files)
    assert "sampler" in uses["rig"] and rooms.circles(uses) == []


@pytest.mark.parametrize(
    "files, circle",
    [
        (
            {
                "ssdrig/a.py": "if TYPE_CHECKING:\n    from ssdrig import c",
                "ssdrig/b.py": "import ssdrig.c",
                "ssdrig/c.py": "import ssdrig.a",
            },
            ["ssdrig.a", "ssdrig.c"],
        ),
        (
            {"ssdrig/a.py": "import ssdrig.b", "ssdrig/b.py": "def f():\n    from ssdrig import a"},
            ["ssdrig.a", "ssdrig.b"],
        ),
        (
            {
                "ssdrig/a/x.py": "from ssdrig.b.y import z",
                "ssdrig/b/y.py": "import ssdrig.c",
                "ssdrig/c.py": "import ssdrig.a.x",
            },
            ["ssdrig.a.x", "ssdrig.b.y", "ssdrig.c"],
        ),
    ],
)
def test_a_circle_is_found(tmp_path, files, circle):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert rooms.circles(rooms.imports(rooms.modules(tmp_path))) == [circle]


def test_a_circle_of_rooms_is_found_where_the_files_have_none():
    uses = {"ssdrig.a.x": {"ssdrig.b.x"}, "ssdrig.b.x": set(), "ssdrig.b.y": {"ssdrig.a.y"}, "ssdrig.a.y": set()}
    assert rooms.circles(uses) == [] and rooms.circles(rooms.joined(uses)) == [["a", "b"]]
    with pytest.raises(ValueError, match="import each other.*'a', 'b'"):
        rooms.floors(rooms.joined(uses))


def test_every_room_and_every_arrow_stands_in_the_map_and_the_picture():
    page, picture = (DOCS / "develop/architecture.md").read_text(), (DOCS / "develop/rooms.svg").read_text()
    house = rooms.house(rooms.of_the_host())
    for name, used in house.items():
        row = re.search(rf"^\| `{name}` \| [^|]+ \|([^|]*)\|$", page, re.MULTILINE)
        assert row and set(re.findall(r"`([\w/ ⇄]+)`", row[1])) == used, name
        assert f">{name}</text>" in picture
    assert picture.count('marker-end="') == sum(map(len, rooms.shortest(house).values()))
    folders = {path.name for path in (ROOT / "host" / "ssdrig").iterdir() if (path / "__init__.py").exists()}
    assert folders - {rooms.GROUND} <= {room for name in house for room in name.split(" ⇄ ")}


def test_exit_codes_are_the_classes_own():
    codes = exit_codes()
    errors = SsdrigError.__subclasses__()
    assert len(codes) == len(errors) + 3 and {error.exit_code for error in errors} <= codes.keys()
    assert (codes[3][0], codes[6][0], codes[9][0]) == ("unsafe target", "upload incomplete", "tool missing")


def test_every_file_and_link_that_a_page_names_exists():
    for page, text in PAGES.items():
        prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        for path in re.findall(r"`((?:firmware|hardware|host|schemas|tests)/[\w./-]+)`", prose):
            assert (ROOT / path).exists(), f"{page}: {path}"
        for link in re.findall(r"\]\(((?!https?:)[^)#\s]+)", prose):
            assert ((ROOT / page).parent / link).exists(), f"{page}: {link}"


def test_every_command_and_bench_that_a_page_names_exists():
    for page, text in PAGES.items():
        words = set(re.findall(r"\./ssdrig ([a-z][a-z-]*)", text))
        assert words <= {*COMMANDS, "test", "setup"}, page
        named = set(re.findall(r"\./ssdrig selfcheck ([a-z][\w-]+)", text))
        assert named <= {*registry(), "all"}, page


def test_every_option_that_a_page_names_exists():
    known = {"--json", "--quick", "--emulator", "--extra", "--hil-port", "--hil-serial", "--hil-cut"}
    for name in COMMANDS:
        known |= set(re.findall(r"--[\w-]+", "\n".join(make.described(make.parser_of(name)))))
    for page, text in PAGES.items():
        prose = "\n".join(line for line in text.splitlines() if "./ssdrig" in line or line.startswith("|"))
        unknown = set(re.findall(r"(?<![\w-])--[a-z][\w-]+", prose)) - known
        assert not unknown, f"{page}: {unknown}"


def test_every_page_is_reached_from_the_readme():
    """From README.md by links alone."""
    seen, ahead = set(), [Path("README.md")]
    while ahead:
        page = ahead.pop()
        if page not in seen and page in PAGES:
            seen.add(page)
            for link in re.findall(r"\]\(((?!https?:)[^)#\s]+\.md)", PAGES[page]):
                ahead.append(((ROOT / page).parent / link).resolve().relative_to(ROOT.resolve()))
    fragments = {page for page in PAGES if page.parent.name == "changes"}  # a release joins them into CHANGELOG.md
    assert PAGES.keys() - fragments == seen - fragments


def test_plan_of_its_page_is_a_plan():
    page = (DOCS / "start/first-plan.md").read_text()
    (text,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    plan = grammar.of_variants(text, "mix.toml")[None]
    assert (len(plan.steps), len(plan.variants), len(plan.shows)) == (3, 1, 1)
    assert "a plan of 3 steps, 1 variant, 1 view" in page


def test_a_decision_fits_on_a_screen():
    for page in (DOCS / "develop/decisions").glob("*.md"):
        lines = page.read_text().splitlines()
        assert len(lines) <= 45 and max(map(len, lines)) <= 130, page.name
