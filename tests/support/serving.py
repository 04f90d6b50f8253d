"""Starts virtual drive servers for tests and ends them, also when the test fails. They and forked() are
forked (zygote.py); run() starts the command as a person does."""

import argparse
import json
import signal
import socket
import struct
import subprocess
import sys

import pytest
from zygote import Forked

from ssdrig.base.errors import SsdrigError
from ssdrig.blockio.nbd import NbdClient
from ssdrig.virtual import adminclient, serve

START_S = 1200  # a first start compiles
PATIENCE_S = 1200  # for an answer: a starved server may get none of the processor for many seconds
TRIES = 20  # of what a busy machine may be too slow for


class Serving:
    """A server process and what it said of itself."""

    def __init__(self, folder, *words):
        self.socket = str(folder / "nbd")
        self.folder = folder
        with open(folder / "err", "wb") as err:
            self.process = Forked(["--socket", self.socket, *words], err)
        line = self.process.stdout.readline()
        assert line, (folder / "err").read_text()
        self.ready = json.loads(line)

    def admin(self, **request) -> dict:
        return adminclient.ask(self.ready["admin"], request, PATIENCE_S)

    def truth(self, **request) -> dict:
        return adminclient.ask(self.socket + ".truth", request, PATIENCE_S)

    def client(self) -> NbdClient:
        return NbdClient(self.socket, timeout_s=PATIENCE_S)

    def end(self, number=signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        self.process.stdout.close()
        return code


@pytest.fixture
def serving(tmp_path):
    """serving("--preset", ...) starts a server; all of them end with the test."""
    started = []

    def start(*words):
        folder = tmp_path / str(len(started))
        folder.mkdir()
        started.append(Serving(folder, *words))
        return started[-1]

    yield start
    for server in started:
        if server.process.poll() is None:
            server.process.kill()
        server.process.wait()
        server.process.stdout.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One fast server for the tests that leave it as it was."""
    server = Serving(tmp_path_factory.mktemp("serve"), "--preset", "sata-tlc", "--capacity", "1GiB", "--no-latency")
    yield server
    server.end()


def run(*words, **how) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "ssdrig.virtual.serve", *words], capture_output=True, text=True, **how)


def forked(folder, *words) -> subprocess.CompletedProcess:
    """As run(), forked."""
    with open(folder / "err", "wb") as err:
        process = Forked(list(words), err)
    with process.stdout:
        output = process.stdout.read().decode()
    return subprocess.CompletedProcess(words, process.wait(START_S), output, (folder / "err").read_text())


def refused(*words) -> SsdrigError:
    """As run(), in this process, of words that are refused: what the command raises."""
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    with pytest.raises(SsdrigError) as error:
        serve.command(parser.parse_args(words))
    return error.value


def raw_client(path: str) -> socket.socket:
    """A negotiated connection without the manners of NbdClient."""
    client = NbdClient(path, timeout_s=PATIENCE_S)
    return client.sock


def request(op, offset=0, length=0, cookie=1, flags=0) -> bytes:
    return struct.pack(">IHHQQI", 0x25609513, flags, op, cookie, offset, length)


def receive(sock: socket.socket, n: int) -> bytes:
    out = b""
    while len(out) < n:
        more = sock.recv(n - len(out))
        if not more:
            break
        out += more
    return out
