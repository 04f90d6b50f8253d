"""Tests on a real rig. Nothing of this folder is collected without --hil-port and --hil-serial, and nothing switches
power without
--hil-cut. tests/project/test_hil.py runs all of it on the SIMULATED board's port.

    ./ssdrig test tests/hil --hil-port /dev/serial/by-id/... --hil-serial E66... [--hil-cut]
"""

import contextlib
import os
import time
import tty

import pytest
from simboard import Line

from ssdrig.base.errors import RigError
from ssdrig.meter import samples, wire
from ssdrig.meter.pico.session import session
from ssdrig.meter.pico.stream import Rig
from ssdrig.runs import journal

LATE_S = 30.0  # that samples of a stretch may come late; those that do not come at all fail its tests


def pytest_addoption(parser):
    group = parser.getgroup("hil", "tests on a real rig (tests/hil)")
    group.addoption(
        "--hil-port",
        metavar="PORT",
        help="the rig's serial port, best by its name in /dev/serial/by-id; no drive may be connected",
    )
    group.addoption(
        "--hil-serial", metavar="SERIAL", help="the serial number that this rig must have (./ssdrig rig info says it)"
    )
    group.addoption(
        "--hil-cut", action="store_true", help="rails may lose their power: a dummy load, no drive, is connected"
    )
    group.addoption(
        "--hil-seconds",
        type=float,
        default=60,
        metavar="S",
        help="length of the stretch in which nothing may be lost (default %(default)s)",
    )
    group.addoption(
        "--hil-deaf", type=float, default=10, metavar="S", help="how long the host does not read (default %(default)s)"
    )
    group.addoption(
        "--hil-bulk-uF",
        type=int,
        default=470,
        metavar="N",
        help="capacitance behind each switch, for the ramp (default %(default)s)",
    )


def pytest_configure(config):
    port, serial = (config.getoption(name, None) for name in ("--hil-port", "--hil-serial"))
    if bool(port) != bool(serial):
        raise pytest.UsageError(
            "--hil-port and --hil-serial belong together: the tests refuse a rig that is not the one named"
        )


def pytest_ignore_collect(collection_path, config):
    if collection_path.suffix == ".py" and not config.getoption("--hil-port", None):
        return True
    return None


@pytest.fixture(scope="session")
def port(request) -> str:
    """The port of the rig that was named; every test fails if another rig answers there."""
    path, serial = request.config.getoption("--hil-port"), request.config.getoption("--hil-serial")
    with session(path, stream=False) as rig_session:
        board = rig_session.hello.get("serial")
    if board != serial:
        pytest.fail(
            f"expected the rig with serial {serial} on {path}; seen serial {board}; nothing was asked of it",
            pytrace=False,
        )
    return path


@pytest.fixture(scope="session")
def hello(port) -> dict:
    """What the rig says of itself."""
    with session(port, stream=False) as rig_session:
        return rig_session.hello


@pytest.fixture
def line(port):
    """A host that does as it is told, on a rig that does not stream."""
    fd = os.open(port, os.O_RDWR | os.O_NOCTTY)
    try:
        tty.setraw(fd)
        talk = Line(fd)
        talk.write(b"\x00")
        talk.send(wire.STOP)
        talk.hello()
        talk.frames.clear()  # what was still under way to an earlier host, the rest of a frame among it
        talk.damaged.clear()
        yield talk
        with contextlib.suppress(OSError):
            talk.send(wire.STOP)
    finally:
        os.close(fd)


@pytest.fixture
def streaming(port):
    """The rig in use by hand: rig_session.Session."""
    with session(port) as rig_session:
        yield rig_session


@pytest.fixture(scope="session")
def stretch(port, hello, request, tmp_path_factory):
    """(powers of all rails, Rig.live() at the end) of an undisturbed stretch of --hil-seconds; of more where a host
    that is busy gets the samples of that time later."""
    seconds = request.config.getoption("--hil-seconds")
    expected = 0.98 * sum(seconds * 1e9 / rail["conversion_ns"] for rail in hello["rails"])
    book = journal.create(tmp_path_factory.mktemp("stretch"), {"run": "hil"})
    rig = Rig(port, book)
    try:
        rig.start()
        time.sleep(seconds)
        patience = time.monotonic() + LATE_S
        while rig.live()["samples"] + rig.lost() < expected and time.monotonic() < patience:
            time.sleep(0.1)
    finally:
        rig.stop()
        book.close("complete")
    return samples.load_rails(book.path), rig.live()


@pytest.fixture
def cut(request, hello):
    """The rig's switch; skips where nothing may be switched."""
    if not request.config.getoption("--hil-cut"):
        pytest.skip("it switches the rails' power: connect a dummy load instead of a drive and give --hil-cut")
    if not hello.get("switch"):
        pytest.skip("this rig has no switch")
    return hello["switch"]


@pytest.fixture
def back(port):
    """Wait until the board answers (again); its hello."""
    return lambda: answers(port)


def answers(port, patience_s=30.0) -> dict:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            with session(port, stream=False, timeout_s=3.0) as rig_session:
                return rig_session.hello
        except RigError:  # not there yet, or just starting
            if time.monotonic() > deadline:
                raise
            time.sleep(0.3)


@pytest.fixture
def reset_board(port):
    """reset_board(): a reset of the chip, which also takes it from USB for a moment; wait: until it answers again.
    Works beside a host that has the port open."""

    def reset(wait=True):
        fd = os.open(port, os.O_WRONLY | os.O_NOCTTY)
        try:
            os.write(fd, b"\x00" + wire.encode(wire.QUIT, 0))
            time.sleep(0.5)
            os.write(fd, b"\r\x01import machine\nmachine.reset()\n\x04")
            time.sleep(0.2)
        finally:
            os.close(fd)
        if wait:
            time.sleep(1.0)
            answers(port)

    return reset
