"""`ssdrig serve [FOLDER]`: the bench in the browser."""

import argparse
import os
import secrets
import signal
import socket
import sys
from pathlib import Path
from typing import NoReturn

from ssdrig.base import shipped
from ssdrig.base.errors import ToolMissing, UsageError
from ssdrig.drive.smart import watch_folder

DEFAULT_PORT = 8017
NICE = 10
MOST_CONNECTIONS = 200
MOST_HEAD_BYTES = 16384
BACKLOG = 128


EXAMPLES = (
    ("serve", "prints an address with a key in it, for a browser on this machine"),
    ("serve /data/runs --port 0", "another folder, a free port"),
    ("serve --port 8017", "from another machine: there `ssh -L 8017:127.0.0.1:8017 BENCH`, then the address"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", nargs="?", default="runs", metavar="FOLDER", help="parent of the run folders (default ./runs)"
    )
    parser.add_argument(
        "--port",
        type=int,
        default=DEFAULT_PORT,
        metavar="N",
        help="on 127.0.0.1 and ::1 (default %(default)s; 0: a free one)",
    )
    parser.add_argument(
        "--control", action="store_true", help="also offer buttons to add a note to the current run and to stop it"
    )
    parser.add_argument(
        "--watched",
        metavar="DIR",
        help="folder of ssdrig watch, for the trends of drives (default: its default folder)",
    )
    parser.add_argument(
        "--as-root", action="store_true", help="start although this is root's process, as in a container"
    )


def check(args) -> None:
    """Raises UsageError."""
    if os.geteuid() == 0 and not args.as_root:
        raise UsageError("a user without rights: reading run folders needs none", "root", "start it without sudo")
    if not 0 <= args.port <= 65535:
        raise UsageError("--port from 0 to 65535", str(args.port), "choose another one")


def command(args) -> NoReturn:
    """Serves until SIGINT, SIGTERM or SIGHUP, then raises KeyboardInterrupt. Raises UsageError, ToolMissing."""
    check(args)
    try:
        import uvicorn
    except ImportError as error:
        raise ToolMissing("the Python packages of `serve`", str(error), shipped.installing("serve")) from error
    from ssdrig.serve import app as server
    from ssdrig.serve.connection import Connection

    signals: list[int] = []

    class Server(uvicorn.Server):
        async def on_tick(self, counter: int) -> bool:
            return bool(signals) or await super().on_tick(counter)

    sockets = listening(args.port)
    port = sockets[0].getsockname()[1]
    token = secrets.token_urlsafe(32)
    watched = Path(args.watched) if args.watched else watch_folder.default_folder()
    app, close = server.make(Path(args.folder), port, token, args.control, watched)
    os.nice(NICE)  # from here on: a refusal leaves nothing in a process that continues
    # counted, not raised: an exception in a handler is lost where it interrupts a finalizer, and the server stays
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, lambda number, _: signals.append(number))
    print(f"http://127.0.0.1:{port}/#t={token}", flush=True)
    print(f"serving {os.path.realpath(args.folder)}; Ctrl-C ends it, and touches no run", file=sys.stderr, flush=True)
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="off",
        loop="asyncio",
        access_log=False,
        log_level="error",
        proxy_headers=False,
        server_header=False,
        date_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        backlog=BACKLOG,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=MOST_HEAD_BYTES,
    )
    try:
        Server(config).run(sockets=sockets)
    finally:
        close()
    raise KeyboardInterrupt


def listening(port: int) -> list[socket.socket]:
    """Sockets on 127.0.0.1 and, where the machine has it, ::1. Raises UsageError if the port is taken."""
    folders = []
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            one = socket.socket(family, socket.SOCK_STREAM)
        except OSError:
            continue
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((address, port))
            one.listen(BACKLOG)  # from here on who asks is answered, if only in a moment
        except OSError as error:
            one.close()
            if family == socket.AF_INET6:
                continue
            raise UsageError(
                f"a free port {port} on {address}", error.strerror or str(error), "choose another with --port N, or 0"
            ) from error
        port = one.getsockname()[1]
        folders.append(one)
    return folders
