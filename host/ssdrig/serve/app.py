"""The server's routes. Every request passes guard.py first; data are sent as JSON, and a live run as one stream of
server-sent events, whose id is the position of its reader (tail.Place).

Asking a run that goes on, over the socket that it owns in its folder (run/control.py). The server sends no
signals: the run decides which requests it obeys."""

import asyncio
import json
import os
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ssdrig import __version__
from ssdrig.base.errors import SsdrigError, UsageError
from ssdrig.base.terminal import printable
from ssdrig.reading.index import Index, Run, condition
from ssdrig.runs import parts
from ssdrig.runs.integrity import CONTROL
from ssdrig.serve import drives, guard, rigs, shell
from ssdrig.serve.hub import Hub
from ssdrig.serve.pages import Pages, policy
from ssdrig.serve.tail import Tail, place

LIMIT_S = 5.0
MOST_BYTES = 4096
MOST_NOTE = 300
MOST_TOKEN = 64
WORDS = f"a note of up to {MOST_NOTE} characters, stop, arm, or cut with its token"
ANSWER = {"token": str, "hold_s": int | float, "off_s": int | float}  # further fields of a response


def ask_run(folder: Path, body: dict) -> dict:
    """{"ok", "why"} of {"do": "note", "text"}, {"do": "stop"}, {"do": "arm"} (with ANSWER) or {"do": "cut", "token"}.
    Raises UsageError for anything else, and where no run listens."""
    do, text, token = body.get("do"), body.get("text"), body.get("token")
    if do == "note" and isinstance(text, str) and 0 < len(text.strip()) <= MOST_NOTE:
        request = {"do": "note", "text": text.strip()}
    elif do in ("stop", "arm"):
        request = {"do": do}
    elif do == "cut" and isinstance(token, str) and 0 < len(token) <= MOST_TOKEN:
        request = {"do": "cut", "token": token}
    else:
        raise UsageError(WORDS, repr(do)[:40], "ask for one of them")
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
                s.settimeout(LIMIT_S)
                s.connect(f"/proc/self/fd/{fd}/{CONTROL}")  # the path itself may be longer than a socket's
                s.sendall(json.dumps(request).encode() + b"\n")
                answer = json.loads(s.makefile("rb").readline(MOST_BYTES))
        finally:
            os.close(fd)
    except (OSError, ValueError) as error:
        seen = getattr(error, "strerror", None) or str(error)
        raise UsageError("a run of this user that goes on", seen, "see whether it still runs, and as whom") from error
    more = {key: answer[key] for key, kind in ANSWER.items() if isinstance(answer.get(key), kind)}
    return {"ok": bool(answer.get("ok")), "why": str(answer.get("why") or "")[:300], **more}


MOST_STREAMS = 64
MOST_ROWS = 500
PING_S = 10.0
BODY_S = 10.0  # limit for receiving the body of a request
LEAST_REFRESH_S = 2.0


class Archive:
    """The index, for one caller at a time, refreshed when it is asked for and at most so often that it takes a fiftieth
    of the time."""

    def __init__(self, root: Path):
        self._index = Index(root)
        self._lock = threading.Lock()
        self._next = 0.0
        self.root = self._index.root

    def ask(self, question: Callable[[Index], Any], fresh: bool = True) -> Any:
        with self._lock:
            if fresh and time.monotonic() >= self._next:
                began = time.monotonic()
                self._index.refresh()
                took = time.monotonic() - began
                self._next = time.monotonic() + max(LEAST_REFRESH_S, 50 * took)
            return question(self._index)

    def close(self) -> None:
        self._index.close()


