"""plan/grammar.py: every text is a Plan or one UsageError that says where and what to do. What the sentences say is in
test_plan_wrong.py and in schemas/examples/plan."""

import copy
import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.base.errors import UsageError
from ssdrig.plan import document, expand, grammar
from ssdrig.plan.kinds import KINDS

DRIVE = {"capacity_bytes": 256 << 30, "raw_nand_bytes": 280 << 30, "logical_block_bytes": 512}
HEAD = 'schema = 1\nname = "x"\ntitle = "X"\nsource = "none"\nabout = "A test."\n'
STEP = '[[step]]\nname = "load"\ndo = "load"\npattern = "random"\nread = 0\nblock = "4 KiB"\ntime = "60 s"\n'


@pytest.mark.parametrize("name", grammar.shipped())
def test_a_shipped_plan_has_the_name_of_its_file(name):
    plan = grammar.read(*grammar.find(name))
    assert plan.name == name and not plan.scaled and plan.text == grammar.shipped()[name].read_text()
    # few cuts are few, on a real drive too
    assert grammar.read(plan.text, name, "quick").scaled == (name != "powerloss")


def test_files(tmp_path):
    path = tmp_path / "my.toml"
    good = (HEAD + STEP).encode()
    for data in (b"\xef\xbb\xbf" + good, good.replace(b"\n", b"\r\n")):
        path.write_bytes(data)
        assert grammar.read(*grammar.find(str(path))).name == "x"
    for data, sentence in (
        (good + b"# \xff", "byte 0xff at"),
        (b"#" * (1 << 20), "at most 64 KiB"),
        (good.replace(b"\n", b"\r"), "lines of at most|TOML"),
        (b"a." * 400 + b"a = 1\n" * 2, "TOML"),
    ):
        path.write_bytes(data)
        with pytest.raises(UsageError, match=sentence):
            grammar.read(*grammar.find(str(path)))
    for name in (tmp_path, tmp_path / "none.toml", "x\0.toml", "\udcff.toml", "", "a" * 5000 + ".toml", "consistenzy"):
        with pytest.raises(UsageError):
            grammar.find(str(name))
    (tmp_path / "a.toml").mkdir()
    with pytest.raises(UsageError, match="Is a directory"):
        grammar.find(str(tmp_path / "a.toml"))


@pytest.mark.parametrize("text", ["a." * 2000 + "a = 1", "[" + "a." * 2000 + "a]"])
def test_a_key_of_many_parts_is_refused_before_it_is_parsed(text):
    """tomllib takes 8 s for one of 20 000 parts, and four times as long for twice as many."""
    with pytest.raises(UsageError, match="lines of at most 1000 characters"):
        grammar.read(text)


ODD = [
    None,
    True,
    False,
    0,
    -1,
    1 << 70,
    1.5,
    float("inf"),
    float("nan"),
    "",
    "$",
    "$x",
    "$time",
    "0 s",
    "60 s",
    "4 KiB",
]
ODD += ["2 x", "0 %", "raw 75 %", "all", "pts", "load", "\x00", "\u202e", "٦0 s", "9" * 400 + " B", [], {}, [[]], [{}]]
ODD += [
    {"a": []},
    ["load"],
    [1, "1"],
    {"4 KiB": 100},
    [{"qd": [1, 2]}],
    [{"time": "1 h"}],
    "iops",
    "rounds/point",
    "a=b",
]
WORDS = sorted({key for kind in KINDS.values() for key in kind.KEYS} | {*grammar.TOP, "x", "", "a b", "é"})
EXAMPLES = sorted((Path(__file__).parents[2] / "schemas/examples/plan").glob("good-*.toml"))
SHIPPED = [document.parse(path.read_text(), path.name) for path in [*grammar.shipped().values(), *EXAMPLES]]


def mutated(tables: dict, rng: random.Random) -> dict:
    """The same tables with a few places changed: a value replaced, taken from elsewhere, left out or added; a key
    renamed."""
    tables = copy.deepcopy(tables)
    for _ in range(rng.choice((1, 1, 2, 3))):
        places: list = []
        waiting: list = [tables]
        while waiting:
            table = waiting.pop()
            keys = list(table) if isinstance(table, dict) else range(len(table))
            places += [(table, key) for key in keys]
            waiting += [table[key] for key in keys if isinstance(table[key], (dict, list))]
        if not places:
            return tables
        table, key = rng.choice(places)
        other, other_key = rng.choice(places)
        what = rng.random()
        if what < 0.4:
            table[key] = copy.deepcopy(rng.choice(ODD))
        elif what < 0.6:
            table[key] = copy.deepcopy(other[other_key])
        elif what < 0.75:
            del table[key]
        elif isinstance(table, list):
            table.append(copy.deepcopy(other[other_key]))
        elif what < 0.9:
            table[rng.choice(WORDS)] = table.pop(key)
        else:
            table[rng.choice(WORDS)] = copy.deepcopy(rng.choice(ODD))
    return tables


def outcome(tables: dict) -> str:
    try:
        document.check(tables, "my.toml")
        plan = grammar.of_tables(tables, "", "my.toml")
    except UsageError as error:
        assert str(error).isprintable() and "my.toml" in error.seen + error.expected, error
        return "refused"
    try:
        expand.expand(plan, DRIVE, frozenset(grammar.CAPABILITIES))
    except UsageError:
        return "does not fit the drive"
    return "expanded"


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 2**32))
def test_any_change_of_a_shipped_plan_is_a_plan_or_a_usage_error(seed):
    rng = random.Random(seed)
    assert outcome(mutated(rng.choice(SHIPPED), rng))


def test_the_changes_make_both():
    outcomes = [outcome(mutated(SHIPPED[seed % len(SHIPPED)], random.Random(seed))) for seed in range(60)]
    assert outcomes.count("refused") > 30 and "expanded" in outcomes


def test_any_change_of_the_text_is_a_plan_or_a_usage_error():
    rng = random.Random(11)
    texts = [path.read_text() for path in grammar.shipped().values()]
    for _ in range(100):
        text = rng.choice(texts)
        for _ in range(rng.choice((1, 2, 5))):
            begin = rng.randrange(len(text))
            text = (
                text[:begin] + rng.choice(["", '"', "[", "]", "{", "\n", "\0", "=", ".", "٦", "$"]) + text[begin + 1 :]
            )
        try:
            grammar.read(text)
        except UsageError as error:
            assert str(error).isprintable()


def test_a_plan_of_a_run_has_its_parameters_however_long_they_are():
    text = HEAD + "[param]\nqd = [1, 2]\n" + STEP + 'over = [{ qd = "$qd" }]\n'
    words = f"[{','.join(map(str, range(1, 260)))}]"
    plan = grammar.read(text, sets={"qd": words})
    document = json.loads(json.dumps({"text": text, "variant": None, "params": plan.params}))
    assert len(words) < 1000 < len(json.dumps(plan.params["qd"]))
    assert grammar.of_run(document, "run.json") == plan
