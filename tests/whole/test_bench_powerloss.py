"""`run powerloss` on the whole virtual bench: real firmware, NBD, waveforms. An honest drive is not accused, one whose
FLUSH lies is."""

import json

import json_documents
import pytest

from ssdrig import cli
from ssdrig.base.errors import PromiseBroken
from ssdrig.powerloss import sessions
from ssdrig.reading import table
from ssdrig.runs import journal
from ssdrig.views import documents

pytestmark = [pytest.mark.slow, pytest.mark.keeps_time]
WORDS = ["run", "powerloss", "--virtual", "sata-tlc", "--capacity", "512MiB", "--cuts", "3", "--quiet"]
WORDS += ["--set", "window=32 MiB", "--set", "aims={ random = 1, flush = 1, recovery = 1 }"]


def campaign(tmp_path, *words) -> tuple[int, list[dict], list[dict]]:
    """(exit code, records of the cuts, of the control sessions)."""
    code = cli.main([*WORDS, *words, "--runs", str(tmp_path)])
    (run,) = tmp_path.iterdir()
    found = [each for each in journal.events(run) if each["kind"] == "session.judged"]
    assert {each["cut"] for each in found} == set(sessions.judged([run]))
    json_documents.figures(json.loads(json.dumps(documents.of_table(table.load(run)))))
    return code, *([each for each in found if bool(each["control"]) is is_one] for is_one in (False, True))


def test_an_honest_drive_keeps_its_promises(tmp_path):
    code, cuts, controls = campaign(tmp_path)
    assert code == 0 and len(cuts) == 3 and len(controls) == 1
    assert all(each["judged"] and not each["failed"] and not each["suspicion"] for each in cuts)
    twice = sum(each["aim"] == "recovery" for each in cuts)
    assert sum(each["unsafe_shutdowns"] for each in cuts) == 3 + twice
    assert all(each["fall"]["t90_10_us"] > 0 and each["durable"] > 0 for each in cuts)
    (run,) = tmp_path.iterdir()
    assert len(list(run.glob("powerloss/*/waveform.npz"))) == 3


def test_a_flush_that_lies_is_found(tmp_path):
    code, cuts, _ = campaign(tmp_path, "--stop", "first", "--drive-faults", '{"lying_flush": 1}')
    assert code == PromiseBroken.exit_code and cuts[-1]["failed"] and "LOST_FLUSHED" in cuts[-1]["findings"]
