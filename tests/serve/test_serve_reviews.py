"""The reviews of an archive as `serve` lists them, and the page that shows them."""

import json
import shutil

import folder_fuzz
import pytest
from browser_serving import Serving
from test_browser_page import chromium, fits, open_page, text  # noqa: F401  a fixture

from ssdrig.reading import review_folder
from ssdrig.reading.index import Index
from ssdrig.serve import reviews


@pytest.fixture
def review(tmp_path):
    return folder_fuzz.review_of(tmp_path)


def listed(review) -> dict:
    (row,) = reviews.listed(review.parent, {})
    return row


def test_a_killed_review_is_interrupted_and_names_its_plans(review):
    row = listed(review)
    assert (row["state"], row["complete"], row["of"], row["level"]) == ("interrupted", 0, 1, "quick")
    assert [(plan["name"], plan["state"]) for plan in row["plans"]] == [("consistency", "died")]
    index = Index(review.parent)
    index.refresh()
    assert [run.id for run in index.find()] == [row["plans"][0]["run"]]
    index.close()


def test_a_review_that_a_process_runs_is_running(review):
    with review_folder.held(review_folder.read(review)):
        assert listed(review)["state"] == "running"
        document = review / "review.json"
        plans = json.loads(document.read_text())
        plans["plans"] += [plans["plans"][0] | {"name": "later"}, plans["plans"][0] | {"name": "never", "why": "long"}]
        document.write_text(json.dumps(plans))
        states = [(plan["state"], plan["why"]) for plan in listed(review)["plans"]]
        assert states == [("died", None), ("to come", None), ("not run", "long")]
    assert listed(review)["state"] == "interrupted"


def test_looking_does_not_hold_the_review(review):
    """A look must never make `review --resume` believe that another process runs it."""
    listed(review)
    with review_folder.held(review_folder.read(review)):
        pass


def test_rows_are_read_again_only_when_a_run_has_changed(review, monkeypatch):
    rows, reads, real = {}, [], review_folder.done
    monkeypatch.setattr(reviews.review_folder, "done", lambda of: reads.append(of) or real(of))
    reviews.listed(review.parent, rows)
    reviews.listed(review.parent, rows)
    assert len(reads) == 1
    (run,) = [path for path in review.iterdir() if path.is_dir()]
    with open(run / "events.jsonl", "a") as events:
        events.write("{}\n")
    reviews.listed(review.parent, rows)
    with review_folder.held(review_folder.read(review)):
        reviews.listed(review.parent, rows)
    assert len(reads) == 3


def test_damage_and_links_are_no_reviews(review, tmp_path):
    outside = tmp_path / "outside"
    shutil.copytree(review, outside)
    (review.parent / "link").symlink_to(outside)
    (review.parent / ".new").mkdir()
    (review.parent / ".new" / "review.json").write_text("{}")
    assert listed(review)["state"] == "interrupted"
    (review / "review.json").write_text('{"schema": 1, "level": "\x1b"}')
    row = listed(review)
    assert row["state"] == "unreadable" and "review.json" in row["why"] and row["plans"] == []
    json.dumps(row, allow_nan=False)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1400, 390])
def test_the_page_of_reviews(chromium, review, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    chromium.send("Emulation.setDeviceMetricsOverride", size)
    document = json.loads((review / "review.json").read_text())
    document["drive"]["model"] = "Alpha <b>"
    (review / "review.json").write_text(json.dumps(document))
    with Serving(review.parent) as served:
        assert served.ask("GET", "/api/reviews", headers={"Authorization": None})[0] == 401
        for body in ({}, {"review": "x"}, {"review": ["x"]}):
            assert served.ask("POST", "/api/reviews/page", body)[0] == 404
        (row,) = served.get("/api/reviews")
        status, _, answer = served.ask("POST", "/api/reviews/page", {"review": row["id"]})
        page = json.loads(answer)["page"]
        assert status == 200 and b"Alpha" in served.ask("GET", page)[2]
        open_page(chromium, served.url, "document.getElementById('n-runs').textContent")
        chromium.js("location.hash = '#reviews'")
        chromium.wait("document.querySelectorAll('.one-review').length === 1")
        chromium.js("document.querySelector('#reviews details').open = true")
        shown = text(chromium, "#reviews")
        for words in ("Alpha <b>", "level quick", "0 of 1 plans", f"--resume {review}", "consistency", "died"):
            assert words in shown, words
        assert chromium.js("document.querySelectorAll('#reviews b').length") == 0
        assert chromium.complaints() == [] and fits(chromium)
    chromium.send("Emulation.clearDeviceMetricsOverride")
