import argparse
import hashlib
import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout

import browser
import json_documents
import pytest
import synthetic_run
from browser import chromium  # noqa: F401  a fixture

from ssdrig import report
from ssdrig.base.errors import JournalError, UsageError
from ssdrig.reading.course import KEYS
from ssdrig.report import loads, page
from ssdrig.views.terms import TERMS, with_error

PLATEAU = [20000] * 12
OWN = PLATEAU + [5000, 6000] * 14 + [0, 0, 5000, 6000]
MORE = PLATEAU + [11000, 11200] * 16


def run_command(*words):
    parser = argparse.ArgumentParser()
    report.add_arguments(parser)
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = report.command(parser.parse_args([str(w) for w in words]))
    for line in out.getvalue().splitlines():
        json_documents.figures(json.loads(line))
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Four runs: two drives, each with its own OP and with 25 %; the last one died."""
    base = tmp_path_factory.mktemp("runs")
    made = []
    for i, (model, op, iops, watts, state) in enumerate(
        [
            ("SIMULATED one", None, OWN, 2.5, "complete"),
            ("SIMULATED one", 25, MORE, 2.0, "complete"),
            ("SIMULATED two </script><img src=x onerror=boom()>", None, MORE, 4.0, "failed"),
            ("SIMULATED two </script><img src=x onerror=boom()>", 25, OWN, 3.0, None),
        ]
    ):
        made.append(
            synthetic_run.write(
                base,
                iops,
                watts=((-100, 1.0), (0, watts)),
                zoom_s=14,
                fill_s=60,
                model=model,
                op_percent=op,
                state=state,
                name=f"run-{i}",
                edges=False,
            )
        )
    return made


@pytest.fixture(scope="module")
def made(folders, tmp_path_factory):
    """(page of all four, its figures)"""
    out = tmp_path_factory.mktemp("page") / "all.html"
    code, stdout, _ = run_command(*folders, "--out", out, "--json", "--review", 2)
    assert code == 0
    assert [json.loads(line)["run"] for line in stdout.splitlines()] == [folder.name for folder in folders]
    return out, synthetic_run.shown(folders)


# ---- the command


def test_one_run_writes_page_and_figures_beside_the_run(folders):
    code, out, err = run_command(folders[0])
    assert code == 0 and out == ""
    assert "SIMULATED" in err and "Mean IOPS" in err and "end of the load" in err and "report.html" in err
    figures = json.loads((folders[0] / "figures.json").read_text())
    (load,) = [row for row in figures["rows"] if row["path"] == "load"]
    assert load["windows"]["steady"]["iops_mean"] == pytest.approx((13 * 5000 + 13 * 6000 + 11000) / 30)
    assert (folders[0] / "report.html").read_text().startswith("<!doctype html>")
    assert not [p.name for p in folders[0].iterdir() if p.name.startswith(".")]


def test_a_folder_that_may_only_be_read_gives_its_figures(folders, tmp_path, monkeypatch, capsys):
    """Its figures are on stdout before anything is written; with --out the page lies elsewhere."""
    real = report.write_atomically

    def read_only(target, data):
        if folders[0] in target.parents:
            raise PermissionError(13, "Permission denied")
        real(target, data)

    monkeypatch.setattr(report, "write_atomically", read_only)
    code, out, err = run_command(folders[0], "--json", "--out", tmp_path / "r.html")
    assert code == 0 and json.loads(out)["rows"] and (tmp_path / "r.html").stat().st_size > 1000
    assert "figures.json is not written, Permission denied" in err
    parser = argparse.ArgumentParser()
    report.add_arguments(parser)
    with pytest.raises(JournalError, match="report.html; seen Permission denied; do: name another file with --out"):
        report.command(parser.parse_args([str(folders[0]), "--json"]))
    assert json.loads(capsys.readouterr().out)["rows"]


@pytest.mark.slow
def test_json_has_one_object_a_run_in_the_order_given(made):
    assert [f["run"] for f in made[1]] == ["run-0", "run-1", "run-2", "run-3"]
    assert set(made[1][0]) == set(KEYS)
    assert made[1][2]["state"] == "failed" and made[1][3]["state"] == "died"


@pytest.mark.parametrize(("review", "index"), [(None, 0), ("2", 1), ("run-3", 3), ("RUN-2", 2)])
def test_reviewed_run(made, review, index):
    assert report.chosen(review, made[1]) == index


@pytest.mark.parametrize("review", ["0", "5", "run-", "nothing", "SIMULATED one"])
def test_reviewed_run_must_be_one_that_is_there(made, review):
    with pytest.raises(UsageError, match="choose one of 1: run-0"):
        report.chosen(review, made[1])


def test_no_run_no_page(tmp_path):
    with pytest.raises(JournalError):
        run_command(tmp_path / "nothing", "--out", tmp_path / "x.html")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_leaves_nothing(folders, tmp_path):
    with pytest.raises(JournalError, match="to write"):
        run_command(folders[0], "--out", tmp_path / "no" / "such" / "folder.html")
    assert list(tmp_path.iterdir()) == []


# ---- the page as text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["thesis.txt", "index.html", "run.json", "device"])
def test_only_an_earlier_page_is_overwritten(folders, tmp_path, name):
    place = folders[0] / name if name == "run.json" else tmp_path / name
    if name == "device":
        place.symlink_to("/dev/null")
    elif name != "run.json":
        place.write_text("<!doctype html>\n<html><title>mine</title>")

    def there():  # but not when it was last read, which reading it changes
        status = place.lstat()
        return status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, place.read_bytes()

    before = there()
    with pytest.raises(UsageError, match="an earlier page"):
        run_command(folders[0], "--out", place)
    assert there() == before
    page_there = tmp_path / "page.html"
    page_there.touch()
    for _ in range(2):
        assert run_command(folders[0], "--out", page_there)[0] == 0


def test_page_names_no_other_place(made):
    html = made[0].read_text()
    for url in re.findall(r"https?://[^\s\"'<)*]+", html):
        # in the licence line of the vendored file; the name of SVG, which nobody fetches
        assert url in ("https://github.com/leeoniya/uPlot", "http://www.w3.org/2000/svg"), url
    assert "default-src 'none'" in html and "unsafe-eval" not in html and "script-src 'unsafe-inline'" not in html
    assert not re.search(r"<(link|iframe|object|img)\b", html.replace("&lt;", ""))


def test_script_hashes_of_the_policy_are_those_of_the_scripts(made):
    html = made[0].read_text()
    allowed = set(re.findall(r"'sha256-([^']+)'", html))
    scripts = re.findall(r"<script>(.*?)</script>", html, re.S)
    import base64

    assert {base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts} == allowed
    assert len(allowed) == len(loads.SCRIPTS)


def test_a_drives_name_cannot_become_markup(made):
    html = made[0].read_text()
    assert "<img" not in html and html.count("</script>") == 1 + len(loads.SCRIPTS)
    assert "&lt;/script&gt;&lt;img src=x onerror=boom()&gt;" in html


def test_words_of_the_page_without_javascript(made):
    html, figures = made[0].read_text(), made[1]
    assert html.count("SIMULATED</strong>") == 1
    for term in TERMS:
        assert f">{term.label}" in html
        error = (figures[0].get("errors") or {}).get(term.key)
        assert with_error(figures[0][term.key], error, term.places) in html
    assert "failed" in html and "synthetic failure" in html
    assert "died" in html and "ended without closing it" in html
    assert "<noscript>" in html
    assert '<p data-view="0" data-review="1"><b>' in html and html.count('<p data-view="0" data-review=') == 4


def test_vendored_files_are_the_ones_named():
    folder = page.HERE / "vendor"
    named = re.findall(r"`([\w.]+)` \| `([0-9a-f]{64})`", (folder / "VENDOR.md").read_text())
    assert {name for name, _ in named} == {"uPlot.iife.min.js", "uPlot.min.css"}
    for name, digest in named:
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


# ---- the page in a browser


READY = "document.body && document.body.dataset.ready"
# how many pixels of a panel's (transparent) canvas are of a run's colour, a fifth opaque or more
INK = """(name, want) => {
  const c = document.querySelector(`[data-panel="${name}"] canvas`);
  const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
  let n = 0;
  for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 50 && want.every((v, k) => Math.abs(d[i + k] - v) < 12)) n++;
  return n; }"""
REVIEW, BLUE = [213, 94, 0], [0, 114, 178]


def ink(b, panel, colour):
    return b.js(f"({INK})({json.dumps(panel)}, {colour})")


@pytest.mark.slow
def test_page_draws_all_panels_without_a_complaint_or_a_request(chromium, made):
    chromium.open(made[0], ready=READY)
    assert chromium.js("document.body.dataset.ready") == "9"
    left_out = (
        "[...document.querySelectorAll('*')].filter((e) => getComputedStyle(e).contentVisibility === 'auto').length"
    )
    assert chromium.js(left_out) == 0, "after the first paint everything is laid out, seen or not"
    assert chromium.js("document.body.dataset.errors") == ""
    assert chromium.complaints() == []
    assert [u for u in chromium.requests() if not u.startswith(("file:", "about:", "data:"))] == []
    panels = chromium.js("[...document.querySelectorAll('[data-panel]')].map(e => e.dataset.panel)")
    assert len(panels) == 9
    for panel in panels:
        assert ink(chromium, panel, REVIEW) > 60, panel
        label = chromium.js(f"document.querySelector('[data-panel=\"{panel}\"]').getAttribute('aria-label')")
        assert "SIMULATED one, 25 % OP" in label, panel


@pytest.mark.slow
def test_drive_and_op_are_chosen_independently(chromium, made):
    chromium.open(made[0], ready=READY)
    everything = ink(chromium, "power", BLUE)
    assert everything > 60  # run 0 is blue
    visible = (
        "[...document.querySelectorAll('.figures th[data-run]')].filter(e => !e.classList.contains('hidden')).map(e =>"
        " +e.dataset.run)"
    )
    click = "document.querySelector('input[name={}][value=\"{}\"]').click()"
    assert chromium.js(visible) == [0, 1, 2, 3]
    chromium.js(click.format("op", 0))  # the drives' own OP off
    assert chromium.js(visible) == [1, 3]
    chromium.wait(f"(({INK})('power', {BLUE})) < {everything // 10}")
    chromium.js(click.format("drive", 1))
    assert chromium.js(visible) == [1]
    assert (
        chromium.js("location.hash")
        == "#hide=SIMULATED+two+%3C%2Fscript%3E%3Cimg+src%3Dx+onerror%3Dboom%28%29%3E&hide-op=default+OP"
    )
    assert ink(chromium, "zoom-linear", REVIEW) > 60
    chromium.js(click.format("op", 0) + ";" + click.format("op", 1))
    assert chromium.js(visible) == [0]


@pytest.mark.slow
def test_the_state_is_in_the_address(chromium, made):
    chromium.open(
        made[0], "#hide=SIMULATED+one&review=run-3&ref=run-2&trend=0&window=all&sort=wa&t=5-20&at=7", ready=READY
    )
    assert chromium.js("ssdrig.state()") == {
        "drives": [1],
        "ops": [0, 1],
        "review": 3,
        "ref": 2,
        "trend": False,
        "zoom": [5, 20],
        "view": 1,
        "sort": "wa",
        "fine": None,
        "marks": {"a": None, "b": None},
    }
    assert chromium.js("document.querySelector('.review').closest('tr').dataset.run") == "3"
    assert chromium.js("document.querySelector('#readout thead th').textContent") == "t = 7 s"
    assert chromium.js("ssdrig.address()") == chromium.js("location.hash")  # what the link is made of leads here again
    assert chromium.js("document.querySelector('select[name=review]').value") == "3"
    chromium.open(
        made[0], "#hide=9&hide-op=x&review=77&ref=boom&t=9-3&window=77&sort=x&at=-3", ready=READY
    )  # nonsense is left out
    assert chromium.js("ssdrig.state()") == {
        "drives": [0, 1],
        "ops": [0, 1],
        "review": 1,
        "ref": None,
        "trend": True,
        "zoom": None,
        "view": 0,
        "sort": None,
        "fine": None,
        "marks": {"a": None, "b": None},
    }
    assert chromium.complaints() == []


def test_the_reviewed_run_is_drawn_on_top(chromium, made):
    chromium.open(made[0], ready=READY)
    order = "document.querySelector('select[name=review]')"
    before = ink(chromium, "zoom-linear", REVIEW)
    chromium.js(f"{order}.value = '0'; {order}.dispatchEvent(new Event('change', {{bubbles: true}}))")
    chromium.wait("ssdrig.state().review === 0 && document.body.dataset.ready === '9'")
    assert before > 60 and ink(chromium, "zoom-linear", REVIEW) > 60
    assert chromium.js("document.querySelector('td.top').dataset.run") == "0"


def test_cursor_is_shared_and_its_values_are_the_runs(chromium, made):
    chromium.open(made[0], ready=READY)
    key = (
        "document.querySelector('[data-panel=power]').dispatchEvent(new KeyboardEvent('keydown', {{key: '{}', shiftKey:"
        " {}}}))"
    )
    assert chromium.js("document.querySelector('#readout thead th').textContent") == "t = 43 s"
    for _ in range(3):
        chromium.js(key.format("ArrowLeft", "true"))
    chromium.js(key.format("ArrowRight", "false"))
    assert chromium.js("document.querySelector('#readout thead th').textContent") == "t = 14 s"
    cells = chromium.js(
        "[...document.querySelectorAll('#readout tbody tr')].map(r => [...r.children].map(c => c.textContent))"
    )
    assert cells[0][0].endswith("one, 25 % OP")
    assert cells[0][1:4] == ["11\u202f000 IOPS", "2.000 W", "181.8 µJ/IO"]  # 2 W / 11 000 per s = 181.8 uJ
    assert cells[0][5].endswith(" (at 10 s) °C") and cells[0][6].endswith(" (at 10 s) WA")  # the polls are 5 s apart
    lines = chromium.js("[...document.querySelectorAll('.u-cursor-x')].map(e => e.style.transform)")
    assert len({line for line in lines if line}) > 1  # all panels follow, each at its own place
    point = """(() => { const o = document.querySelector('[data-panel=whole] .u-over'), r = o.getBoundingClientRect();
      o.dispatchEvent(new MouseEvent('mousemove',
        {bubbles: true, clientX: r.left + r.width / 2, clientY: r.top + 20})); })()"""
    chromium.js(point)
    chromium.wait("document.querySelector('#readout thead th').textContent !== 't = 14 s'")
    assert chromium.js("document.querySelector('#readout thead th').textContent") in ("t = 21 s", "t = 22 s")


@pytest.mark.slow
def test_csv_holds_each_second(chromium, made):
    chromium.open(made[0], ready=READY)
    lines = chromium.js("ssdrig.csv(0)").splitlines()
    assert lines[0] == "t_s,iops,lat_mean_us,clat_p99_us,power_mean_W,power_min_W,power_max_W,energy_uJ_per_io"
    rows = [line.split(",") for line in lines[1:]]
    assert [int(r[1]) for r in rows] == OWN
    assert float(rows[0][4]) == pytest.approx(2.5, rel=1e-4) and float(rows[0][7]) == pytest.approx(125, rel=1e-3)
    assert rows[40][1:3] == ["0", ""] and rows[40][7] == ""  # a second without I/O: no latency, no energy per I/O


@pytest.mark.slow
def test_dark_scheme_and_one_empty_run(tmp_path, folders):
    if not browser.find():
        pytest.skip("no Chromium is installed: the page was not run")
    empty = synthetic_run.write(tmp_path, [5000] * 5, state=None, name="early", power=False)
    for path in (empty / "fio" / "load").iterdir():
        path.unlink()
    run_command(empty, "--out", tmp_path / "empty.html")
    with browser.Browser(dark=True) as b:
        b.open(tmp_path / "empty.html", ready=READY)
        assert b.complaints() == [] and b.js("document.body.dataset.errors") == ""
        assert b.js("getComputedStyle(document.body).backgroundColor") == "rgb(14, 17, 22)"
