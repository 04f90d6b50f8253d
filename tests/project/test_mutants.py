"""The mutation test (mutants.py, run by hand): it breaks the files that it says, and runs the tests that it names."""

import mutants
import pytest


@pytest.mark.parametrize("area", mutants.AREAS)
def test_every_file_and_test_of_an_area_is_there(area):
    assert mutants.files_of(area) and all(
        (mutants.ROOT / name).is_file() for name in mutants.tests_of(area, mutants.ROOT)
    )


@pytest.mark.parametrize(
    ("files", "words", "missing"),
    [
        (["host/ssdrig/none.py"], "test_wa", "no file host"),
        (["host/ssdrig/*.py"], "test_wa test_none", "no test test_none"),
    ],
)
def test_one_that_was_renamed_is_said(monkeypatch, files, words, missing):
    monkeypatch.setitem(mutants.AREAS, "new", (files, words))
    with pytest.raises(ValueError, match=missing):
        mutants.files_of("new"), mutants.tests_of("new", mutants.ROOT)


def test_every_kind_of_mutant_is_another_program():
    source = "def f(a, b):\n    if not a < b:\n        raise ValueError\n    g(a)\n    return a + 1  # kept\n"
    kinds = {}
    for node, kind in mutants.candidates(source):
        text, before, after = mutants.mutated(source, node, kind)
        assert text != source and before != after and text.endswith("# kept\n")
        compile(text, "mutant", "exec")
        kinds[kind] = text
    assert kinds.keys() == {"compare", "operator", "not", "constant", "condition", "lost call", "lost raise"}
