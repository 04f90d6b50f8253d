"""A board on another machine: through TCP and RFC 2217, with the clock's bound that its round trips give."""

import argparse
import contextlib
import importlib
import socket
import threading

import numpy as np
import pytest
import serial
from rig_board import FakeBoard, book  # noqa: F401  fixture
from serial import rfc2217
from simboard import until
from tcp_bridge import TcpBridge

from ssdrig import cli
from ssdrig.base.arguments import ELSEWHERE
from ssdrig.base.errors import RigError, UsageError
from ssdrig.meter import meter, samples, wire
from ssdrig.meter.pico import ports
from ssdrig.meter.pico import stream as rig_module
from ssdrig.meter.pico.stream import Rig
from ssdrig.runs import journal


def _rigs(parser):
    """Help of each --rig that takes a port, of a parser and of its actions."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _rigs(inner)
        elif "--rig" in action.option_strings and action.metavar == "PORT":
            yield parser.prog, action.help


def test_each_rig_may_be_on_another_machine_and_its_help_says_how():
    modules = {name: importlib.import_module(cli.COMMANDS[name][0]) for name in cli.COMMANDS}
    rigs = dict(_rigs(cli.parser_of(modules)))
    asked = {prog.split()[1] for prog in rigs}
    assert {"run", "record", "resume", "review", "rig"} <= asked
    assert not [prog for prog, words in rigs.items() if ELSEWHERE not in words]


@pytest.mark.parametrize("scheme, known", [("tcp", "socket"), ("socket", "socket"), ("rfc2217", "rfc2217")])
def test_a_port_elsewhere_is_our_board_and_is_not_looked_for(scheme, known):
    url = f"{scheme}://bench.lab:4000"
    assert ports.remote(url) == f"{known}://bench.lab:4000"
    assert meter.split(url) == (meter.BOARD, url) and meter.is_rig(url)
    ports.check_access(url)
    assert ports.find(url, ports=[]) == url


def test_a_port_of_this_machine_is_none_elsewhere():
    assert ports.remote("/dev/ttyACM0") is None and ports.remote("tcp:") is None


@pytest.mark.parametrize(
    "url",
    ["http://h:1", "tcp://h", "tcp://h:0", "tcp://h:70000", "tcp://h:x", "tcp://:1", "tcp://u@h:1", "tcp://h:1/a"],
)
def test_what_is_no_host_with_a_port_is_refused(url):
    with pytest.raises(UsageError):
        ports.check_there(url)


class Started(FakeBoard):
    """`go_at`: when its stream began, by time.monotonic()."""

    def obey(self, kind, seq, body):
        super().obey(kind, seq, body)
        if kind == wire.GO:
            self.go_at = self.sent_until


@pytest.fixture
def board():
    made = Started()
    made.start()
    yield made
    made.end()


class Pty(serial.Serial):
    """A pseudo-terminal has no modem lines."""

    cts = dsr = ri = cd = False

    def _update_dtr_state(self):
        pass

    def _update_rts_state(self):
        pass


@pytest.mark.keeps_time
def test_a_board_behind_tcp_streams_and_comes_back_after_the_connection_was_lost(book, board, monkeypatch):
    monkeypatch.setattr(rig_module, "REOPEN_S", 0.1)
    bridge = TcpBridge(board.port)
    bridge.start()
    rig = Rig(bridge.url, book)
    try:
        rig.start()
        until(lambda: rig.live()["samples"] > 100)
        bridge.hang_up()
        until(lambda: bridge.served == 2 and rig.live()["state"] == "streaming")
        before = rig.live()["samples"]
        until(lambda: rig.live()["samples"] > before + 100)
    finally:
        rig.stop()
        bridge.end()
    assert "rig.lost" in {event["kind"] for event in journal.events(book.path)}


@pytest.mark.keeps_time
@pytest.mark.parametrize("delays_s", [(0.0, 0.0), (0.02, 0.02), (0.04, 0.0), (0.0, 0.04)])
def test_times_are_within_the_bound_that_the_round_trips_give(book, board, delays_s):
    bridge = TcpBridge(board.port, delays_s)
    bridge.start()
    rig = Rig(bridge.url, book)
    try:
        rig.start()
        until(lambda: rig.live()["samples"] > 3000 and rig.live()["pongs"] > 20)
    finally:
        rig.stop()
        bridge.end()
    power = samples.load(book.path)
    true_ns = np.rint(board.go_at * 1e9) + 1_000_000 * (1 + np.arange(len(power.t_ns)))
    assert (np.abs(power.t_ns - true_ns) <= power.err_ns + 1_000_000).all()  # and one conversion
    assert np.median(power.err_ns) >= sum(delays_s) / 2 * 1e9 * 0.95


@pytest.mark.keeps_time
def test_a_board_behind_rfc_2217_streams(book, board):
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection, Pty(board.port, timeout=0.01) as port:
            lock = threading.Lock()

            class Out:
                def write(self, data):
                    with lock:
                        connection.sendall(data)

            manager = rfc2217.PortManager(port, Out())

            def out():
                while not ended.is_set():
                    if data := port.read(max(1, port.in_waiting)):
                        try:
                            Out().write(b"".join(manager.escape(data)))
                        except OSError:
                            return

            sender = threading.Thread(target=out, daemon=True)
            sender.start()
            with contextlib.suppress(OSError):
                while data := connection.recv(1024):
                    port.write(b"".join(manager.filter(data)))
            ended.set()
            sender.join()

    ended = threading.Event()
    server = threading.Thread(target=serve, daemon=True)
    server.start()
    rig = Rig(f"rfc2217://127.0.0.1:{listener.getsockname()[1]}", book)
    try:
        rig.start()
        until(lambda: rig.live()["samples"] > 500)
    finally:
        rig.stop()
        ended.set()
        server.join(20)
        listener.close()
    assert not server.is_alive() and rig.live()["damaged"] <= 1


def test_a_machine_that_does_not_answer_is_one_error(book):
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with pytest.raises(RigError):
        Rig(f"tcp://127.0.0.1:{port}", book).start()
