"""Hostile words from drives, people and files of runs, in a real browser: no script of theirs runs on any page, nothing
is refused by a page's policy because nothing tries, and what is exported is well-formed."""

import contextlib
import json
import time
import xml.etree.ElementTree as ElementTree

import pytest
import synthetic_plan
import synthetic_run
import test_review_page
from browser import chromium as of_files  # noqa: F401  a fixture
from browser_serving import Serving
from growing_run import Growing
from test_browser_page import chromium  # noqa: F401  a fixture
from test_report import READY, run_command
from test_report_seen import saved

from ssdrig.runs import journal
from ssdrig.runs.integrity import LABELS, NOTES

pytestmark = pytest.mark.slow

WORDS = (
    "<script>taken(1)</script>",
    "\"><img src=x onerror='taken(2)'>",
    "' onmouseover='taken(3)' autofocus onfocus='taken(4)' x='",
    "</script></title></style></noscript><svg onload=taken(5)>",
    "javascript:taken(6)//",
    "\u2028taken(7)\u2029",
    "\u202egpj.exe\u200f\u2066",
    "]]>--><!--<![CDATA[",
    "</text><script>taken(8)</script>&#60;script&#62;taken(9)&nbsp;\xa0",
    "\x01\x0b\x1b]0;x\x07\x7f\ufffe\ud800",
    "${taken(10)}`+taken(11)+`{{taken(12)}}",
    "url(javascript:taken(13));}*{background:url(//evil.example/x)}",
)
ALL = " ".join(WORDS)
WATCH = "window.took = []; window.taken = (n) => { window.took.push(n); };"
# attributes that would run, links that would, and addresses outside of the page
LIVE = r"""[...document.querySelectorAll('*')].flatMap((el) => [...el.attributes].map((a) =>
  [el.tagName, a.name, a.value])).filter(([tag, name, value]) => /^on/i.test(name)
    || (/^(href|src|action|formaction|xlink:href|data|srcdoc)$/i.test(name)
    && !/^(#|data:,|data:image\/png;base64,|$)/.test(value)))"""


def surrogates_kept(text: str) -> str:
    """As JSON has it, which is all ASCII."""
    return json.dumps(text)


def named_badly(run) -> None:
    """All that run.json, events, notes and labels say in words."""
    header = json.loads((run / "run.json").read_text())
    for part, keys in {
        "drive": ("model", "serial", "firmware", "interface"),
        "host": ("fio", "kernel", "name"),
    }.items():
        header[part] |= dict.fromkeys(keys, ALL)
    header |= {"run": ALL, "ssdrig": ALL}
    (run / "run.json").write_text(surrogates_kept(header))
    events = list(journal.events(run))
    for event in events:
        for key in ("line", "crc"):
            event.pop(key, None)
    load = next(e["t_ns"] for e in events if e["kind"] == "step.start")
    hello = dict.fromkeys(("board", "serial", "build", "firmware"), ALL) | {"rails": [{"name": ALL, "chip": ALL}]}
    documents = [{"kind": "rig.hello", "hello": hello}, {"kind": "rig.lost", "why": ALL}]
    notes = [{"t_ns": events[0]["t_ns"] + 9 + i, **event} for i, event in enumerate(documents)]
    notes += [{"t_ns": load + 2 * 10**9 + i, "kind": "note", "text": word} for i, word in enumerate((*WORDS, ALL))]
    synthetic_run.seal(run, sorted([*events, *notes], key=lambda e: (e["kind"] == "run.end", e["t_ns"])))
    (run / NOTES).write_text(surrogates_kept({"text": ALL, "at_s": 3.0, "utc_ns": 5}) + "\n")
    (run / LABELS).write_text(surrogates_kept({"title": ALL, "tags": ["review", ALL]}))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("hostile") / "runs"
    how = {"zoom_s": 5, "smart_every_s": 3, "more_rails": [(ALL[:200], ((-100.0, 1.0),), 1_000_000, None)]}
    for name, op in (("a", None), ("b", 25)):
        named_badly(synthetic_run.write(root, [900] * 5 + [300, 500] * 3, name=name, op_percent=op, **how))
    return root


