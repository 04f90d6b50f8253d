"""SIGTERM ends `ssdrig serve` whatever it is doing: neither a refresh of the index nor a page that is being made is
waited for."""

import asyncio
import os
import select
import signal
import threading

import pytest
import synthetic_run
from browser_serving import PATIENCE_s, Serving

from ssdrig.serve import app

pytestmark = pytest.mark.slow

MAIN = "\nfrom ssdrig.cli import main\nraise SystemExit(main())\n"
BLOCKED_INDEX = """
import threading
from ssdrig.reading.index import Index
def blocked(self, *_):
    print("blocked", flush=True)
    threading.Event().wait()
Index.refresh = blocked
"""
BLOCKED_PAGE = """
import sys
from types import SimpleNamespace
from ssdrig.serve import pages
pages.sys = SimpleNamespace(executable={!r})
"""
IN_A_FINALIZER = """
import signal, weakref
import uvicorn
class Server(uvicorn.Server):
    def __init__(self, config):
        super().__init__(config)
        thing = lambda: None
        reference = weakref.ref(thing, lambda _: signal.raise_signal(signal.{}))
        del thing
uvicorn.Server = Server
"""


def asked(served: Serving, *words) -> threading.Thread:
    """A request whose answer may never come."""

    def ask() -> None:
        try:
            served.ask(*words)
        except OSError:
            pass  # the server has ended

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("name", ("SIGTERM", "SIGINT", "SIGHUP"))
def test_a_signal_that_interrupts_a_finalizer(tmp_path, name):
    with Serving(tmp_path, program=("-c", IN_A_FINALIZER.format(name) + MAIN)) as served:
        served.process.wait(PATIENCE_s)
    assert served.process.returncode == 130


def test_a_refresh_of_the_index_that_does_not_return(tmp_path):
    served = Serving(tmp_path, program=("-c", BLOCKED_INDEX + MAIN))
    try:
        asked(served, "GET", "/api/earlier/no")  # which waits for all runs
        assert served.process.stdout.readline() == "blocked\n"
        served.process.send_signal(signal.SIGTERM)
        served.process.wait(PATIENCE_s)
    finally:
        served.end()


def test_a_page_maker_that_does_not_return(tmp_path):
    fifo, maker, runs = tmp_path / "fifo", tmp_path / "maker", tmp_path / "runs"
    os.mkfifo(fifo)
    maker.write_text(f"#!/bin/sh\ntrap '' TERM INT HUP\necho $$ > {fifo}\nexec sleep 3600\n")
    maker.chmod(0o755)
    runs.mkdir()
    synthetic_run.write(runs, [1000] * 6, zoom_s=2)
    with Serving(runs, program=("-c", BLOCKED_PAGE.format(str(maker)) + MAIN)) as served:
        (run,) = served.get("/api/runs")["runs"]
        asked(served, "POST", "/api/compare", {"runs": [run["id"]]})
        maker_fd = os.pidfd_open(int(fifo.read_text()))
        try:
            served.process.send_signal(signal.SIGTERM)
            served.process.wait(PATIENCE_s)
            assert select.select([maker_fd], [], [], PATIENCE_s)[0], "the page maker goes on"
        finally:
            os.close(maker_fd)


def test_the_loop_does_not_wait_for_a_thread():
    begun, released = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        released.wait()

    async def ask() -> None:
        task = asyncio.create_task(app.in_thread(work))
        while not begun.is_set():
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(ask())
    assert not released.is_set()
    released.set()


def test_a_thread_gives_its_result_and_its_error():
    assert asyncio.run(app.in_thread(max, 3, 5)) == 5
    with pytest.raises(ZeroDivisionError):
        asyncio.run(app.in_thread(divmod, 1, 0))
