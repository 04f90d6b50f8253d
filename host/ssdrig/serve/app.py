"""The server's routes. Every request passes guard.py first; data are sent as JSON, and a live run as one stream of
server-sent events, whose id is the position of its reader (tail.Place).

Asking a run that goes on, over the socket that it owns in its folder (run/control.py). The server sends no
signals: the run decides which requests it obeys.

The runs that are being viewed: one thread follows each for all its viewers, and ends when there are none.

Access control: every request is checked here first. Pure, except for the server's own ports.

The server listens on loopback, which every user and every web page of this machine can reach. So each request must
name a host of the list (a page of another site that had its name point here does not), and all data needs the token
that was printed at the start, which no other site and no other user knows. There is no cookie."""

import asyncio
import contextlib
import hmac
import json
import os
import re
import socket
import threading
import time
import traceback
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

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
from ssdrig.serve import drives, reviews, rigs, shell
from ssdrig.serve.pages import Pages, policy, stamp
from ssdrig.serve.tail import Tail, place

MOST_BODY = 1 << 16
MOST_URL = 4096
MOST_HEADERS = 64
FETCHED_BY = ("same-origin", "none")
PAGE = re.compile(r"/page/[A-Za-z0-9_-]{43}")  # a report page: its name, 256 bits, is its key
HEADERS = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Refused(NamedTuple):
    """The response to a refused request."""

    status: int
    why: str


def hosts(port: int) -> frozenset[str]:
    """The valid Host headers of a request."""
    return frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))


def refuse(
    method: str, path: str, headers: list[tuple[bytes, bytes]], allowed: frozenset[str], token: str
) -> Refused | None:
    """Why a request is refused; None: it may go on. `headers`: names in lower case, as they came."""
    if len(headers) > MOST_HEADERS:
        return Refused(431, f"at most {MOST_HEADERS} headers")
    fields: dict[str, str] = {}
    for raw, value in headers:
        name = raw.decode("latin-1").lower()
        if name in fields and name in ("host", "authorization", "origin", "content-length", "content-type"):
            return Refused(400, f"{name} is there twice")
        fields[name] = value.decode("latin-1")
    if fields.get("host") not in allowed:
        return Refused(403, "this server answers to its own address only")
    if fields.get("origin", "null") not in {f"http://{host}" for host in allowed} and "origin" in fields:
        return Refused(403, "asked by a page of another site")
    if len(path) > MOST_URL or not path.startswith("/") or "\\" in path or "\0" in path or ".." in path.split("/"):
        return Refused(400, "no path of this server")
    if method not in ("GET", "HEAD", "POST"):
        return Refused(405, "GET, HEAD and POST only")
    if path == "/" and method != "POST":
        return None  # the page without any data
    if fields.get("sec-fetch-site", "none") not in FETCHED_BY:
        return Refused(403, "asked by a page of another site")
    if PAGE.fullmatch(path) and method != "POST":
        return None
    if not bears(fields, token):
        return Refused(401, "the address that was printed at the start has the token")
    return _refuse_body(fields) if method == "POST" else None


