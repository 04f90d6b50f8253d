"""The firmware allocates nothing and uses no floats while it samples, and imports what a board has."""

import ast
import json
import re
import statistics
import struct
import subprocess

import pytest
from simboard import ROOT, interpreter, make_feed, run_script

from ssdrig.meter import wire

pytestmark = pytest.mark.slow  # not of real time: its boards have a time of their own (simboard.py)


# --- nothing is allocated, nothing is a float


def stream(done):
    """-> (t_us of the first ping, [(t_us at which it was out, kind, seq, body)]) of heap_locked.py's output."""
    first, *lines = done.stdout.splitlines()
    frames, rest = [], b""
    for t, data in (line.split() for line in lines):
        *whole, rest = (rest + bytes.fromhex(data)).split(b"\x00")
        frames += [(int(t), *wire.decode(frame)) for frame in whole if frame]
    return int(first), frames


@pytest.mark.usefixtures("integers")
def test_sampling_allocates_nothing(tmp_path):
    """10000 rounds with the heap locked: samples, energy, register checks and some 200 pings, across the wrap of
    ticks_us."""
    make_feed(tmp_path / "feed", 2.5)
    done = run_script("heap_locked.py", str(tmp_path / "feed"), "10000", stdin="[{}]")
    assert done.returncode == 0, done.stdout + done.stderr
    _, frames = stream(done)
    assert [seq for _, _, seq, _ in frames] == list(range(len(frames)))
    heads = [struct.unpack_from(wire.SAMPLES_HEAD, body) for _, kind, _, body in frames if kind == wire.SAMPLES]
    assert [h[4] for h in heads] == list(range(0, 50 * len(heads), 50)) and len(heads) > 50
    assert {h[3] for h in heads} == {0}
    assert heads[0][5] < 1 << 30 < heads[-1][5]
    pongs = [struct.unpack(wire.PONG_BODY, body)[0] for _, kind, _, body in frames if kind == wire.PONG]
    assert pongs == list(range(len(pongs))) and len(pongs) > 150
    assert sum(kind == wire.ENERGY for _, kind, _, _ in frames) >= 3


CHIPS = {
    "INA228": {},
    "INA229": {"chip": "INA229", "bus": "SPI0", "cs": 1, "vbus_us": 50, "vshunt_us": 50, "temp_us": None},
    "INA226": {"chip": "INA226", "current_lsb_pA": 250_000_000, "vbus_us": 204, "vshunt_us": 588, "temp_us": None},
}


@pytest.mark.usefixtures("integers")
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("ahead", [1 << 30, 1 << 32], ids=hex)
def test_counts_that_pass_a_power_of_two_allocate_nothing(tmp_path, chip, ahead):
    """From 400 conversions before 2**30 on, as after 30 h at 10 000/s: indexes, the count of lost conversions and the
    sequence number run on, modulo 2**32, with the heap locked."""
    make_feed(tmp_path / "feed", 2.5)
    done = run_script(
        "heap_locked.py", str(tmp_path / "feed"), "5000", str(ahead - 400), stdin=json.dumps([CHIPS[chip]])
    )
    assert done.returncode == 0, done.stdout + done.stderr

    def since(count):
        """From ahead - 400 on."""
        return (count - ahead + 400) % (1 << 32)

    frames = [(kind, seq, body) for _, kind, seq, body in stream(done)[1]]
    # those before it were framed before the counts were set
    first = next(k for k, (_, seq, _) in enumerate(frames) if since(seq) == 0)
    assert [since(seq) for _, seq, _ in frames[first:]] == list(range(len(frames) - first))
    heads = [struct.unpack_from(wire.SAMPLES_HEAD, body) for kind, _, body in frames[first:] if kind == wire.SAMPLES]
    assert {since(head[3]) for head in heads} == {0}
    assert since(heads[0][4]) < 100 and since(heads[-1][4]) > 500
    assert [since(b[4]) - since(a[4]) for a, b in zip(heads, heads[1:])] == [head[2] for head in heads[:-1]]
    if chip != "INA226":
        ends = [struct.unpack(wire.ENERGY_BODY, body)[2] for kind, _, body in frames[first:] if kind == wire.ENERGY]
        assert 1 <= len(ends) <= 2 and 0 < since(ends[0]) < 1000


