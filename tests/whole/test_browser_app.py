"""The server of the bench in the browser: what it answers, what a kill of it loses. Who is refused: browser_hostile."""

import json
import os
import signal
import threading
from pathlib import Path

import pytest
import synthetic_run
from browser_serving import Serving
from growing_run import Growing

from ssdrig import cli
from ssdrig.run.control import Control
from ssdrig.runs import journal, labels
from ssdrig.serve import app
from ssdrig.serve.pages import leads_out, stamp

HOSTILE = "<img src=x onerror=alert(1)>\"'&"


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("served") / "runs"
    how = {"zoom_s": 5, "logs": False, "smart_every_s": 3}
    synthetic_run.write(root, [900] * 5 + [300, 500] * 3, name="a", **how)
    synthetic_run.write(root, [900] * 5 + [400, 600] * 3, name="b", model=HOSTILE, **how)
    labels.change(root / "b", title=HOSTILE, add=["review"])
    return root


@pytest.fixture(scope="module")
def served(runs):
    with Serving(runs) as one:
        yield one


def ids(served, words: str = "") -> dict[str, str]:
    return {run["run"]: run["id"] for run in served.get(f"/api/runs?q={words}")["runs"]}


@pytest.mark.slow
def test_it_answers(served, runs):
    assert served.get("/api/hello") | {"version": 0} == {
        **{"version": 0, "root": str(runs), "runs": 2, "control": False, "live": [], "reading": None}
    }
    answer = served.get("/api/runs?q=tag:review%20op:25")
    assert answer["count"] == 1 and answer["runs"][0]["title"] == HOSTILE and answer["runs"][0]["model"] == HOSTILE
    assert served.get("/api/runs?limit=1&offset=1")["count"] == 2
    status, _, body = served.ask("GET", "/api/runs?q=drve:990")
    assert status == 400 and "drive" in json.loads(body)["do"]
    drives = served.get("/api/drives")
    assert sorted(drive["runs"] for drive in drives) == [1, 1]
    wear = served.get(f"/api/drives/{drives[0]['id']}")
    assert wear["wear"]["temperature_C"] in (40, 41, 42) and wear["wear"]["health_ok"] and len(wear["runs"]) == 1
    assert wear["wear"]["host_written_bytes"] >= synthetic_run.TESTED_BYTES
    for path in ("/api/drives/no", "/api/live/no", "/nothing", "/page/" + "x" * 43):
        assert served.ask("GET", path)[0] == 404, path


@pytest.mark.slow
def test_the_course_of_a_run_and_the_earlier_run_of_its_drive(tmp_path):
    root, how = tmp_path / "runs", {"zoom_s": 5, "logs": False, "smart_every_s": 3}
    for days, (name, more) in enumerate(
        [
            ("old", {}),
            ("other op", {"op_percent": 7}),
            ("died", {"state": None}),
            ("model", {"model": "X"}),
            ("new", {}),
        ]
    ):
        run = synthetic_run.write(root, [900] * 5 + [300, 500] * 3, name=name, **how | more)
        header, events = synthetic_run.journal_of(run)
        header["started"]["utc_ns"] += days * 86400 * 10**9
        synthetic_run.put(run, header, events)
    with Serving(root) as served:
        of = ids(served)
        course = served.get(f"/api/course/{of['new']}")
        assert [step["label"] for step in course] == ["load"]
        earlier = served.get(f"/api/earlier/{of['new']}")
        assert earlier["run"]["id"] == of["old"] and earlier["steps"] == course
        assert served.get(f"/api/earlier/{of['old']}") == {"run": None, "steps": []}
        assert served.ask("GET", "/api/course/no")[0] == 404
        assert served.get("/api/earlier/no") == {"run": None, "steps": []}


