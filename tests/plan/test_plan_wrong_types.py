"""plan/grammar.py on texts in which the value of one key is of a wrong type: every key, every type."""

import functools
import re

import pytest
from broken_plans import HEAD, STEP, refused

from ssdrig.base.errors import UsageError
from ssdrig.plan import grammar, shows
from ssdrig.plan.kinds import KINDS
from ssdrig.run import record

NOTHING = ("\x00", "\ufeff\ufeff", "\r", "x = 1979-05-27", "step = 3", "[step]", "step = []", "[[step]]\n" * 3, "")
WRONG = (
    "true",
    "1.5",
    "inf",
    "-1",
    "0x" + "f" * 900,
    '"\\u001b[2J"',
    "[]",
    "[[]]",
    "[{}]",
    "{}",
    '""',
    "$x",
    "07:32:00",
)
WRONG += ("{ a.b.c.d = 1 }", "[[[[[[[[[[1]]]]]]]]]]", "1979-05-27T07:32:00Z", '["load"]', '{ "load" = 1 }')
KEYS = grammar.TOP


@pytest.mark.parametrize("text", NOTHING)
def test_what_is_no_plan_at_all(text):
    refused(text)
    refused(HEAD + text)


@pytest.mark.parametrize("key", KEYS)
def test_a_wrong_type_on_the_first_level(key):
    lines = [line for line in HEAD.splitlines() if not line.startswith(f"{key} =")]
    for value in WRONG:
        text = "\n".join([*lines, f"{key} = {value}", STEP if key != "step" else ""])
        try:
            grammar.read(text)
        except UsageError:
            continue
        assert (key, value) in {(k, "[]") for k in ("needs", "scaled", "show")} | {
            (k, "{}") for k in ("param", "variant", "workload")
        } | {("name", '"load"')}


SWEPT = """[[step]]
name = "r"
do = "repeat"
times = 1
  [[step.step]]
  name = "s"
  do = "load"
  pattern = "random"
  read = 0
  block = "4 KiB"
  over = [{ qd = [1, 4] }]
  time = "1 s"
"""
# what a step of a kind must say
SAYS = {
    "load": {"pattern": '"random"', "read": "0", "block": '"4 KiB"', "time": '"60 s"'},
    "repeat": {"times": "2"},
    "choose": {"from": '"r/s"', "points": '[{ at = "max" }]'},
    "idle": {"time": '"1 s"'},
    "set": {"write_cache": '"on"'},
    "ask": {"text": '"x"'},
    "replay": {"bench": '"bench-light-like"', "ios": "1000", "range": '"40 %"'},
    "wear": {"block": '"4 KiB"', "slice": '"0.1 %"', "total": '"1 %"'},
    "cuts": {"cuts": "30"},
}
OF_ALL = ("name", "do", "use", "needs", "optional", "step")
RIGHT = {("needs", "[]"), ("optional", "true"), ("windows", "{}")}


def one_step(kind, key=None, value=None) -> str:
    """A plan whose last step is whole and right, but for one key's value."""
    says = {"name": '"a"', "do": f'"{kind}"', **SAYS.get(kind, {})} | ({key: value} if key else {})
    inside = '[[step.step]]\nname = "p"\ndo = "purge"\n' if kind == "repeat" and key != "step" else ""
    lines = "".join(f"{name} = {value}\n" for name, value in says.items())
    return f"{HEAD}{SWEPT if kind == 'choose' else ''}[[step]]\n{lines}{inside}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_type_of_every_key_of_every_step(kind):
    """The sentence names the key; where that is no TOML, the line."""
    grammar.read(one_step(kind))
    for key in (*KINDS[kind].KEYS, *OF_ALL):
        for value in WRONG:
            text = one_step(kind, key, value)
            if (key, value) in RIGHT:
                grammar.read(text)
                continue
            words = refused(text)
            expected, seen, do = re.fullmatch(r"expected (.+?); seen (.+); do: (.+)", words).groups()
            line = 1 + text[: text.rindex(f"{key} = {value}")].count("\n")
            named = re.search(rf"\b{key}\b", f"{expected} {seen}") or f"(at line {line}, " in seen
            assert named and "my.toml" in seen, (key, value, words)


@pytest.mark.parametrize("do", ["", 'do = "cut"\n', 'do = ["load"]\n'])
def test_a_step_of_no_kind(do):
    assert re.search(r"\bdo\b|traces", refused(f'{HEAD}[[step]]\nname = "a"\n{do}'))


SHOW = re.compile(r"^\[\[show\]\]\n((?:(?!\[).*\n?)*)", re.MULTILINE)
RIGHT_IN_A_VIEW = {("top", "1.5"), ("of", '["load"]')}  # the second where the plan has a step of that name


@functools.cache
def parts_shown() -> list[tuple[str, re.Match]]:
    """Each shipped plan's text with each of its parts that say a view; the shortest text first, for it is read
    hundreds of times."""
    texts = sorted([record.PLAN.read_text(), *(grammar.find(name)[0] for name in grammar.shipped())], key=len)
    return [(text, part) for text in texts for part in SHOW.finditer(text)]


def shown(view: str) -> tuple[str, re.Match]:
    """A shipped plan that has this view, and the part of its text that says it."""
    for text, part in parts_shown():
        if re.search(rf'^view *= "{view}"', part[1], re.MULTILINE):
            return text, part
    pytest.fail(f"no shipped plan has the view {view}")


@pytest.mark.slow
@pytest.mark.parametrize("view", shows.views())
def test_a_wrong_type_of_every_key_of_every_view(view):
    """The plan is right but for this value, so nothing else can be refused; the sentence names the key, or the line."""
    text, part = shown(view)
    line = 2 + text[: part.start()].count("\n")
    grammar.read(text, "my.toml")
    for key in ("view", *shows.views()[view].required, *shows.views()[view].optional):
        others = "".join(f"{line}\n" for line in part[1].splitlines() if not re.match(rf"{key} *=", line))
        for value in WRONG:
            wrong = f"{text[: part.start(1)]}{key} = {value}\n{others}{text[part.end(1) :]}"
            try:
                grammar.read(wrong, "my.toml")
            except UsageError as error:
                named = re.search(rf"\b{key}\b", f"{error.expected} {error.seen}") or f"(at line {line}, " in error.seen
                assert named and "my.toml" in error.seen, (key, value, str(error))
                continue
            assert (key, value) in RIGHT_IN_A_VIEW, (key, value)


def test_a_view_that_there_is_not():
    text, part = shown("steady")
    wrong = text[: part.start(1)] + re.sub(r'"steady"', '"staedy"', part[1], count=1) + text[part.end(1) :]
    assert "do you mean 'steady'?" in refused(wrong)
