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
    judged = [event for event in journal.events(run) if event["kind"] == "session.judged"]
    assert {session["cut"] for session in judged} == set(sessions.judged([run]))
    json_documents.figures(json.loads(json.dumps(documents.of_table(table.load(run)))))
    return code, *([session for session in judged if bool(session["control"]) is is_one] for is_one in (False, True))


def test_an_honest_drive_keeps_its_promises(tmp_path):
    code, cuts, controls = campaign(tmp_path)
    assert code == 0 and len(cuts) == 3 and len(controls) == 1
    assert all(session["judged"] and not session["failed"] and not session["suspicion"] for session in cuts)
    twice = sum(session["aim"] == "recovery" for session in cuts)
    assert sum(session["unsafe_shutdowns"] for session in cuts) == 3 + twice
    assert all(session["fall"]["t90_10_us"] > 0 and session["durable"] > 0 for session in cuts)
    (run,) = tmp_path.iterdir()
    assert len(list(run.glob("powerloss/*/waveform.npz"))) == 3


def test_a_flush_that_lies_is_found(tmp_path):
    code, cuts, _ = campaign(tmp_path, "--stop", "first", "--drive-faults", '{"lying_flush": 1}')
    assert code == PromiseBroken.exit_code and cuts[-1]["failed"] and "LOST_FLUSHED" in cuts[-1]["findings"]
