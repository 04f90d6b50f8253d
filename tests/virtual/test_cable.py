"""The SIMULATED board's cable: faults it injects, truth it writes, processes it starts and ends."""

import json
import os
import random
import signal
import struct
import subprocess
import sys
import time

import pytest
from simboard import PATIENCE_S, REAL_TIME, ROOT, Board, make_feed

from ssdrig.meter import wire
from ssdrig.virtual import cable
from ssdrig.virtual.rig_faults import BOARD, TRANSPORT

pytestmark = pytest.mark.keeps_time


def alive(pid: int) -> bool:
    """Running, and not a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(condition, seconds=PATIENCE_S):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not seen within {seconds} s"
        time.sleep(0.02)


# --- pure parts


def test_damage_rates():
    """Of 200 000 bytes, each kind of damage hits its share (binomial, 5 sigma)."""
    n = 200_000
    data = bytes(n)
    lost = n - len(cable.damage(data, 0.01, 0, 0, random.Random(1)))
    doubled = len(cable.damage(data, 0, 0, 0.01, random.Random(1))) - n
    changed = sum(map(bool, cable.damage(data, 0, 0.01, 0, random.Random(1))))
    for count in (lost, doubled, changed):
        assert abs(count - 2000) < 5 * 44.5
    assert cable.damage(data, 0, 0, 0, random.Random(1)) is data


def test_delay_keeps_order_and_gives_its_distribution():
    faults = {**TRANSPORT, "delay_us": 200, "jitter_us": 300, "outliers": 0.01}
    n, gap = 20_000, 10_000_000
    delays = []
    line = cable.Delay(faults, random.Random(7))
    for k in range(n):  # one at a time, so that none waits behind another
        line.put(b"x", k * gap, 0)
        delays.append(line.next_ns() - k * gap)
        assert line.take(line.next_ns() - 1) == b"" and line.take(line.next_ns()) == b"x"
    assert min(delays) >= 200_000
    assert sum(delays) / n == pytest.approx(200_000 + 300_000 + 0.01 * 5_000_000, rel=0.03)
    assert sum(d > 5_200_000 for d in delays) == pytest.approx(200, abs=75)

    line = cable.Delay(faults, random.Random(8))
    for k in range(1000):
        line.put(struct.pack("<H", k), k * 1000, 0)
    assert line.bytes == 2000
    assert line.take(1 << 60) == b"".join(struct.pack("<H", k) for k in range(1000))
    assert line.bytes == 0 and line.next_ns() is None


def test_a_pause_holds_back_what_is_sent_in_it():
    line = cable.Delay(TRANSPORT, random.Random(1))
    line.put(b"a", 10, 0)
    line.put(b"b", 20, 5000)
    line.put(b"c", 30, 5000)
    assert [line.take(t) for t in (10, 4999, 5000)] == [b"a", b"", b"bc"]


def test_the_truth_of_a_long_campaign_keeps_its_latest_crossings(tmp_path):
    board = cable.Board(tmp_path / "feed", tmp_path / "truth", {}, tmp_path)
    board.boots.append(boot := {"power": []})
    for n in range(3 * cable.CROSSINGS):
        board._note_power(boot, n, n % 2 == 1)
    (line,) = json.loads((tmp_path / "truth").read_text())
    assert line["power"] == [[n, n % 2 == 1] for n in range(2 * cable.CROSSINGS, 3 * cable.CROSSINGS)]


# --- the process


def run_cable(*arguments):
    argv = [sys.executable, "-m", "ssdrig.virtual.cable", *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "host")}
    return subprocess.run(argv, capture_output=True, text=True, env=env)


def test_no_feed_is_one_message(tmp_path):
    done = run_cable("--feed", tmp_path / "none", "--truth", tmp_path / "truth")
    assert done.returncode == 2 and "no file" in done.stderr and "Traceback" not in done.stderr
    assert os.listdir(tmp_path) == []


def test_a_board_that_never_comes_up_is_one_message(tmp_path):
    (tmp_path / "feed").write_bytes(bytes(64))
    done = run_cable("--feed", tmp_path / "feed", "--truth", tmp_path / "truth")
    assert done.returncode == 5 and "expected a board that stays up" in done.stderr
    assert "expected a power feed" in done.stderr  # the board's own words


@pytest.mark.parametrize("how", ["SIGUSR1", "at a time", "firmware killed"])
def test_reset_is_another_boot(tmp_path, how):
    """The one at a time finds a board that nobody has spoken to: a busy machine may take longer than that to start."""
    with Board(tmp_path, 2.5, {"resets": [1.0]} if how == "at a time" else {}) as b:
        first = b.truth()[0]["boot"]
        if how != "at a time":
            assert b.hello()["boot"] == first
            b.send(wire.GO)
            b.until(lambda: len(b.samples()) > 200)
        if how == "SIGUSR1":
            b.reset()
        elif how == "firmware killed":
            os.kill(b.firmware_pid(), signal.SIGKILL)
        b.until(lambda: len(b.truth()) == 2)
        b.read(0.3)
        b.frames.clear()
        second = b.hello()["boot"]
        assert second != first
        assert [t["boot"] for t in b.truth()] == [first, second]
        assert b.truth()[1]["t_boot_ns"] > b.truth()[0]["t_boot_ns"]
        assert b.samples() == []  # not before `go`
        b.send(wire.GO)
        b.until(lambda: len(b.samples()) > 200)
        assert b.samples()[0][0] == 0
        assert b.frames[0][1] <= 2  # seq starts anew


def test_truth_names_every_setting(tmp_path):
    with Board(tmp_path, 2.5, {"ppm": 80.0}) as b:
        b.hello()
        truth = b.truth()[0]
    assert truth.keys() == {"boot", "t_boot_ns", "tick0", "power", *BOARD} - {"start_ticks"}
    assert truth["ppm"] == 80 and truth["tick0"] == BOARD["start_ticks"]


def test_settings_larger_than_the_pipe_reach_the_board(tmp_path):
    """The rest was lost, and the board waited for it."""
    with Board(tmp_path, 2.5, {"stalls": [[10**6 + n, 1] for n in range(2000)]}) as b:
        assert len(json.dumps(b.truth()[0])) > 2 * cable.PIPE
        assert b.hello()["boot"] == b.truth()[0]["boot"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_board_ends_with_its_cable(tmp_path, number):
    with Board(tmp_path) as b:
        b.hello()
        pid = b.firmware_pid()
        b.process.send_signal(number)
        assert b.process.wait(200) == (-9 if number == signal.SIGKILL else 0)
        wait_for(lambda: not alive(pid))


def test_the_cable_ends_with_its_parent(tmp_path):
    make_feed(tmp_path / "feed", 1.0)
    starter = (
        "import subprocess, sys, time\n"
        "cable = [sys.executable, '-m', 'ssdrig.virtual.cable', *sys.argv[1:]]\n"
        "p = subprocess.Popen(cable, stdout=subprocess.PIPE)\n"
        "p.stdout.readline(); print(p.pid, flush=True); time.sleep(60)\n"
    )
    argv = [sys.executable, "-c", starter, "--feed", tmp_path / "feed", "--truth", tmp_path / "t", "--die-with-parent"]
    parent = subprocess.Popen(argv, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT / "host")})
    try:
        pid = int(parent.stdout.readline())
        assert alive(pid)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
    wait_for(lambda: not alive(pid))


def test_a_late_process_loses_nothing(tmp_path):
    """The board's process is stopped for a second: Linux's lateness is not the board's; it catches up, none is lost."""
    with Board(tmp_path, 2.5, REAL_TIME) as b:
        b.go()
        b.until(lambda: len(b.samples()) > 500)
        pid = b.firmware_pid()
        os.kill(pid, signal.SIGSTOP)
        time.sleep(1.0)
        os.kill(pid, signal.SIGCONT)
        n = len(b.samples())
        b.until(lambda: len(b.samples()) > n + 2500)
    samples = b.samples()
    assert [s[0] for s in samples] == list(range(len(samples))) and b.missed() == 0
    steps = [y[1] - x[1] for x, y in zip(samples, samples[1:])]
    assert max(steps) < 1200 and min(steps) > 1000  # nor is its time torn