@pytest.mark.usefixtures("integers")
@pytest.mark.parametrize("amps", [-2.7, 2.7, 9, -9])
@pytest.mark.parametrize("chip", CHIPS)
def test_no_reading_allocates(tmp_path, chip, amps):
    """A value of 20 bits that was shifted by 12 once needed a heap object, from 2.6 A on and below zero."""
    make_feed(tmp_path / "feed", 2.5)
    row = CHIPS[chip] | {"simulated": {"A": amps, "V": 82}}
    done = run_script("heap_locked.py", str(tmp_path / "feed"), "1500", stdin=json.dumps([row]))
    assert done.returncode == 0, done.stdout + done.stderr
    bodies = [body for _, kind, _, body in stream(done)[1] if kind == wire.SAMPLES]
    lsb_A = row.get("current_lsb_pA", 9_765_625) * 1e-12
    most = (1 << 15 if chip == "INA226" else 1 << 19) * lsb_A
    seen = int.from_bytes(bodies[-1][-3:], "little", signed=True) * lsb_A
    assert len(bodies) > 2 and seen == pytest.approx(max(-most, min(most, amps)), abs=0.02)


@pytest.mark.usefixtures("integers")
def test_a_pongs_time_is_the_middle_of_the_boards_handling(tmp_path):
    """In device time, so exact: between arrival and answer, and on average in the middle, whatever the firmware does
    meanwhile (half the round trip would be the error of a stamp at either end)."""
    make_feed(tmp_path / "feed", 2.5)
    first, frames = stream(run_script("heap_locked.py", str(tmp_path / "feed"), "10000", stdin="[{}]"))
    trips, errors = [], []
    for out, kind, _, body in frames:
        if kind == wire.PONG:
            token, t_us, _ = struct.unpack(wire.PONG_BODY, body)
            arrival = first + 5000 * token
            assert arrival <= t_us <= out
            trips.append(out - arrival)
            errors.append((arrival + out) / 2 - t_us)
    assert len(errors) > 150
    assert statistics.median(trips) < 900 and min(trips) > 200
    assert abs(statistics.median(errors)) < 60


def test_the_lock_is_felt(tmp_path):
    make_feed(tmp_path / "feed", 2.5)
    done = run_script("heap_locked.py", str(tmp_path / "feed"), "100", "leak", stdin="[{}]")
    assert done.returncode == 3
    assert "MemoryError" in done.stdout


def test_the_integers_are_as_short_as_on_the_board(integers):
    code = (
        "import micropython\ndef f(x):\n micropython.heap_lock()\n x += x\n micropython.heap_unlock()\nf(1 <<"
        " 28)\nprint(1)\nf(1 << 29)\nprint(2)"
    )
    done = subprocess.run([*interpreter(), "-c", code], capture_output=True, text=True)
    if integers == "31-bit":
        assert done.stdout == "1\n" and "MemoryError" in done.stderr
    else:
        assert done.stdout == "1\n2\n"


def test_firmware_has_no_floats_in_the_sampling_path():
    """A board's floats are single precision. No float literal, true division or float() outside two named constants."""
    for path in (ROOT / "firmware").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            floats = (
                (isinstance(node, ast.Constant) and isinstance(node.value, float) and node.value != 195312.5)
                or isinstance(getattr(node, "op", None), ast.Div)
                or (isinstance(node, ast.Name) and node.id == "float")
            )
            assert not floats, f"{path.name}:{node.lineno}"


def test_firmware_imports_only_what_a_board_has():
    own = {p.stem for p in (ROOT / "firmware").glob("*.py")}
    board = {
        "array",
        "binascii",
        "gc",
        "json",
        "machine",
        "micropython",
        "os",
        "rp2",
        "select",
        "struct",
        "sys",
        "time",
        "uctypes",
    }
    for path in (ROOT / "firmware").glob("*.py"):
        names = re.findall(r"^(?:import|from) (\w+)", path.read_text(), re.M)
        assert set(names) <= own | board, path.name