class Guarded:
    """Refuses the requests that guard.py refuses and closes their connection: with contradictory headers the end of the
    body is unknown (RFC 9112, 6.1), so later bytes are ignored. Adds the headers to every response."""

    def __init__(self, app: ASGIApp, allowed: frozenset[str], token: str, policy: str):
        self._app, self._allowed, self._token, self._policy = app, allowed, token, policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def with_headers(message) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message["headers"]}
                more = {**guard.HEADERS, "content-security-policy": self._policy}
                message["headers"] = [
                    *message["headers"],
                    *((k.encode(), v.encode()) for k, v in more.items() if k.encode() not in there),
                ]
            await send(message)

        path = scope.get("raw_path", b"").decode("latin-1") or scope["path"]
        refused = guard.refuse(scope["method"], path, scope["headers"], self._allowed, self._token)
        if refused:
            answer = PlainTextResponse(refused.why + "\n", refused.status, {"connection": "close"})
            await answer(scope, receive, with_headers)
        else:
            await self._app(scope, receive, with_headers)


def make(root: Path, port: int, token: str, with_control: bool, watched: Path) -> tuple[ASGIApp, Callable[[], None]]:
    """The application, and what closes it. Raises UsageError if the folder of runs cannot be looked into."""
    archive, hub, pages = Archive(root), Hub(), Pages()
    page = shell.page()
    streams = [0]

    async def ask(question: Callable[[Index], Any], fresh: bool = True) -> Any:
        return await asyncio.to_thread(archive.ask, question, fresh)

    async def first_page(request: Request) -> Response:
        return Response(page.html, media_type="text/html; charset=utf-8")

    async def hello(request: Request) -> Response:
        live = await ask(lambda index: index.find(condition("state:running"), 50))
        count = await ask(lambda index: index.count(), False)
        hello = {"version": __version__, "root": str(archive.root), "runs": count, "control": with_control}
        return JSONResponse(hello | {"live": [_row(run) for run in live]})

    async def runs(request: Request) -> Response:
        where = condition(request.query_params.get("q", "")[:500])
        limit, offset = (_number(request, key, most) for key, most in (("limit", MOST_ROWS), ("offset", 10**9)))

        def page_of_runs(index: Index) -> dict:
            return {"count": index.count(where), "runs": [_row(run) for run in index.find(where, limit or 100, offset)]}

        return JSONResponse(await ask(page_of_runs))

    async def compare(request: Request) -> Response:
        body = await _body(request)
        ids = body.get("runs")
        if not isinstance(ids, list) or not all(isinstance(run_id, str) for run_id in ids):
            return PlainTextResponse("runs: a list of ids\n", 400)
        first = list(dict.fromkeys(ids[:100]))

        def chosen(index: Index) -> list[tuple[Path, Any]]:
            some = [index.get(run_id) for run_id in first]
            return [(index.folder(run), (run.id, _stamp(index.folder(run)))) for run in some if run]

        pairs = await ask(chosen)
        if len(pairs) != len(dict.fromkeys(ids)):
            return PlainTextResponse("no such run\n", 404)
        name = await pages.make([folder for folder, _ in pairs], tuple(key for _, key in pairs))
        return JSONResponse({"page": f"/page/{name}"})

    async def report(request: Request) -> Response:
        content = await asyncio.to_thread(pages.content, request.path_params["name"])
        if content is None:
            return PlainTextResponse("no such page: ask for it again\n", 404)
        # its origin is opaque and has no opener to be isolated from; browsers warn about the header there
        headers = {"content-security-policy": policy(content), "cross-origin-opener-policy": "unsafe-none"}
        return Response(content, media_type="text/html; charset=utf-8", headers=headers)

    async def all_drives(request: Request) -> Response:
        return JSONResponse(await ask(drives.listed))

    async def a_drive(request: Request) -> Response:
        def drive_of(index: Index) -> dict | None:
            run = index.get(request.path_params["id"])
            return drives.one(index, run, watched) if run else None

        answer = await ask(drive_of)
        return JSONResponse(answer) if answer else PlainTextResponse("no such drive\n", 404)

    async def all_rigs(request: Request) -> Response:
        return JSONResponse(await ask(rigs.listed))

    async def followed(request: Request) -> Tail | None:
        def folder(index: Index) -> Path | None:
            run = index.get(request.path_params["id"])
            return parts.of(index.folder(run))[-1] if run else None

        path = await ask(folder, False) or await ask(folder)
        return await asyncio.to_thread(hub.tail, path) if path else None

    async def stream(request: Request) -> Response:
        if streams[0] >= MOST_STREAMS:
            return PlainTextResponse(f"{MOST_STREAMS} streams are open\n", 503)
        tail = await followed(request)
        if tail is None:
            return PlainTextResponse("no such run\n", 404)
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        at = request.headers.get("last-event-id")
        return StreamingResponse(_messages(hub, tail, at, streams), media_type="text/event-stream")

    async def act(request: Request) -> Response:
        if not with_control:
            return PlainTextResponse("this server only reads: start it with --control\n", 403)
        tail, body = await followed(request), await _body(request)
        if tail is None:
            return PlainTextResponse("no such run\n", 404)
        return JSONResponse(await asyncio.to_thread(ask_run, tail.folder, body))

    def refused(request: Request, error: Exception) -> Response:
        words = (
            {"expected": error.expected, "seen": error.seen, "do": error.do} if isinstance(error, SsdrigError) else {}
        )
        return JSONResponse(words, 400)

    app = Starlette(
        routes=[
            Route("/", first_page),
            Route("/page/{name}", report),
            Route("/api/hello", hello),
            Route("/api/runs", runs),
            Route("/api/compare", compare, methods=["POST"]),
            Route("/api/drives", all_drives),
            Route("/api/drives/{id}", a_drive),
            Route("/api/rigs", all_rigs),
            Route("/api/live/{id}", stream),
            Route("/api/live/{id}/act", act, methods=["POST"]),
        ],
        exception_handlers={SsdrigError: refused},
    )
    app.router.redirect_slashes = False

    def close() -> None:
        hub.close()
        archive.close()
        pages.close()

    return Guarded(app, guard.hosts(port), token, page.policy), close


