"""`run powerloss --target` on the tests' own NBD server (support/nbd_injector.py): the whole program, real sockets, and
a drive that shares no code with the judge and has its own truth of each cut."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ssdrig import cli
from ssdrig.base.errors import PromiseBroken
from ssdrig.powerloss import sessions
from ssdrig.powerloss.judging import NOTHING_TESTED
from ssdrig.runs import journal, parts

pytestmark = [pytest.mark.slow, pytest.mark.keeps_time]  # an honest server on a starved host is "cannot tell"
SERVER = Path(__file__).parents[1] / "support" / "nbd_injector.py"
SIZE = 32 << 20
WAIT_S = 120  # for a server on a busy machine


@pytest.fixture
def served(tmp_path):
    """A server with a fault -> the words of `run powerloss` for it. It is ended in the end."""
    sock, truth, running = tmp_path / "sock", tmp_path / "truth.json", []

    def words(fault: str, cuts: int, mode: str = "volatile", seed: int = 1) -> list[str]:
        server = subprocess.Popen([sys.executable, SERVER, sock, truth, str(SIZE), str(seed), fault, mode])
        running.append(server)
        uri, is_there = f"nbd+unix:///?socket={sock}", f"[ -e {sock} ]"
        off = f"kill -USR1 {server.pid}; while {is_there}; do sleep 0.01; done"
        on = f"kill -USR2 {server.pid}; while ! {is_there}; do sleep 0.01; done"
        until = time.monotonic() + WAIT_S
        while not sock.exists():
            assert server.poll() is None and time.monotonic() < until
            time.sleep(0.01)
        arguments = ["run", "powerloss", "--target", uri, "--destroy-data", uri, "--power-off", off, "--power-on", on]
        arguments += ["--set", "write=0.4 s", "--set", "off_time=0.05 s", "--set", "window=16 MiB", "--cuts", str(cuts)]
        return [*arguments, "--runs", str(tmp_path / "runs"), "--seed", "1", "--quiet"]

    yield words
    for server in running:
        server.send_signal(signal.SIGTERM)
        server.wait()


def records(tmp_path) -> list[dict]:
    (run,) = (tmp_path / "runs").iterdir()
    return [event for part in parts.of(run) for event in journal.events(part) if event["kind"] == "session.judged"]


def test_an_honest_server_is_not_accused(served, tmp_path):
    assert cli.main(served("", 6)) == 0
    judged, truth = records(tmp_path), json.loads((tmp_path / "truth.json").read_text())
    cuts = [session for session in judged if not session["control"]]
    assert truth["cuts"] == 6 == len(cuts)
    assert all(
        session["judged"] or session["why_not"] == NOTHING_TESTED for session in cuts
    )  # a starved host acknowledges none
    assert not any(session["findings"] for session in judged) and not any(truth["truth"].values())
    assert sum(session["lost_volatile"] or 0 for session in judged) > 0  # what no FLUSH covered may go


@pytest.mark.parametrize("fault", ["lie_always", "fua_big", "zero_page", "stale_sector"])
def test_a_fault_is_found_at_its_cut_with_a_proof(served, tmp_path, fault):
    assert cli.main([*served(fault, 8), "--stop", "first"]) == PromiseBroken.exit_code
    truth = json.loads((tmp_path / "truth.json").read_text())
    cuts = [session for session in records(tmp_path) if not session["control"]]
    assert truth["cuts"] == len(cuts) and cuts[-1]["failed"]
    assert not any(truth["shown"].values())  # after an earlier cut nothing could be read, and was passed
    (run,) = (tmp_path / "runs").iterdir()
    proofs = json.loads((run / sessions.folder(cuts[-1]["cut"]) / "proofs.json").read_bytes())
    assert proofs and {proof["lba"] for proof in proofs} <= {*truth["truth"][str(truth["cuts"])]}
    assert all(proof["cuts"] == [cuts[-1]["cut"]] * 2 for proof in proofs)
