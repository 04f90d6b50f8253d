"""The bench in the browser as a person has it, in headless Chromium: what the page shows of a run that goes on, of the
archive and of a drive, that hostile names stay text, and that nothing of it is refused by its own policy."""

import json
import threading
import time

import browser
import pytest
import synthetic_run
from browser_serving import Serving
from growing_run import Growing

from ssdrig import cli
from ssdrig.runs import labels

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=\"document.title='taken'\">"


@pytest.fixture(scope="module")
def chromium():
    """As browser.chromium, but that 127.0.0.1 is found."""
    if not browser.find():
        pytest.skip("no Chromium is installed: the page was not run")
    flags = browser.FLAGS[:]
    browser.FLAGS[:] = [flag for flag in flags if not flag.startswith("--host-resolver-rules")]
    browser.FLAGS.append("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
    try:
        with browser.Browser(1400, 900) as one:
            yield one
    finally:
        browser.FLAGS[:] = flags


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    root = tmp_path_factory.mktemp("page") / "runs"
    how = {"zoom_s": 5, "logs": False, "smart_every_s": 3}
    for name, model in (("a", "SIMULATED SATA TLC"), ("b", HOSTILE)):
        synthetic_run.write(root, [900] * 5 + [300, 500] * 3, name=name, model=model, **how)
    labels.change(root / "b", title=HOSTILE, add=["review"])
    assert cli.main(["runs", str(root), "--figures", "--json"]) == 0
    now_ns = time.monotonic_ns() - 10 * 10**9
    now_ns -= now_ns % 10**8 + 5 * 10**7  # half a step beside the clock's: each must be told from the next
    growing = Growing(root / "a", root, "growing", now_ns - synthetic_run.T_RUN_NS)
    header = json.loads((root / "growing/run.json").read_text())
    header["started"]["utc_ns"] += 86400 * 10**9  # run a was the day before
    (root / "growing/run.json").write_text(json.dumps(header))
    growing.to(growing.began_ns + 6 * 10**9)
    with Serving(root) as one:
        one.growing = growing
        yield one
    growing.gone()


def open_page(b, url: str, ready: str) -> None:
    b.go(url)
    b.wait(f"window.ssdrig && ({ready})")


def fits(b) -> bool:
    return b.js("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def text(b, selector: str) -> str:
    return b.js(f"document.querySelector({selector!r}).innerText")


def test_the_bench_shows_the_run_that_goes_on(chromium, served):
    open_page(chromium, served.url, "ssdrig.Live.run() && ssdrig.Live.run().n > 4")
    assert "#t=" not in chromium.js("location.href") and chromium.js("document.cookie") == ""
    stop = threading.Event()

    def grow():
        t_ns = served.growing.began_ns + 6 * 10**9
        while not stop.wait(0.02) and t_ns < served.growing.began_ns + 13 * 10**9:  # the load goes on then
            t_ns += 40_000_000
            served.growing.to(t_ns)

    thread = threading.Thread(target=grow)
    thread.start()
    try:
        chromium.wait("ssdrig.Live.run().preview.size && ssdrig.Live.run().tenths.size > 60")
        chromium.wait("ssdrig.Live.run().smart.some((row) => row.wa != null)")
        chromium.wait("ssdrig.Live.run().settled > 7 && ssdrig.Live.run().running === 'load'")
    finally:
        stop.set()
        thread.join()
    run = "ssdrig.Live.run()"
    assert chromium.js(f"[...{run}.preview.values()].every((row) => row[0] > {run}.settled)")
    assert chromium.js(
        f"[...{run}.tenths.values()].slice(-20, -2).every((row) => row[1] <= row[2] && row[2] <= row[3])"
    )
    assert chromium.js(f"Math.max(...{run}.iops.filter(Number.isFinite))") >= 900
    of_each = f"(r => r.energy.map((uJ, i) => uJ * r.iops[i] / r.power_mean[i]).filter(Number.isFinite))({run})"
    assert chromium.js(f"{of_each}.length > 1 && {of_each}.every((v) => Math.abs(v / 1e6 - 1) < 1e-6)")
    assert "SIMULATED SATA TLC" in text(chromium, "#bench-h") and "load" in text(chromium, "#steps .now")
    assert "purge" in text(chromium, "#steps .done") or "check" in text(chromium, "#steps .done")
    tiles = text(chromium, "#tiles")
    assert "40 °C" in tiles or "41 °C" in tiles or "42 °C" in tiles
    assert "W" in tiles and "±" in tiles
    chromium.wait("document.querySelectorAll('.panel canvas').length === 5")
    for name in ("p-live", "p-iops", "p-heat", "p-power", "p-wa"):  # something is drawn in it
        drawn = f"""(() => {{ const c = document.querySelector('#{name} canvas'), d = c.getContext('2d')
            .getImageData(0, 0, c.width, c.height).data; let n = 0;
            for (let i = 0; i < d.length; i += 4) if (d[i + 3] && Math.abs(d[i] - d[i + 1]) > 40) n++;
                return n; }})()"""
        assert chromium.js(drawn) > 20, name
    chromium.wait("ssdrig.Live.run().earlier.length === 1")
    assert "Grey: the run of" in text(chromium, "#earlier-words")
    assert text(chromium, "#ends").startswith("Whole run ends ")
    assert "read only" in text(chromium, "#server") and chromium.js("document.getElementById('acts').hidden")
    chromium.js("ssdrig.Live.mark([2, 4])")
    assert "A–B: 2.0 s" in text(chromium, "#ab")
    chromium.js("document.querySelector('#spans button:nth-child(4)').click()")
    assert chromium.complaints() == [] and fits(chromium)


def test_runs_are_searched_chosen_and_compared(chromium, served):
    open_page(chromium, served.url, "document.getElementById('n-runs').textContent")
    chromium.js("location.hash = '#runs'")
    chromium.wait("document.querySelectorAll('#rows tr').length === 3")
    chromium.js("document.getElementById('q').value = 'tag:review'; document.querySelector('#search button').click()")
    chromium.wait("document.querySelectorAll('#rows tr').length === 1")
    assert (
        text(chromium, "#rows").count(HOSTILE) == 2
        and chromium.js("document.querySelectorAll('#rows img').length") == 0
    )
    assert chromium.js("document.title") != "taken"
    chromium.js(
        "document.getElementById('q').value = 'state:complete'; document.querySelector('#search button').click()"
    )
    chromium.wait("document.querySelectorAll('#rows tr').length === 2")
    chromium.js("document.querySelectorAll('#rows input').forEach((box) => box.click())")
    assert text(chromium, "#compare") == "Compare 2"
    assert "400" in text(chromium, "#rows")
    made = (
        "fetch('/api/compare', {method: 'POST', headers: ssdrig.Client.headers({'content-type': 'application/json'}),"
    )
    page = chromium.js(
        made
        + "body: JSON.stringify({runs: (await_ids())})}).then((a) => a.json()).then((a) => a.page)".replace(
            "(await_ids())", str([run["id"] for run in served.get("/api/runs?q=state:complete")["runs"]])
        )
    )
    assert chromium.complaints() == [] and fits(chromium)
    chromium.js("document.getElementById('q').value = 'drve:x'; document.querySelector('#search button').click()")
    chromium.wait("!document.getElementById('trouble').hidden")
    chromium.js("ssdrig.Lists.look()")  # as every few seconds: its answer says nothing of the search
    assert "drive" in text(chromium, "#trouble")
    chromium.js("document.getElementById('q').value = ''; document.querySelector('#search button').click()")
    chromium.wait("document.getElementById('trouble').hidden")
    chromium.js("ssdrig.Client.trouble('/api/live/1/act', 'The run refuses: no'); location.hash = '#drives'")
    chromium.wait("document.getElementById('trouble').hidden")
    chromium.events.clear()
    chromium.send("Page.navigate", {"url": f"http://127.0.0.1:{served.port}{page}"})
    chromium.wait("document.body && document.body.dataset.ready")
    assert chromium.complaints() == [] and chromium.js("document.body.dataset.errors") == ""
    assert chromium.js("self.origin") == "null"  # an origin of its own: it reads nothing of the bench


def test_of_two_searches_the_later_one_is_shown_whichever_answer_comes_first(chromium, served):
    open_page(chromium, served.url, "document.getElementById('n-runs').textContent")
    chromium.js("location.hash = '#runs'")
    chromium.wait("document.querySelectorAll('#rows tr').length === 3")
    chromium.js("""(() => { const real = fetch;
        window.gate = new Promise((open) => window.open_gate = open);
        window.fetch = async (path, how) => { const answer = await real(path, how);
            if (!path.includes("review") && !path.includes("drve")) return answer;
            await gate; window.came = (window.came ?? 0) + 1; return answer; }; })()""")
    for words in ("tag:review", "drve:x", "state:complete"):
        chromium.js(f"document.getElementById('q').value = '{words}'; document.querySelector('#search button').click()")
    chromium.wait("document.querySelectorAll('#rows tr').length === 2")
    chromium.js("open_gate()")
    chromium.wait("window.came === 2")
    chromium.js("new Promise((done) => setTimeout(done, 100))")
    assert chromium.js("document.querySelectorAll('#rows tr').length") == 2
    assert chromium.js("document.getElementById('trouble').hidden")  # nor what the wrong one was refused for
    chromium.js("document.getElementById('q').value = ''; document.querySelector('#search button').click()")
    chromium.wait("document.querySelectorAll('#rows tr').length === 3")


def test_a_drive_has_its_wear_and_its_runs(chromium, served):
    open_page(chromium, served.url, "document.getElementById('n-runs').textContent")
    chromium.js("location.hash = '#drives'")
    chromium.wait("document.querySelectorAll('#drive-rows tr').length === 2")
    chromium.wait("![...document.querySelectorAll('#drive-rows td')].some((cell) => cell.textContent === '…')")
    assert chromium.js("document.querySelectorAll('#drive-rows .meter').length") >= 1  # its wear, before any click
    chromium.js(
        "[...document.querySelectorAll('#drive-rows button')].find((b) => b.textContent.includes('TLC')).click()"
    )
    chromium.wait("!document.getElementById('drive').hidden")
    text_ = text(chromium, "#drive")
    spare = "[...document.querySelectorAll('.meter')].find((m) => m.innerText.includes('Spare left'))"
    assert (
        chromium.js(f"{spare}.querySelectorAll('rect')[1].getAttribute('fill')") == "var(--green)"
    )  # all of it is left
    assert "Percentage used" in text_ and "Health ok" in text_ and "host written" in text_
    assert chromium.complaints() == [] and fits(chromium)
    for width, height in ((390, 844), (1400, 900)):  # its life is on the first screen
        how = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        chromium.send("Emulation.setDeviceMetricsOverride", how)
        used = "document.querySelector('#drive .meter').getBoundingClientRect()"
        assert chromium.js(f"{used}.height > 0 && {used}.bottom + scrollY <= innerHeight")
    chromium.send("Emulation.clearDeviceMetricsOverride")


def test_the_first_page_lists_the_latest_runs_while_none_goes_on(chromium, tmp_path):
    synthetic_run.write(tmp_path / "runs", [9000] * 12, name="a", logs=False, zoom_s=5)
    with Serving(tmp_path / "runs") as served:
        open_page(chromium, served.url, "document.querySelectorAll('#latest-rows button').length === 1")
        assert chromium.js("document.getElementById('beside').hidden && !document.getElementById('latest').hidden")
        chromium.js("window.asked = []; window.open = () => { asked.push(1); return null; }")
        chromium.js("document.querySelector('#latest-rows button').click()")
        chromium.js("document.querySelector('#latest-rows td.text:nth-child(2)').click()")
        assert chromium.js("asked.length") == 2  # its page, in another tab: its link, and its row
        chromium.wait("document.querySelector('#latest-rows .spark polyline')")
        points = chromium.js("document.querySelector('#latest-rows polyline').getAttribute('points')").split()
        assert len(points) == 12  # the seconds of the load
        chromium.wait("!document.getElementById('lives').hidden")
        assert "SIMULATED SATA TLC" in text(chromium, "#lives-rows")
        assert text(chromium, "#command").endswith("ssdrig run consistency --virtual sata-tlc")
        assert chromium.complaints() == [] and fits(chromium)


@pytest.mark.parametrize("width", [390, 1024])
def test_it_fits_a_narrow_window(chromium, served, width):
    how = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    chromium.send("Emulation.setDeviceMetricsOverride", how)
    try:
        open_page(chromium, served.url, "ssdrig.Live.run() && ssdrig.Live.run().n > 4")
        chromium.wait("document.querySelectorAll('.panel canvas').length === 5")
        assert fits(chromium)
        for page in ("runs", "drives"):
            chromium.js(f"location.hash = '#{page}'")
            chromium.wait(f"!document.getElementById('{page}').hidden")
            assert fits(chromium), page
        assert chromium.complaints() == []
    finally:
        chromium.send("Emulation.clearDeviceMetricsOverride")


def test_without_the_key_it_says_so_and_shows_nothing(chromium, served):
    chromium.js("sessionStorage.clear()")
    open_page(chromium, f"http://127.0.0.1:{served.port}/", "!document.getElementById('trouble').hidden")
    assert "ssdrig serve" in text(chromium, "#trouble") and not chromium.js("Boolean(ssdrig.Live.run())")
    open_page(chromium, f"http://127.0.0.1:{served.port}/#t=" + "x" * 43, "!document.getElementById('trouble').hidden")
    assert "token" in text(chromium, "#trouble")
