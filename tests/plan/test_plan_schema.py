"""schemas/plan.md says what the code reads, and schemas/examples/plan is read or refused as it says."""

import re
from pathlib import Path

import pytest

from ssdrig.base.errors import UsageError
from ssdrig.plan import document, expand, formula, grammar, quantity, reader, shows, values
from ssdrig.plan import kinds as steps

SCHEMAS = Path(__file__).parents[2] / "schemas"
TEXT = (SCHEMAS / "plan.md").read_text()
GOOD = sorted((SCHEMAS / "examples/plan").glob("good-*.toml"))
BAD = sorted((SCHEMAS / "examples/plan").glob("bad-*.toml"))
DRIVE = {"capacity_bytes": 256 << 30, "raw_nand_bytes": 280 << 30, "logical_block_bytes": 512}


def section(title):
    """The text below a heading, up to the next one."""
    return re.search(rf"^#+ {title}\n(.*?)(?=^#+ |\Z)", TEXT, re.MULTILINE | re.DOTALL)[1]


def rows(text):
    """The tables of a text: the cells of each row, without the heads and the rules below them."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    bodies = [line for line, below in zip(lines, [*lines[1:], ""]) if not {line[:4], below[:4]} & {"|---"}]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in bodies]


@pytest.mark.parametrize("kind", steps.KINDS)
def test_every_key_of_a_kind_of_step_is_described(kind):
    described = [row[:3] for row in rows(section(kind))]
    assert described == [
        [
            f"`{key}`",
            ", ".join(f"`{document.shown(word)}`" for word in spec.words) or spec.kind,
            "required" if spec.required else "–" if spec.default is None else f"`{document.shown(spec.default)}`",
        ]
        for key, spec in steps.KINDS[kind].KEYS.items()
    ]
    text = section(kind)
    for need in {spec.needs for spec in steps.KINDS[kind].KEYS.values() if spec.needs}:
        assert f"needs `{need}`" in text
    for need in getattr(steps.KINDS[kind], "NEEDS", ()):
        assert f"Needs `{need}`." in text


def test_nothing_else_is_missing_or_too_much():
    plan = section("The plan")
    assert [key for row in rows(plan) for key in re.findall(r"`([a-z]+)`", row[0])] == list(grammar.TOP)
    assert all(f"`{word}`" in plan for word in grammar.CAPABILITIES)
    assert [row[0].strip("`") for row in rows(section("Steps"))] == list(reader.STEP_KEYS)
    kinds = {kind for row in rows(section("Quantities")) for kind in row[0].split(", ")}
    assert kinds == {*quantity.EXPECTED, *values.READERS}
    for kind, units in quantity.UNITS.items():
        if kind in ("bytes", "time", "rate"):
            assert f"units {' '.join(units)} |" in section("Quantities")
    assert set(re.findall(r"^### (\w+)$", TEXT, re.MULTILINE)) == set(steps.KINDS)
    views = {row[0].strip("`"): [re.findall("`([a-z]+)`", cell) for cell in row[1:]] for row in rows(section("Views"))}
    assert {name: views[name] for name in shows.views()} == {
        name: [list(view.required), list(view.optional)] for name, view in shows.views().items()
    }
    listed = {row[0].strip("`"): row[1] for row in rows(section("Views")) if row[0].strip("`") not in shows.views()}
    assert listed == {name: unit or "–" for name, (_, unit) in formula.VALUES.items()}
    assert {end for row in rows(section("until")) for end in re.findall(r"^`\{ (\w+)", row[0])} == set(values.ENDS)
    assert all(f"`{key}`" in section("over") for key in grammar.check.NOT_SWEPT)
    facts = [[cell.strip("`") for cell in row[:2]] for row in rows(section("Headline")) if len(row) == 3]
    assert facts == [[name, fact] for name, view in shows.views().items() for fact in view.facts]


def test_the_example_of_the_description_is_a_plan():
    example = re.search(r"```toml\n(.*?)```", TEXT, re.DOTALL)[1]
    plan = grammar.read(example)
    assert [step.path for step in plan.steps] == ["purge", "fill", "load"] and plan.variants == ("quick",)


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_broken_plan_gives_the_sentence_in_its_first_line(path):
    text, where = grammar.find(str(path))
    with pytest.raises(UsageError) as raised:
        grammar.read(text, where)
    assert f"# {raised.value}" == text.split("\n", 1)[0]


def test_there_are_thirty_broken_plans_with_thirty_sentences():
    sentences = {path.read_text().split("\n", 1)[0].replace(path.name, "") for path in BAD}
    assert len(sentences) == len(BAD) >= 30
    assert all(re.fullmatch(r"# expected .+; seen .+; do: .+", sentence) for sentence in sentences)


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_plan_is_read_with_all_of_its_variants(path):
    text, where = grammar.find(str(path))
    plans = grammar.of_variants(text, where)
    assert [*plans] == [None, *grammar.read(text, where).variants]
    for variant in plans:
        plan = grammar.read(text, where, variant)
        assert plan == plans[variant]
        assert expand.expand(plan, DRIVE, frozenset(grammar.CAPABILITIES)) and plan.name == path.stem[5:]


def test_the_good_plans_use_every_key_and_every_view():
    plans = [grammar.read(*grammar.find(str(path))) for path in [*GOOD, *grammar.shipped().values()]]
    used = {(step.do, key) for plan in plans for step in grammar.every(plan.steps) for key in step.source}
    missing = {(kind, key) for kind, module in steps.KINDS.items() for key in module.KEYS} - used
    assert missing == set()
    assert {show["view"] for plan in plans for show in plan.shows} == set(shows.views())