@pytest.mark.slow
def test_a_page_is_made_on_demand_and_kept_while_the_runs_do_not_change(served, runs):
    both = [*ids(served).values()]
    status, _, body = served.ask("POST", "/api/compare", {"runs": both})
    assert status == 200, body
    page = json.loads(body)["page"]
    assert json.loads(served.ask("POST", "/api/compare", {"runs": both})[2])["page"] == page
    status, headers, html = served.ask("GET", page, headers={"Authorization": None})
    assert status == 200 and html.startswith(b"<!doctype html>") and b"<img src=x" not in html
    policy = headers["content-security-policy"]
    assert headers["cross-origin-opener-policy"] == "unsafe-none"  # beside a sandbox another is an error
    assert "sandbox allow-scripts" in policy and "allow-same-origin" not in policy and "connect-src" not in policy
    assert "unsafe-inline'" not in policy.replace("style-src 'unsafe-inline'", "") and "default-src 'none'" in policy
    assert served.ask("POST", "/api/compare", {"runs": ["no"]})[0] == 404
    for wrong in ({}, {"runs": "a"}, {"runs": [1]}, {"runs": []}, b"[", b"{"):
        assert served.ask("POST", "/api/compare", wrong)[0] == 400, wrong
    assert served.ask("POST", "/api/compare", {"runs": both[:1] * 200})[0] == 200  # the same one
    assert not (runs / "a" / "report.html").exists()