def look(b, path, ready) -> list:
    """Open a page and say what of it is alive that should not be."""
    b.send("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    b.open(path, ready=ready)
    return scripts_run(b)


def scripts_run(b) -> list:
    """Opens all that can be opened, goes over everything, clicks some."""
    b.js("for (const el of document.querySelectorAll('details')) el.open = true; 0")
    b.js(
        "for (const el of document.querySelectorAll('body *')) for (const kind of ['mouseover', 'focus'])"
        " el.dispatchEvent(new Event(kind, {bubbles: true}));"
        " [...document.querySelectorAll('button.row')].slice(0, 20).forEach((el) => el.click())"
    )
    return b.js("window.took") + b.js(LIVE) + b.complaints()


def test_the_watch_sees_a_script_that_runs(of_files, tmp_path):
    text = f"<!doctype html><meta charset=utf-8><p title='{WORDS[2]}'>{''.join((*WORDS[:2], WORDS[3]))}"
    (tmp_path / "open.html").write_text(text, "utf-8")
    seen = look(of_files, tmp_path / "open.html", "document.readyState === 'complete'")
    assert {1, 2, 3, 5} <= {entry for entry in seen if isinstance(entry, int)} and [
        "IMG",
        "onerror",
        "taken(2)",
    ] in seen


def test_the_page_of_runs(of_files, runs, tmp_path):
    run_command(runs / "a", runs / "b", "--out", tmp_path / "r.html")
    assert look(of_files, tmp_path / "r.html", READY) == []
    assert of_files.js("document.body?.dataset.errors") == "" and "gpj.exe" in of_files.js("document.body.innerText")
    of_files.js("document.querySelector('.filter input').click(); document.querySelector('.filter input').click()")
    many = of_files.js("document.querySelectorAll('main figure .tools').length")
    for index in (0, 1, many - 2, many - 1):  # drawn by uPlot, and SVG in the page
        ElementTree.fromstring(saved(of_files, index, "SVG")[1])
    saved(of_files, 0, "PNG")
    assert scripts_run(of_files) == []


def test_the_page_of_a_plan(of_files, tmp_path):
    shows = '[[show]]\nview = "bars"\nof = "clean"\nvalue = "iops"\ntitle = ' + json.dumps(" ".join(WORDS[:5]))
    made = synthetic_plan.steps(tmp_path, shows + "\n")
    named_badly(made)
    run_command(made, "--out", tmp_path / "p.html", "--quiet")
    assert look(of_files, tmp_path / "p.html", "document.readyState === 'complete'") == []


def test_the_page_of_a_review(of_files, tmp_path):
    folder = test_review_page.review(tmp_path, model=ALL)
    for file in folder.iterdir():
        if file.is_dir():
            named_badly(file)
    run_command(folder, "--out", tmp_path / "v.html", "--quiet")
    assert look(of_files, tmp_path / "v.html", "document.body?.dataset.errors === ''") == []


def test_the_bench_in_the_browser(chromium, runs):
    chromium.send("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    growing = Growing(runs / "a", runs, "growing", time.monotonic_ns() - 10 * 10**9 - synthetic_run.T_RUN_NS)
    growing.to(growing.began_ns + 8 * 10**9)
    with contextlib.ExitStack() as stack:
        stack.callback(growing.gone)
        served = stack.enter_context(Serving(runs))
        chromium.events.clear()
        chromium.send("Page.navigate", {"url": served.url})
        chromium.wait("window.ssdrig && document.getElementById('n-runs').textContent")
        chromium.wait("ssdrig.Live.run() && ssdrig.Live.run().lines.length > 8")
        assert "taken(2)" in chromium.js("document.querySelector('main').innerText")
        for page, rows in (("runs", "#rows tr"), ("drives", "#drive-rows tr"), ("rigs", ".rig")):
            chromium.js(f"location.hash = '#{page}'")
            chromium.wait(f"document.querySelectorAll('{rows}').length")
            assert "taken(2)" in chromium.js("document.querySelector('main').innerText")
        chromium.js("document.querySelector('#drive-rows button').click()")
        chromium.wait("!document.getElementById('drive').hidden")
        assert chromium.js("window.took") == [] and chromium.js(LIVE) == [] and chromium.complaints() == []
        ids = [run["id"] for run in served.get("/api/runs?q=state:complete")["runs"]]
        page = json.loads(served.ask("POST", "/api/compare", {"runs": ids})[2])["page"]
        chromium.events.clear()
        chromium.send("Page.navigate", {"url": f"http://127.0.0.1:{served.port}{page}"})
        chromium.wait("document.body && document.body.dataset.ready")
        assert scripts_run(chromium) == []
