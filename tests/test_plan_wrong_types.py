"""plan/grammar.py on texts in which the value of one key is of a wrong type: every key, every type."""

import pytest
from broken_plans import HEAD, STEP, refused

from ssdrig.errors import UsageError
from ssdrig.plan import document, grammar, shows
from ssdrig.steps import KINDS

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
KEYS = ("schema", "name", "title", "source", "about", "needs", "scaled", "param", "variant", "workload", "step", "show")


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


@pytest.mark.parametrize("kind", [*KINDS, "replay", ["load"], None])
def test_a_wrong_type_of_every_key_of_every_step(kind):
    keys = getattr(KINDS.get(str(kind)), "KEYS", {"trace": None})
    for key in (*keys, "name", "do", "use", "needs", "optional", "step"):
        for value in WRONG:
            said = f"{document.shown(key)} = {value}" if key not in ("name", "do") else ""
            name = f"name = {value if key == 'name' else chr(34) + 'a' + chr(34)}"
            do = f"do = {value}" if key == "do" else f"do = {document.shown(kind)}" if kind else ""
            try:
                grammar.read("\n".join([HEAD, "[[step]]", name, do, said]))
            except UsageError as error:
                assert str(error).isprintable()


@pytest.mark.parametrize("view", [*shows.VIEWS, "nonsense"])
def test_a_wrong_type_of_every_key_of_every_view(view):
    for key in {key for each in shows.KEYS_OF.values() for key in (*each.required, *each.optional)} | {"view"}:
        for value in WRONG[::4]:
            table = {"view": f'"{view}"', "of": '"load"', "value": '"iops"', "by": '"read"', "rows": '"read"'} | {
                key: value
            }
            show = "\n".join(f"{key} = {value}" for key, value in table.items())
            refused(f"{HEAD}{STEP}[[show]]\n{show}")