def test_the_stamp_of_a_run_changes_with_each_file_of_each_part(tmp_path):
    """A page or a course that was made of less is not shown of more; a run without a rig has no rig.bin."""
    stamps = [stamp(tmp_path)]
    for name in ("events.jsonl", "events.jsonl", "rig.bin", "part-2/run.json", "part-2/events.jsonl", "part-2/rig.bin"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with open(tmp_path / name, "ab") as file:
            file.write(b"more\n")
        stamps.append(stamp(tmp_path))
    assert len(set(stamps)) == len(stamps)


@pytest.mark.slow
def test_a_run_with_a_link_that_leads_out_of_it_makes_no_page(runs, tmp_path):
    root = tmp_path / "runs"
    made = synthetic_run.write(root, [900] * 5 + [300, 500] * 3, zoom_s=5, name="a")
    assert leads_out(made) is None
    (made / "smart" / "999.json").symlink_to("/etc/passwd")
    (made / "inner").symlink_to(made / "smart")
    (made / "circle").symlink_to("circle")
    assert leads_out(made) == "smart/999.json"
    with Serving(root) as served:
        status, _, body = served.ask("POST", "/api/compare", {"runs": [*ids(served).values()]})
    assert status == 400 and "link" in json.loads(body)["expected"]


def test_every_answer_has_its_headers(served):
    for path, token in (("/", None), ("/api/hello", served.token), ("/api/hello", None), ("/nothing", served.token)):
        _, headers, body = served.ask("GET", path, headers={"Authorization": f"Bearer {token}" if token else None})
        assert {name: headers.get(name) for name in app.HEADERS} == app.HEADERS, path
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert "set-cookie" not in headers and not any(name.startswith("access-control") for name in headers)
        assert "server" not in headers and served.token.encode() not in body


@pytest.mark.slow
def test_what_a_server_has_made_goes_with_it_and_what_a_killed_one_left_with_the_next(runs, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for how, left in ((signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGINT, 0), (signal.SIGKILL, 1)):
        with Serving(runs) as served:
            assert len([*tmp_path.iterdir()]) == 1
            served.get("/api/hello")
            served.end(how)
        assert len([*tmp_path.iterdir()]) == left, how
    (old,) = tmp_path.iterdir()
    with Serving(runs):
        assert not old.exists() and len([*tmp_path.iterdir()]) == 1
        with Serving(runs):
            assert len([*tmp_path.iterdir()]) == 2  # that of a server that goes on stays


def test_it_listens_on_loopback_only(served):
    listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    port = f"{served.port:04X}"
    addresses = {row[1].split(":")[0] for row in listening if row[1].endswith(":" + port) and row[3] == "0A"}
    assert addresses == {"0100007F"}


def test_a_port_that_is_taken_and_root_are_refused(served, runs, capsys, monkeypatch):
    root = ["--as-root"] if os.geteuid() == 0 else []
    assert cli.main(["serve", str(runs), "--port", str(served.port), *root]) == 2
    assert "--port" in capsys.readouterr().err
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert cli.main(["serve", str(runs)]) == 2 and "root" in capsys.readouterr().err
    assert cli.main(["serve", str(runs), "--as-root", "--port", "99999"]) == 2
    assert cli.main(["serve", str(runs / "nowhere"), "--as-root", "--port", "0"]) == 2


@pytest.mark.slow
def test_killed_and_started_again_nothing_is_lost_or_doubled(runs, tmp_path):
    """A reader that comes again to the next server, with the id of the last message that it had, goes on there."""
    growing = Growing(runs / "a", tmp_path / "runs")
    pieces: dict[str, list] = {}
    at = ""
    try:
        for share in (0.3, 0.7, 1.0):
            growing.to(growing.began_ns + int(share * (growing.end_ns - growing.began_ns)))
            ends = share == 1.0
            if ends:
                growing.end()
            with Serving(tmp_path / "runs") as served:
                (one,) = ids(served).values()
                for kind, place, message in served.stream(one, at):
                    at = place
                    for name in ("events", "steps", "seconds", "load", "smart"):
                        pieces.setdefault(name, []).extend(message.get(name, []))
                    if kind == "more" and not ends and message.get("seconds") and not message.get("more"):
                        break
                served.end(signal.SIGKILL)
        with Serving(tmp_path / "runs") as served:
            whole = [message for _, _, message in served.stream(one)]
    finally:
        growing.gone()
    for name, rows in pieces.items():
        once = [row for message in whole for row in message.get(name, [])]
        assert rows == once and (once or name == "smart"), name


@pytest.mark.slow
def test_with_control_a_run_is_asked_for_a_note_and_its_end(tmp_path):
    book = journal.create(tmp_path / "runs", {"method": {"name": "x"}, "drive": {"model": "m"}})
    stopped: list[int] = []
    control = Control(book, lambda: stopped.append(1))
    try:
        with Serving(tmp_path / "runs", "--control") as served:
            hello = served.get("/api/hello")
            path = f"/api/live/{hello['live'][0]['id']}/act"
            assert hello["control"] is True
            assert json.loads(served.ask("POST", path, {"do": "note", "text": "fan off"})[2]) == {"ok": True, "why": ""}
            for wrong in ({"do": "cut"}, {"do": "purge"}, {"do": "run"}, {"do": "note", "text": ""}, {}, b"[]"):
                assert served.ask("POST", path, wrong)[0] == 400, wrong
            for head in ({"Authorization": None}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
                assert served.ask("POST", path, {"do": "stop"}, head)[0] in (401, 403)
            assert served.ask("GET", path)[0] == 405 and stopped == []
            assert served.ask("POST", path, {"do": "stop"})[0] == 200 and stopped == [1]
            control.close()
            status, _, reply = served.ask("POST", path, {"do": "stop"})
            assert status == 400 and "goes on" in json.loads(reply)["expected"]
        with Serving(tmp_path / "runs") as served:  # which only reads
            for reply in ({"do": "stop"}, {"do": "arm"}, {"do": "cut", "token": "x"}):
                assert served.ask("POST", path, reply)[0] == 403
    finally:
        control.close()
        book.close("complete")
    notes = [event["text"] for event in journal.events(book.path) if event["kind"] == "note"]
    assert notes == ["fan off", "the end of the run was asked for over control.sock"]


@pytest.mark.slow
def test_a_run_that_goes_on_is_found_and_its_newest_moments_come(runs, tmp_path):
    growing = Growing(runs / "a", tmp_path / "runs")
    growing.to(growing.began_ns + 4 * 10**9)
    with Serving(tmp_path / "runs") as served:
        (one,) = served.get("/api/hello")["live"]
        assert one["state"] == "running"
        stop = threading.Event()

        def grow():
            t_ns = growing.began_ns + 4 * 10**9
            while not stop.wait(0.02) and t_ns < growing.end_ns:
                t_ns += 40_000_000
                growing.to(t_ns)

        thread = threading.Thread(target=grow)
        thread.start()
        try:
            seen = set()
            for _, _, message in served.stream(one["id"]):
                seen |= {name for name in ("preview", "tenths", "seconds", "load", "events") if message.get(name)}
                if len(seen) == 5:
                    break
        finally:
            stop.set()
            thread.join()
            growing.gone()
    assert len(seen) == 5
