"""Counts turns of phrase that the style page replaces, by room; the counts may only fall.

`python tests/project/test_english.py` prints the counts, `... drive` also each place of that room. After an edit, lower
the room's limit here.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# what to write instead
PROSE = {
    r"says?|said": "reports, states, contains",
    r"tells?|told": "reports; distinguishes",
    r"nobody|somebody|whoever|a person": "the user; passive",
    r"lies|lay|lying (?:there|in|on)": "is, is stored, falls",
    r"stands|stood": "is, appears",
    r"behind": "after",
    r"so (?:many|long|much|few)": "this many, that long, N",
    r"beside": "next to, besides",
    r"at once": "immediately; together",
    r"anew": "again, from scratch",
    r"of which": "whose, including",
    r"by itself|of its own": "on its own",
    r"but for": "except",
    r"or else|, else": "otherwise",
    r"mends?|mended|mending": "fix, correct",
    r"in the end|comes? to (?:its|an|the) end": "finally; finishes",
    r"(?:is|are|was|were) (?:no|none)(?! (?:longer|more))": "is not a, is invalid",
    r"(?<=, )for (?:it|they|he|she|a|an|the|no|nothing|this|that|what|each|all|its|their)": "because",
    r"(?:as long|as far) as": "while, if",
    r"what (?:is|was|are|were|it|they|has|had|have|does|did|stands|lies)": "a noun",
    r"is of|are of|was of|were of": "belongs to, covers",
    r"carr(?:y|ies|ied|ying) (?:\w+ )?out": "run, execute",
}
NAMES = {"said", "told", "found", "kept", "each", "here"}  # nouns of the field instead
# room -> limit, with room for a few that others add; the rooms that are not here share ELSEWHERE
LIMITS = {
    "base": 12,
    "blockio": 2,
    "commands": 13,
    "docs": 59,
    "drive": 54,
    "firmware": 7,
    "load": 13,
    "meter": 58,
    "plan": 35,
    "powerloss": 12,
    "publish": 12,
    "reading": 24,
    "report": 0,
    "retention": 2,
    "rig": 8,
    "run": 17,
    "runs": 4,
    "serve": 29,
    "setup": 6,
    "switch": 5,
    "views": 1,
    "virtual": 25,
}
ELSEWHERE = 3
PROSE_RE = re.compile("|".join(rf"\b(?:{pattern})\b" for pattern in PROSE), re.IGNORECASE)
ELLIPSIS = re.compile(r"(?:The same )?Of (?!course)\w")  # a docstring without its noun
COMMENT = re.compile(r"(?:^|\s)#(?!:)\s(.*)")
# where such a name may be bound: the files without are not parsed
MAY_BIND = re.compile(rf"\b_?(?:{'|'.join(sorted(NAMES))})\b\s*(?:[=:,()\]]|in\b|[|&+*/^-]+=)")
PYTHON = ("host", "firmware", "hardware", "tests")
TEXTS = {".toml", ".md", ".js", ".html"}


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) of each place that binds a variable, an argument, an attribute or a function to a name of NAMES."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.attr
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.FunctionDef):
            name = node.name
        else:
            continue
        if (name := name.removeprefix("_")) in NAMES:
            yield node.lineno, f"{name} ="


def prose(code: str, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, text) of each string and comment of a module; the expressions of an f-string are not prose."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value
    for number, line in enumerate(code.splitlines(), 1):
        if match := COMMENT.search(line):
            yield number, match[1]


def places(path: Path) -> list[tuple[int, str]]:
    """(line, phrase) of each phrase of a file that has a better one."""
    text = path.read_text()
    if path.suffix != ".py":
        return [(text.count("\n", 0, match.start()) + 1, match[0]) for match in PROSE_RE.finditer(text)]
    tree = ast.parse(text)
    hits = list(names(tree))
    for line, sentence in prose(text, tree):
        hits += [(line + sentence.count("\n", 0, m.start()), m[0].lower()) for m in PROSE_RE.finditer(sentence)]
        hits += [(line, "Of ...")] * bool(ELLIPSIS.match(sentence))
    return hits


def files() -> Iterator[tuple[str, Path]]:
    """(room, file) of all that is counted: the package, the firmware, the manual and its front page."""
    package = ROOT / "host/ssdrig"
    for path in sorted(package.rglob("*")):
        if path.suffix in {".py", *TEXTS} and path.parent != package:
            yield path.relative_to(package).parts[0], path
    for path in sorted((ROOT / "firmware").glob("*.py")):
        yield "firmware", path
    pages = [
        path for folder in ("start", "use", "how", "develop") for path in (ROOT / "host/docs" / folder).glob("*.md")
    ]
    for path in [ROOT / "README.md", *sorted(pages)]:
        yield "docs", path


def counts() -> Counter:
    """Room -> number of places; the rooms without a limit of their own are "elsewhere"."""
    rooms: Counter = Counter()
    for room, path in files():
        rooms[room if room in LIMITS else "elsewhere"] += len(places(path))
    return rooms


def test_no_room_has_more_than_its_limit():
    limits = {**LIMITS, "elsewhere": ELSEWHERE}
    over = {room: (number, limits[room]) for room, number in counts().items() if number > limits[room]}
    assert over == {}, f"python {Path(__file__).relative_to(ROOT)} ROOM prints each place; PROSE has what to write"


def test_no_name_of_the_code_is_a_word_of_saying():
    """Modules, variables, arguments, attributes and functions, those of the tests too."""
    paths = [path for room in PYTHON for path in (ROOT / room).rglob("*.py")]
    texts = {path: text for path in paths if MAY_BIND.search(text := path.read_text())}
    bound = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path, text in texts.items()
        for line, name in names(ast.parse(text))
    ]
    assert bound + [str(path.relative_to(ROOT)) for path in paths if path.stem in NAMES] == []


@pytest.mark.parametrize(
    "code, phrases",
    [
        ("found = 1", ["found ="]),
        ("def f(each): ...", ["each ="]),
        ("x.found = f(kept=1)", ["found ="]),
        ("x = y.found", []),
        ("f'{found} beside it'", ["beside"]),
        ("f'{found} {kept}'", []),
        ("x = 1  # it lies behind", ["lies", "behind"]),
        ("'Of a run: its name.'", ["Of ..."]),
        ("'A line. It says so much.'", ["says", "so much"]),
        ("'beside'", []),
    ],
)
def test_phrase_is_counted(code, phrases, tmp_path):
    (tmp_path / "x.py").write_text(code)
    assert [phrase for _, phrase in places(tmp_path / "x.py")] == phrases


if __name__ == "__main__":
    rooms = Counter()
    for room, path in files():
        hits = places(path)
        rooms[room] += len(hits)
        if room in sys.argv[1:]:
            for line, phrase in sorted(hits):
                print(f"{path.relative_to(ROOT)}:{line}: {phrase}")
    for room, number in sorted(rooms.items()):
        print(f"{room:12} {number}")