def test_a_board_with_a_time_of_its_own_stands_still_with_the_machine(tmp_path):
    """The board's process is stopped for a second, at twice the host's pace: hardly any of its time passes."""
    with Board(tmp_path, 2.5, {"pace": 2.0}) as b:
        b.go()
        b.until(lambda: len(b.samples()) > 500)
        pid = b.firmware_pid()
        os.kill(pid, signal.SIGSTOP)
        b.read(0.5)  # what is on its way
        before_us = b.samples()[-1][1]
        time.sleep(1.0)
        os.kill(pid, signal.SIGCONT)
        n = len(b.samples())
        b.until(lambda: len(b.samples()) > n)
        after_us = b.samples()[-1][1]
        b.until(lambda: len(b.samples()) > n + 500)
    assert [s[0] for s in b.samples()] == list(range(len(b.samples()))) and b.missed() == 0
    assert 0 < after_us - before_us < 500_000  # of 2 s


def test_pongs_are_causal(tmp_path):
    """The board's time of a ping lies between the host's times before and after it, on the true map. A ping that a
    starved board has taken for the rest of another line has no answer; few are."""
    with Board(tmp_path, 2.5, {"ppm": 80.0, **REAL_TIME}) as b:
        b.go()
        answered = asked = 0
        while answered < 40:
            before, known = time.monotonic_ns(), len(b.bodies(wire.PONG))
            b.send(wire.PING, struct.pack("<I", asked))
            asked += 1
            again = time.monotonic() + 5
            while len(b.bodies(wire.PONG)) == known and time.monotonic() < again:
                b.read_some()
            after = time.monotonic_ns()
            if len(b.bodies(wire.PONG)) == known:
                continue
            seen, t_us, held_us = struct.unpack(wire.PONG_BODY, b.bodies(wire.PONG)[-1])
            if seen != asked - 1:
                continue  # it comes now, 5 s after its ping
            answered += 1
            truth = b.truth()[0]
            t = truth["t_boot_ns"] + (t_us - truth["tick0"]) * 1000 / (1 + truth["ppm"] * 1e-6)
            assert before - 1000 <= t <= after  # t_us has whole microseconds
            first, answered_ns = t - (held_us // 2) * 1000, t + (held_us - held_us // 2) * 1000
            # and so do both ends of its holding the ping
            assert before - 2000 <= first and answered_ns <= after and held_us > 0
        assert asked <= 44


def test_noisy_bytes_never_become_numbers(tmp_path):
    """Bytes lost, changed, doubled both ways: frames go missing and that is seen; none that is read is wrong."""
    noise = {"loss": 3e-4, "corrupt": 3e-4, "duplicate": 3e-4, "command_loss": 0.01, "command_corrupt": 0.01}
    with Board(tmp_path, 2.5, {**noise, "command_duplicate": 0.01, "seed": 3}) as b:
        while not b.samples():
            b.go()
            b.read(0.5)
        for token in range(100):
            b.send(wire.PING, struct.pack("<I", token))
            b.read(0.02)
        b.until(lambda: len(b.damaged) > 5)  # how many come in that time is a matter of the machine
    seqs = [seq for _, seq, _ in b.frames]
    assert seqs == sorted(set(seqs)) and seqs[-1] + 1 > len(seqs)  # gaps are seen, nothing comes twice
    assert len({(v, i) for _, _, v, i in b.samples()}) == 1
    assert 0 < len(b.bodies(wire.PONG)) < 100
    power = b.samples()[0][2] * b.samples()[0][3] >> 14
    for e in b.energies():
        assert e["energy"] == power * e["index"] * 1_102_000 // (16 * 10**9)


def test_delays_and_pauses_only_delay(tmp_path):
    faults = {"delay_us": 300, "jitter_us": 500, "outliers": 0.02, "pause_every_s": 0.5, "pause_ms": 100, "seed": 5}
    with Board(tmp_path, 2.5, faults) as b:
        b.go()
        b.until(lambda: len(b.samples()) > 3000)
    assert b.damaged == [] and b.missed() == 0
    assert [s[0] for s in b.samples()] == list(range(len(b.samples())))
    assert [seq for _, seq, _ in b.frames] == list(range(len(b.frames)))


def test_truth_is_json_at_every_moment(tmp_path):
    """Replaced, never rewritten: a reader during resets sees whole lists that only grow."""
    with Board(tmp_path) as b:
        b.hello()
        seen = []
        for boots in range(2, 6):
            b.reset()
            end = time.monotonic() + PATIENCE_S
            while (not seen or seen[-1] < boots) and time.monotonic() < end:
                seen.append(len(json.loads(b.truth_path.read_text())))
                time.sleep(0.005)
        assert seen == sorted(seen) and seen[-1] == 5