def bears(headers: Mapping[str, str], token: str) -> bool:
    """Whether the request has the token; compared in constant time."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())


def _refuse_body(headers: Mapping[str, str]) -> Refused | None:
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return Refused(415, "application/json only")
    length = headers.get("content-length", "")
    if not length.isascii() or not length.isdigit() or int(length[:12]) > MOST_BODY or "transfer-encoding" in headers:
        return Refused(413, f"a body of at most {MOST_BODY} bytes, with its length")
    return None


EACH_S = 0.1
LINGER_S = 60.0  # a run without viewers is followed this long: a viewer may be reconnecting


class Hub:
    """tail() from any thread; listen() and leave() from the event loop's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tails: dict[Path, Tail] = {}
        self._heard: dict[int, set[tuple[asyncio.AbstractEventLoop, asyncio.Event]]] = {}  # id of a tail -> listeners
        self._closing = threading.Event()

    def tail(self, folder: Path) -> Tail:
        """The run that is followed there. Raises JournalError."""
        with self._lock:
            if folder not in self._tails:
                self._tails[folder] = tail = Tail(folder)
                self._heard[id(tail)] = set()
                threading.Thread(target=self._follow, args=(tail,), daemon=True, name="serve-tail").start()
            return self._tails[folder]

    def listen(self, tail: Tail) -> asyncio.Event:
        """Set whenever there is more."""
        event = asyncio.Event()
        with self._lock:
            self._heard.setdefault(id(tail), set()).add((asyncio.get_running_loop(), event))
        return event

    def leave(self, tail: Tail, event: asyncio.Event) -> None:
        with self._lock:
            heard = self._heard.get(id(tail), set())
            heard -= {pair for pair in heard if pair[1] is event}

    def close(self) -> None:
        self._closing.set()

    def _follow(self, tail: Tail) -> None:
        alone_since = time.monotonic()
        while not self._closing.is_set():
            began = time.monotonic()
            try:
                if tail.step() or tail.ended:
                    self._tell(tail)
            except (SsdrigError, OSError):
                pass  # the folder disappeared, and its lock with it, which its readers notice
            except Exception:  # a defect: its readers do not wait for ever
                traceback.print_exc()
                tail.ended = True
                self._tell(tail)
            with self._lock:
                if self._heard[id(tail)]:
                    alone_since = time.monotonic()
                elif tail.ended or time.monotonic() - alone_since > LINGER_S:
                    del self._tails[tail.folder], self._heard[id(tail)]
                    return
            self._closing.wait(max(0.01, EACH_S - (time.monotonic() - began)) if not tail.ended else 1.0)

    def _tell(self, tail: Tail) -> None:
        with self._lock:
            for loop, event in self._heard[id(tail)]:
                with contextlib.suppress(RuntimeError):  # the loop has ended
                    loop.call_soon_threadsafe(event.set)