async def _messages(hub: Hub, tail: Tail, last: str | None, streams: list[int]) -> AsyncIterator[bytes]:
    """The messages of a run from the reader's position on. The server buffers nothing for a reader, so a slow one costs
    no memory and skips to the newest moments."""
    at, tenths, preview_ns, news = place(last), 0, 0, hub.listen(tail)
    streams[0] += 1
    try:
        yield _message("facts", tail.facts(), str(at))
        while True:
            news.clear()
            ended = tail.ended
            message, at, tenths, preview_ns = tail.since(at, tenths, preview_ns)
            if message:
                yield _message("more", message | {"now": tail.axis_s(time.monotonic_ns())}, str(at))
            elif ended:
                yield _message("ended", {}, str(at))
                return
            else:
                try:
                    await asyncio.wait_for(news.wait(), PING_S)
                except TimeoutError:
                    yield b": still here\n\n"
    finally:
        streams[0] -= 1
        hub.leave(tail, news)


def _message(kind: str, message: dict, at: str) -> bytes:
    return f"event: {kind}\nid: {at}\ndata: {json.dumps(message, separators=(',', ':'))}\n\n".encode()


def _row(run: Run) -> dict:
    row = run._asdict()
    row["path"] = printable(run.path)
    return {**row, "started_utc_ms": run.started_utc_ns // 10**6 if run.started_utc_ns else None}


def _stamp(folder: Path) -> tuple:
    """Changes when the run does."""
    try:
        status = os.stat(folder / "events.jsonl")
        return status.st_size, status.st_mtime_ns, os.stat(folder / "rig.bin").st_size
    except OSError:
        return ()


def _number(request: Request, key: str, most: int) -> int:
    text = request.query_params.get(key, "")
    return min(int(text), most) if text.isascii() and text.isdigit() and len(text) < 12 else 0


async def _body(request: Request) -> dict:
    try:
        body = json.loads(await asyncio.wait_for(request.body(), BODY_S))
    except (ValueError, RecursionError, TimeoutError, ClientDisconnect):
        return {}
    return body if isinstance(body, dict) else {}
