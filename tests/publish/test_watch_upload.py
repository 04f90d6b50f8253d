"""What `ssdrig watch` has kept, in InfluxDB: a real one and the scripted one; absent, changed, and after a crash."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from fake_influx import FakeInflux, nobody, parse_line
from pages import page, page_c0h
from watching import MAIN, TESTS, drives, finish, history, look, record, records, start, tools

from selfcheck import influxd as real
from ssdrig.base.errors import JournalError, UploadIncomplete
from ssdrig.drive.smart import watch_folder
from ssdrig.publish.influx import link, sender
from ssdrig.publish.influx.outbox import Outbox
from ssdrig.publish.watch import upload as watch_upload

__all__ = ["drives", "history", "tools"]  # fixtures


def points_of(folder):
    return Counter(parse_line(line)[0] for line in (folder / "points.lp").read_bytes().splitlines())


def upload(folder, fake):
    return watch_upload.Upload(folder, sender.target(fake.url, {}), lambda text: None)


ROUND = {"ssd_wear": 1, "smart_device": 1, "smart_attribute": 5}


def times(n):
    return {name: n * number for name, number in ROUND.items()}


@pytest.mark.slow
def test_a_round_reaches_a_real_database(tools, history, tmp_path):
    if not shutil.which("influxd", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/bin"):
        pytest.skip("influxd is not installed (apt install influxdb)")
    server = real.start(tmp_path / "influxd")
    try:
        for n in (1, 2):
            code, _, err = finish(start(history, "--once", "--influx", server.url, serials="S123,S124"))
            assert code == 0, err
            assert server.counts(list(ROUND), history) == times(2 * n)
        to = sender.target(server.url, {})
        where = b"%22name%22='Power_On_Hours'+AND+serial_no='S123'+AND+host=~/./"
        query = b"q=SELECT+last(raw_value)+FROM+smart_attribute+WHERE+" + where
        answer = json.loads(link.request(to, "/query?db=ssdrig", query, link.FORM).words)
        assert answer["results"][0]["series"][0]["values"][0][1] == 6383
        lines = [parse_line(line) for line in (history / "points.lp").read_bytes().splitlines()]
        assert {t for *_, t in lines} == {r["utc_ns"] for r in records(history)}
        assert not (history / "rejected.jsonl").exists()
    finally:
        server.stop()


def test_without_an_address_nothing_is_made(tools, history):
    assert finish(start(history, "--once"))[0] == 0
    assert sorted(p.name for p in history.iterdir()) == ["ACME-X1-S123"]


@pytest.mark.slow
def test_what_was_kept_while_the_server_was_away_is_sent_later(tools, history):
    script = MAIN.replace("cli.COMMANDS", "from ssdrig.commands import watch; watch.ONCE_SEND_S = 0.3; cli.COMMANDS")
    clean = {k: v for k, v in os.environ.items() if not k.startswith("SSDRIG_INFLUX")}
    words = [sys.executable, "-c", script, str(TESTS), "S123", "--history", str(history), "--once", "--influx"]
    with nobody() as url:
        done = subprocess.run([*words, url], capture_output=True, text=True, env=clean)
    assert done.returncode == UploadIncomplete.exit_code and "not sent yet" in done.stderr
    assert finish(start(history, "--once"))[0] == 0, "kept without any address"
    with FakeInflux() as fake:
        assert finish(start(history, "--once", SSDRIG_INFLUX=fake.url))[0] == 0
        assert {name: fake.count(name) for name in ROUND} == times(3) and fake.changed == 0


@pytest.mark.slow
def test_the_service_sends_beside_its_polls(tools, history):
    with FakeInflux() as fake:
        process = start(history, "--interval", "0.3", "--influx", fake.url)
        deadline = time.monotonic() + 600
        while fake.count("ssd_wear") < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert finish(process)[0] == 0
        with_once = finish(start(history, "--once", "--influx", fake.url))
        assert with_once[0] == 0, with_once
        assert {name: fake.count(name) for name in ROUND} == times(len(records(history)))


def test_a_crash_between_lines_and_mark_makes_the_same_lines_again(tools, drives, history, tmp_path, monkeypatch):
    watch = look(history, tmp_path)
    watch.round(pytest.fail)
    with FakeInflux() as fake:
        upload(history, fake).finish(5)
        watch.round(pytest.fail)
        sending = upload(history, fake)
        monkeypatch.setattr(watch_upload, "write_atomically", lambda *_: (_ for _ in ()).throw(OSError(5, "dies here")))
        with pytest.raises(OSError, match="dies here"):
            sending.make()
        sending.close()
        monkeypatch.undo()
        assert points_of(history) == times(2)
        with (history / "points.lp").open("ab") as f:
            f.write(b"ssd_wear,dri")
        upload(history, fake).finish(5)
        assert {name: fake.count(name) for name in ROUND} == times(2) and fake.changed == 0
        again = Counter((history / "points.lp").read_bytes().splitlines())
        assert set(again.values()) <= {1, 2} and len(again) == sum(times(2).values())


def test_another_server_gets_all_and_acknowledged_lines_are_dropped_in_time(
    tools, drives, history, tmp_path, monkeypatch
):
    watch = look(history, tmp_path)
    for _ in range(3):
        watch.round(pytest.fail)
    monkeypatch.setattr(watch_upload, "FORGET_BYTES", 1000)
    with FakeInflux() as first:
        sending = upload(history, first)
        while sending.step():
            pass
        assert (
            first.count("ssd_wear") == 3
            and (history / "points.lp").stat().st_size == 0
            and not (history / "points.cursor").exists()
        )
        watch.round(pytest.fail)
        sending.finish(5)
        assert {name: first.count(name) for name in ROUND} == times(4) and points_of(history) == times(1)
    with FakeInflux() as second:
        upload(history, second).finish(5)
        assert {name: second.count(name) for name in ROUND} == times(4)


def test_two_senders_are_refused_and_once_leaves_it_to_the_service(tools, history):
    with FakeInflux() as fake, Outbox(history):
        with pytest.raises(JournalError, match="in use"):
            upload(history, fake)
        code, _, err = finish(start(history, "--once", "--influx", fake.url))
        assert code == 0 and "in use" in err and fake.count("ssd_wear") == 0 and len(records(history)) == 1


def test_write_amplification_counts_from_the_months_first_poll(history):
    """Data units of 512 000 bytes; NAND bytes in OCP's log C0h: 2 NAND bytes for each host byte."""

    def nvme(n, host_units, nand_bytes):
        return record(n) | {
            "t_start_ns": n * 10**12 + 10,
            "t_end_ns": n * 10**12 + 20,
            "smartctl": None,
            "tools": [],
            "gaps": [],
            "units": {},
            "simulated": False,
            "log_02h": page({1: (2, 310), 48: (16, host_units)}).hex(),
            "log_c0h": page_c0h(nand_bytes).hex(),
        }

    for n, units in ((0, 1000), (1, 3000), (2, 5000), (400, 9000), (401, 9500)):  # the last two in December
        watch_folder.keep(history, nvme(n, units, 10**9 + 2 * (units - 1000) * 512_000))
    with FakeInflux() as fake:
        upload(history, fake).finish(5)
    lines = [parse_line(line) for line in (history / "points.lp").read_bytes().splitlines()]
    wear = [(dict(tags), fields) for m, tags, fields, _ in lines if m == "ssd_wear"]
    assert [round(fields["wa"], 3) if "wa" in fields else None for _, fields in wear] == [None, 2, 2, None, 2]
    assert all(tags == {"drive": "ACME X1 S123"} and fields["run"] == "watch" for tags, fields in wear)


