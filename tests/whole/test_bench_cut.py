"""A cut from the web on the whole virtual bench: a real run, a real server, and a real Chromium in which the button is
held, by pointer and by key."""

import json
import os
import subprocess
import sys
import time

import browser
import pytest
from browser_serving import Serving
from conftest import HOST
from test_browser_page import chromium, open_page, text  # noqa: F401  fixture

from ssdrig.drive.smart import counters
from ssdrig.reading import table
from ssdrig.runs import journal

pytestmark = [pytest.mark.slow, pytest.mark.keeps_time]
WORDS = ["run", "consistency", "--virtual", "sata-tlc", "--capacity", "256MiB", "--duration", "300", "--quiet"]
MOST_S = 120


@pytest.fixture(scope="module")
def going(tmp_path_factory):
    """(process, folder) of a run that allows it, in its load."""
    if not browser.find():
        pytest.skip("no Chromium is installed: the page was not run")
    root = tmp_path_factory.mktemp("cut") / "runs"
    words = [sys.executable, "-m", "ssdrig", *WORDS, "--allow-cut", "--runs", str(root)]
    process = subprocess.Popen(words, env=os.environ | {"PYTHONPATH": HOST}, stderr=subprocess.PIPE, text=True)
    try:
        yield process, until(lambda: next(iter(root.glob("2*")), None) if root.exists() else None)
    finally:
        process.terminate()
        process.communicate()


def until(condition):
    deadline = time.monotonic() + MOST_S
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return value


def begun(run, kind: str, **fields) -> list[dict]:
    return [e for e in journal.events(run) if e["kind"] == kind and all(e.get(k) == v for k, v in fields.items())]


def press(b, how: str, down: bool) -> None:
    """The button, by a real pointer or key."""
    if how == "key":
        b.js("document.getElementById('cut').focus()")
        b.send("Input.dispatchKeyEvent", {"type": "keyDown" if down else "keyUp", "key": " ", "code": "Space"})
        return
    x, y = b.js("(({x, y, width}) => [x + width / 2, y + 5])(document.getElementById('cut').getBoundingClientRect())")
    kind = "mousePressed" if down else "mouseReleased"
    b.send("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1})


SAID = "document.getElementById('cut-said').textContent"
# The run says how long it is held: so long that who lets go on a busy machine comes in time. Who has let go has ended
# the clock of the hold (`ticking`).
LONG_HOLD = """window.real = [fetch, setInterval, clearInterval].map((each) => each.bind(window));
window.ticking = new Set();
window.fetch = async (path, how) => {
    const answer = await real[0](path, how);
    if (!String(path).endsWith('/act')) return answer;
    const said = await answer.json(), longer = 'hold_s' in said ? {...said, hold_s: 600} : said;
    return new Response(JSON.stringify(longer), {status: answer.status});
};
window.setInterval = (what, ms) => { const n = real[1](what, ms); ticking.add(n); return n; };
window.clearInterval = (n) => { ticking.delete(n); real[2](n); }; 0"""
AS_IT_WAS = "[window.fetch, window.setInterval, window.clearInterval] = real; 0"


def test_it_is_held_and_ends_the_run(chromium, going):
    process, run = going
    with Serving(run.parent, "--control") as served:
        (one,) = until(lambda: served.get("/api/hello")["live"])
        path = f"/api/live/{one['id']}/act"
        for head in ({"Authorization": None}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            assert served.ask("POST", path, {"do": "arm"}, head)[0] in (401, 403)
        open_page(chromium, served.url, "ssdrig.Live.run() && !document.getElementById('cut').hidden")
        assert text(chromium, "#cut") == "Cut the power: hold"
        until(lambda: begun(run, "step.start", step="load"))
        chromium.wait(
            "ssdrig.Live.run().iops.filter(Number.isFinite).length > 6 && ssdrig.Live.run().running === 'load'"
        )
        chromium.js(LONG_HOLD)
        for how in ("pointer", "key"):
            press(chromium, how, True)
            chromium.wait(f"{SAID}.startsWith('Armed')")
            assert chromium.js("ticking.size") == 1
            press(chromium, how, False)
            chromium.wait(f"{SAID}.startsWith('Let go')")
            assert chromium.js("ticking.size") == 0
        press(chromium, "key", True)
        chromium.wait(f"{SAID}.startsWith('Armed')")
        chromium.js("document.getElementById('note').focus()")  # it loses the focus: that is letting go
        chromium.wait(f"{SAID}.startsWith('Let go')")
        assert chromium.js("ticking.size") == 0 and not begun(run, "cut.asked")
        chromium.js(AS_IT_WAS)
        press(chromium, "pointer", True)
        chromium.wait(f"{SAID}.startsWith('The run cuts')")
        chromium.wait("ssdrig.Live.run().ended", MOST_S)
        assert chromium.js("document.getElementById('cut').hidden")
        energy = json.loads(chromium.js("JSON.stringify(ssdrig.Live.run().energy.filter(Number.isFinite))"))
        assert min(energy[-3:]) > 60  # none of a second without supply
        assert any("power cut from the web" in line for line in text(chromium, "#events").splitlines())
    assert process.wait(MOST_S) == 17
    (asked,), (fired,), (back,) = (begun(run, kind) for kind in ("cut.asked", "cut.fired", "cut.on"))
    assert asked["uid"] == os.geteuid() and asked["step"] == "load" and 1.9 < back["off_s"] < 3 and not fired["why"]
    assert begun(run, "drive.ready") and not begun(run, "note")
    end = begun(run, "run.end")[0]
    assert end["state"] == "interrupted" and end["why"].startswith(
        f"cut from the web in load: {back['off_s']:.2f} s without power"
    )
    data, figures, _ = table.in_full(run)
    whole = figures["windows"]["all"]
    assert (
        whole["t1_s"] <= data.axis_s(data.before_cut_ns())
        and whole["zero_seconds"] == 0
        and whole["power_mean_W"] > 0.5
    )
    last = max((run / "smart").iterdir())  # behind the cut
    assert counters.snapshot(json.loads(last.read_bytes()))["unsafe_shutdowns"] == 1