async def in_thread(work: Callable, *words) -> Any:
    """The result of `work(*words)`, from a thread that neither the end of the event loop nor that of the process waits
    for, as they do for asyncio.to_thread's: on a busy machine a refresh of the index takes minutes."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if future.done():  # its request was cancelled
            return
        if error:
            future.set_exception(error)
        else:
            future.set_result(result)

    def run() -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = work(*words)
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, daemon=True, name="serve-work").start()
    return await future


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
MOST_COURSES = 64
PING_S = 10.0
BODY_S = 10.0  # limit for receiving the body of a request
LEAST_REFRESH_S = 2.0
FRESH_S = 0.5  # an answer waits this long for changed runs


class Archive:
    """The index, for one question at a time; others wait meanwhile, so none reads the files of runs. A thread reads
    changed runs: when it is asked for, for at most a fiftieth of the time."""

    def __init__(self, root: Path):
        self._index = Index(root)
        self._lock = threading.Lock()  # of the index
        self._starting = threading.Lock()
        self._refreshed: Future[None] = Future()
        self._refreshed.set_result(None)
        self._next = 0.0
        self.root, self.folder = self._index.root, self._index.folder  # these ask no table
        self.reading: dict | None = None  # {"done", "of"}: runs that were read, and those due; None: nothing is due

    def ask(self, question: Callable[[Index], Any], wait_s: float | None = FRESH_S) -> Any:
        """The answer from the indexed runs, which are up to date if that takes at most `wait_s` (None: without a limit;
        0: not asked for). Raises JournalError if the folder of runs has gone."""
        if wait_s != 0:
            with contextlib.suppress(TimeoutError):
                self._refresh().result(wait_s)
        with self._lock:
            return question(self._index)

    def _refresh(self) -> "Future[None]":
        """The current refresh; without one a new one, if it is time for it, otherwise the last one."""
        with self._starting:
            if self._refreshed.done() and time.monotonic() >= self._next:
                self._refreshed = Future()
                threading.Thread(target=self._read, args=(self._refreshed,), daemon=True, name="serve-index").start()
            return self._refreshed

    def _read(self, refreshed: "Future[None]") -> None:
        def progress(done: int, due: int) -> None:
            self.reading = {"done": done, "of": due}

        began, self.reading = time.monotonic(), {"done": 0, "of": None}
        try:
            self._index.refresh(progress, self._lock)
        except BaseException as error:
            self.reading = None
            refreshed.set_exception(error)
            return
        now = time.monotonic()
        self._next = now + max(LEAST_REFRESH_S, 50 * (now - began))
        self.reading = None
        refreshed.set_result(None)

    def close(self) -> None:
        """Does not wait for a question or a refresh: their threads end with the process."""
        if self._refreshed.done() and self._lock.acquire(blocking=False):
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
                more = {**HEADERS, "content-security-policy": self._policy}
                message["headers"] = [
                    *message["headers"],
                    *((k.encode(), v.encode()) for k, v in more.items() if k.encode() not in there),
                ]
            await send(message)

        path = scope.get("raw_path", b"").decode("latin-1") or scope["path"]
        refused = refuse(scope["method"], path, scope["headers"], self._allowed, self._token)
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
    shown: dict[tuple, list[dict]] = {}  # id and stamp of a run -> Tail.course()
    review_rows: reviews.Rows = {}

    async def ask(question: Callable[[Index], Any], wait_s: float | None = FRESH_S) -> Any:
        return await in_thread(archive.ask, question, wait_s)

    async def first_page(request: Request) -> Response:
        return Response(page.html, media_type="text/html; charset=utf-8")

    async def hello(request: Request) -> Response:
        def state(index: Index) -> dict:
            live = [_row(run) for run in index.find(condition("state:running"), 50)]
            return {"runs": index.count(), "live": live, "reading": archive.reading}

        hello = {"version": __version__, "root": str(archive.root), "control": with_control}
        return JSONResponse(hello | await ask(state))

    async def runs(request: Request) -> Response:
        where = condition(request.query_params.get("q", "")[:500])
        limit, offset = (_number(request, key, most) for key, most in (("limit", MOST_ROWS), ("offset", 10**9)))

        def page_of_runs(index: Index) -> dict:
            rows = [_row(run) for run in index.find(where, limit or 100, offset)]
            return {"count": index.count(where), "runs": rows, "reading": archive.reading}

        return JSONResponse(await ask(page_of_runs))

    async def compare(request: Request) -> Response:
        body = await _body(request)
        ids = body.get("runs")
        if not isinstance(ids, list) or not all(isinstance(run_id, str) for run_id in ids):
            return PlainTextResponse("runs: a list of ids\n", 400)
        first = list(dict.fromkeys(ids[:100]))

        def chosen(index: Index) -> list[tuple[Path, Any]]:
            some = [index.get(run_id) for run_id in first]
            return [(index.folder(run), (run.id, stamp(index.folder(run)))) for run in some if run]

        pairs = await ask(chosen)
        if len(pairs) != len(dict.fromkeys(ids)):
            return PlainTextResponse("no such run\n", 404)
        name = await pages.make([folder for folder, _ in pairs], tuple(key for _, key in pairs))
        return JSONResponse({"page": f"/page/{name}"})

    async def all_reviews(request: Request) -> Response:
        return JSONResponse(await in_thread(reviews.listed, archive.root, review_rows))

    async def a_review(request: Request) -> Response:
        review_id = (await _body(request)).get("review")
        folders = await in_thread(reviews.folders, archive.root)
        folder = folders.get(review_id) if isinstance(review_id, str) else None
        if not folder:
            return PlainTextResponse("no such review\n", 404)
        stamps = await in_thread(lambda: tuple((run.name, stamp(run)) for run in parts.all_runs(archive.root)))
        name = await pages.make([folder], (folder.name, stamps))  # each run of the archive may be in its plots
        return JSONResponse({"page": f"/page/{name}"})

    async def report(request: Request) -> Response:
        content = await in_thread(pages.content, request.path_params["name"])
        if content is None:
            return PlainTextResponse("no such page: ask for it again\n", 404)
        # its origin is opaque and has no opener to be isolated from; browsers warn about the header there
        headers = {"content-security-policy": policy(content), "cross-origin-opener-policy": "unsafe-none"}
        return Response(content, media_type="text/html; charset=utf-8", headers=headers)

    async def course(request: Request) -> Response:
        def chosen(index: Index) -> tuple[str, Path] | None:
            run = index.get(request.path_params["id"])
            return (run.id, index.folder(run)) if run else None

        run = await ask(chosen, 0)
        return JSONResponse(await in_thread(courses, *run)) if run else PlainTextResponse("no such run\n", 404)

    async def earlier(request: Request) -> Response:
        def previous(index: Index) -> tuple[Run, Path] | None:
            run = index.get(request.path_params["id"])
            before = next(iter(index.find(alike(run), 1)), None) if run else None
            return (before, index.folder(before)) if before else None

        before = await ask(previous, None)  # it is asked for once a run
        if not before:
            return JSONResponse({"run": None, "steps": []})
        run, folder = before
        return JSONResponse({"run": _row(run), "steps": await in_thread(courses, run.id, folder)})

    def courses(run_id: str, folder: Path) -> list[dict]:
        """Tail.course() of a run; of a damaged one nothing is drawn."""
        key = run_id, stamp(folder)
        try:
            if key not in shown:
                shown[key] = Tail(parts.of(folder)[-1]).course()
        except (SsdrigError, OSError):
            return []
        for old in list(shown)[:-MOST_COURSES]:
            shown.pop(old, None)
        return shown[key]

    async def all_drives(request: Request) -> Response:
        return JSONResponse(await ask(drives.listed))

    async def a_drive(request: Request) -> Response:
        same = await ask(lambda index: drives.runs_of(index, request.path_params["id"]))
        if not same:
            return PlainTextResponse("no such drive\n", 404)
        return JSONResponse(await in_thread(drives.one, same, archive.folder, watched))

    async def all_rigs(request: Request) -> Response:
        latest = await ask(lambda index: index.find(limit=rigs.MOST_RUNS))
        return JSONResponse(await in_thread(rigs.listed, latest, archive.folder))

    async def followed(request: Request) -> Tail | None:
        def folder(index: Index) -> Path | None:
            run = index.get(request.path_params["id"])
            return parts.of(index.folder(run))[-1] if run else None

        path = await ask(folder, 0) or await ask(folder)
        return await in_thread(hub.tail, path) if path else None

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
        return JSONResponse(await in_thread(ask_run, tail.folder, body))

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
            Route("/api/reviews", all_reviews),
            Route("/api/reviews/page", a_review, methods=["POST"]),
            Route("/api/course/{id}", course),
            Route("/api/earlier/{id}", earlier),
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

    return Guarded(app, hosts(port), token, page.policy), close


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


def alike(run: Run) -> tuple[str, list]:
    """The condition of an earlier complete run of the same plan and over-provisioning on the same drive."""
    same = ("model", "serial", "plan", "op_percent", "simulated", "scaled")
    sql = " AND ".join(f"{key} IS ?" for key in same)
    values = [getattr(run, key) for key in same]
    return f"{sql} AND state = 'complete' AND id != ? AND started_utc_ns < ?", [*values, run.id, run.started_utc_ns]


def _row(run: Run) -> dict:
    row = run._asdict()
    row["path"] = printable(run.path)
    return {**row, "started_utc_ms": run.started_utc_ns // 10**6 if run.started_utc_ns else None}


def _number(request: Request, key: str, most: int) -> int:
    text = request.query_params.get(key, "")
    return min(int(text), most) if text.isascii() and text.isdigit() and len(text) < 12 else 0


async def _body(request: Request) -> dict:
    try:
        body = json.loads(await asyncio.wait_for(request.body(), BODY_S))
    except (ValueError, RecursionError, TimeoutError, ClientDisconnect):
        return {}
    return body if isinstance(body, dict) else {}