# for Telegraf


def test_telegraf_gets_the_lines_that_would_be_sent(tools, history):
    """And nothing else on stdout."""
    code, out, _ = finish(start(history, "--once", "--telegraf", "--quiet", serials="S123,S124"))
    assert code == 0
    with FakeInflux() as fake:
        upload(history, fake).finish(5)
    assert out.encode() == (history / "points.lp").read_bytes()
    assert Counter(parse_line(line)[0] for line in out.encode().splitlines()) == times(2)


def test_telegraf_gets_each_round_as_it_comes_and_ends_it(tools, history):
    process = start(history, "--telegraf", "--interval", "0.2", "--quiet")
    try:
        lines = [process.stdout.readline() for _ in range(2 * sum(ROUND.values()) + 1)]
        assert len({parse_line(line.strip().encode())[3] for line in lines}) == 3
        process.send_signal(signal.SIGTERM)
    finally:
        assert finish(process)[0] == 0


def test_telegraf_hears_nothing_of_a_drive_that_does_not_answer(tools, history):
    tools.smartctl(b"", 1)
    code, out, err = finish(start(history, "--once", "--telegraf"))
    assert code == 4 and out == "" and "does not answer" in err


def test_one_form_on_stdout(tools, history):
    assert finish(start(history, "--once", "--telegraf", "--json"))[0] == 2


def test_lines_of_another_schema_are_made_anew(tools, drives, history, tmp_path):
    look(history, tmp_path).round(pytest.fail)
    with FakeInflux() as fake:
        first = upload(history, fake)
        first.make()
        first.close()
        whole = (history / "points.lp").read_bytes()
        made = json.loads((history / "points.made").read_text())
        (history / "points.made").write_text(json.dumps(made | {"schema": made["schema"] - 1}))
        (history / "points.lp").write_bytes(b"ssd_wear,run=watch power_on_hours=1i 5\n")
        upload(history, fake).finish(5)
        assert (history / "points.lp").read_bytes() == whole and len(fake.stored) == len(whole.splitlines())


@pytest.mark.parametrize("content", ["[" * 200_000, '{"schema": SCHEMA, "to": "TO", "files": {"a": Infinity}}', "null"])
def test_points_made_that_are_no_count_are_made_anew(tools, drives, history, tmp_path, content):
    look(history, tmp_path).round(pytest.fail)
    with FakeInflux() as fake:
        to = str(sender.target(fake.url, {}))
        content = content.replace("SCHEMA", str(watch_upload.SCHEMA)).replace("TO", to)
        (history / "points.made").write_text(content)
        upload(history, fake).finish(5)
        assert len(fake.stored) == len((history / "points.lp").read_bytes().splitlines()) > 0
