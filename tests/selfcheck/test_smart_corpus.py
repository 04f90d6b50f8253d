"""The corpus of SMART documents, and that it notices a wrong unit."""

import tomllib

import pytest

from selfcheck import smart_corpus
from ssdrig.drive.smart import ata_table


@pytest.mark.parametrize("spec", smart_corpus.SPECS, ids=lambda spec: f"{spec.model}-{spec.firmware}")
def test_figures_of_each_drive_are_those_computed_apart(spec):
    versions, states = smart_corpus.VERSIONS, smart_corpus.STATES
    for case in (smart_corpus.case_of(spec, version, state) for version in versions for state in states):
        assert smart_corpus.faults(case) == []


def test_device_statistics_are_right_whatever_the_attribute_is_called():
    assert not any(map(smart_corpus.faults, smart_corpus.cases()))


def test_shipped_table_survives_and_some_mutants_do_not(monkeypatch):
    shipped = tomllib.loads(ata_table.SHIPPED.read_text("utf-8"))["drives"]
    every_40th = list(smart_corpus.mutants())[::40]
    monkeypatch.setattr(smart_corpus, "mutants", lambda: iter([("none", shipped), *every_40th]))
    assert smart_corpus.survivors() == (len(every_40th) + 1, ["none"])
