"""The archive: what its index has of each run folder, when a row is made anew, what a search finds, labels."""

import json
import os
import sqlite3
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import synthetic_run
from hypothesis import given
from hypothesis import strategies as st
from json_documents import checked

from ssdrig import cli
from ssdrig.base.errors import JournalError, UsageError
from ssdrig.commands import runs
from ssdrig.reading import index as archive_index
from ssdrig.reading import one_run
from ssdrig.reading.index import STATES, Index, condition
from ssdrig.runs import journal, labels

HEADER = {
    "schema": 1,
    "run": "r",
    "simulated": True,
    "started": {"t_ns": 5, "utc_ns": 1_795_177_507_894_000_000},
    "method": {"name": "consistency", "op_percent": 25},
    "drive": {"model": "Example 990 PRO", "serial": "S6WS", "capacity_bytes": 10**12},
}
STEADY = {"t0_s": 10, "t1_s": 20, "iops_mean": 1234.5, "power_mean_W": 4.25, "wa": 3.0}
FIGURES = {"rows": [{"path": "load", "do": "load", "windows": {"all": {"iops_mean": 9.0}, "steady": STEADY}}]}
LONG_AGO_NS = 1_700_000_000_000_000_000


def settled(folder: Path) -> None:
    """As if nobody had touched it for long: what changes then has another time."""
    for path in (folder / "events.jsonl", folder):
        os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))


def make(root: Path, name: str, state: str | None = "complete", figures: dict | None = None, **more) -> Path:
    """A run folder with nothing but a header, its events and what a report left. state None: its process died."""
    header = {**HEADER, "run": name, **{key: value for key, value in more.items() if key not in ("drive", "method")}}
    header |= {key: {**HEADER[key], **more.get(key, {})} for key in ("drive", "method")}
    book = journal.create(root, header)
    book.event("note", text="x" * 100)
    if state:
        book.close(state, "because" if state == "failed" else None)
    else:
        content = (root / name / "events.jsonl").read_bytes()
        book.close("complete")
        (root / name / "events.jsonl").write_bytes(content)
    if figures:
        (root / name / "figures.json").write_text(json.dumps(figures))
    settled(root / name)
    return root / name


@pytest.fixture
def root(tmp_path) -> Path:
    base = tmp_path / "runs"
    make(base, "a", figures=FIGURES)
    make(base, "b", "failed", drive={"model": "Other SN850X"}, simulated=False, method={"op_percent": None})
    make(base, "c", None, started={"t_ns": 5, "utc_ns": 1_750_000_000_000_000_000})
    return base


def names(index: Index, words: str = "") -> list[str]:
    return [Path(run.path).name for run in index.find(condition(words))]


def test_each_run_has_a_row(root):
    index = Index(root)
    assert index.refresh() == 3 and names(index) == ["b", "a", "c"]
    a, b, c = (index.get(archive_index.id_of(name)) for name in "abc")
    assert (a.state, b.state, b.why, c.state) == ("complete", "failed", "because", "died")
    assert a.figures["iops_mean"] == 1234.5 and a.figures["window"] == "load, steady" and a.figures["why"] is None
    assert a.figures["clat_p99_us"] is None and b.figures["iops_mean"] is None and "not worked out" in b.figures["why"]
    assert a.simulated and not b.simulated and index.get("../a") is None
    assert index.folder(a) == root / "a"


def test_only_what_changed_is_read_again(root, monkeypatch):
    index = Index(root)
    index.refresh()
    read = []
    monkeypatch.setattr(one_run, "row", lambda folder, row=one_run.row: (read.append(folder.name), row(folder))[1])
    assert index.refresh() == 0 and read == []
    labels.change(root / "a", title="Night run", add=["review"])
    (root / "b" / "figures.json").write_text(json.dumps(FIGURES))
    assert index.refresh() == 2 and sorted(read) == ["a", "b"]
    assert names(index, "tag:review") == names(index, "title:night") == ["a"]
    assert [run.figures["power_mean_W"] for run in index.find()] == [4.25, 4.25, None]
    (root / "c").rename(root.parent / "elsewhere")
    assert index.refresh() >= 1 and names(index) == ["b", "a"]


def test_a_folder_that_has_just_changed_is_read_again_until_its_clock_has_moved_on(root, monkeypatch):
    index = Index(root)
    index.refresh()
    os.utime(root / "a", ns=(changed_ns := time.time_ns(), changed_ns))
    for later_ns, read in ((archive_index.FRESH_NS - 1, (1, 1)), (archive_index.FRESH_NS, (1, 0))):
        clock = SimpleNamespace(monotonic=time.monotonic, time_ns=lambda now_ns=changed_ns + later_ns: now_ns)
        monkeypatch.setattr(archive_index, "time", clock)
        assert (index.refresh(), index.refresh()) == read


def test_a_run_is_running_while_its_journal_is_open_and_a_part_goes_on_with_it(root):
    book = journal.create(root, {**HEADER, "run": "d"})
    index = Index(root)
    index.refresh()
    assert names(index, "state:running") == ["d"]
    book.close("interrupted")
    settled(root / "d")
    index.refresh()
    assert names(index, "state:interrupted") == ["d"]
    from ssdrig.runs import parts

    part = parts.begin(root / "d", {**HEADER, "run": "d", "resumed": {"part": 2}})
    index.refresh()
    assert names(index, "state:running") == ["d"] and index.find(condition("run:d"))[0].parts == 2
    part.close("complete")
    index.refresh()
    assert names(index, "state:complete") == ["d", "a"]


def test_figures_older_than_the_last_event_are_not_believed(root):
    os.utime(root / "a" / "figures.json", ns=(LONG_AGO_NS - 1, LONG_AGO_NS - 1))
    index = Index(root)
    index.refresh()
    (run,) = index.find(condition("run:a"))
    assert run.figures["iops_mean"] is None and "older" in run.figures["why"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "run_names"),
    [
        ("", "bac"),
        ("drive:990", "ac"),
        ("drive:sn850x", "b"),
        ("op:25", "ac"),
        ("op:25.4", "ac"),
        ("op:24", ""),
        ("op:default", "b"),
        ("state:complete", "a"),
        ("since:2026-11", "ba"),
        ("since:2026 until:2026-11-20", "ba"),
        ("until:2025", "c"),
        ("since:2026-11-21", ""),
        ("simulated:no", "b"),
        ("plan:consist", "bac"),
        ("990 -state:died", "a"),
        ("-drive:990", "b"),
        ("drive:%", ""),
        ("drive:'990 pro'", "ac"),
        ("run:a", "a"),
    ],
)
def test_searches(root, words, run_names):
    index = Index(root)
    index.refresh()
    assert "".join(names(index, words)) == run_names


@pytest.mark.parametrize(
    "words", ["drve:990", "op:big", "state:done", "since:yesterday", "since:2026-13", "tag:", "title:'x", "simulated:1"]
)
def test_searches_that_are_refused(words):
    with pytest.raises(UsageError):
        condition(words)


ANY_TEXT = st.text(
    st.characters(codec=None), max_size=40
)  # lone surrogates, too: bytes of an argument that are no text


@given(ANY_TEXT | st.builds("{}:{:04}".format, st.sampled_from(["since", "until", "op"]), st.integers(0, 9999)))
def test_no_search_is_more_than_a_condition(words):
    """Whatever is typed either is refused or finds what it says; nothing of it is carried out."""
    db = archive_index._table(":memory:")
    try:
        sql, values = condition(words)
        assert db.execute(f"SELECT * FROM run WHERE {sql}", values).fetchall() == []
        assert "'" not in sql.replace("''", "").replace("'\\'", "")
    except UsageError:
        pass
    finally:
        db.close()


def test_a_damaged_index_is_made_again(root):
    index = Index(root)
    index.refresh()
    index.close()
    index.file.write_bytes(b"SQLite format 3\0" + os.urandom(4000))
    again = Index(root)
    assert again.refresh() == 3 and names(again) == ["b", "a", "c"]
    again.close()
    with sqlite3.connect(index.file) as db:
        db.execute("PRAGMA user_version = 999")
    assert Index(root).refresh() == 3


def test_without_a_place_for_it_the_index_is_in_memory(root, tmp_path):
    (tmp_path / "file").write_text("")
    index = Index(root, tmp_path / "file" / "no")
    assert index.refresh() == 3 and len(names(index)) == 3


def test_what_leads_out_of_the_archive_is_not_in_it(root, tmp_path):
    outside = make(tmp_path / "other", "z", figures=FIGURES)
    (root / "linked").symlink_to(outside)
    (root / "inner").symlink_to(root / "a")
    make(root, "y")
    for name in ("figures.json", "labels.json"):
        (outside / name).write_text(json.dumps(FIGURES | {"title": "stolen"}))
        (root / "y" / name).symlink_to(outside / name)
    index = Index(root)
    index.refresh()
    assert "linked" not in names(index) and "inner" in names(index)
    (run,) = index.find(condition("run:y"))
    assert run.title is None and run.figures["iops_mean"] is None
    (root / "a" / "run.json").rename(tmp_path / "gone")
    with pytest.raises(JournalError):
        index.folder(index.get(archive_index.id_of("a")))


def test_a_figure_of_a_run_that_is_not_to_be_trusted_is_marked():
    of = one_run.headline_of_none("") | {"iops_mean": 9000.0, "power_mean_W": 1.5, "wa": 2.0, "window": "w"}
    for bad, marks in (({}, 0), ({"host": "bad"}, 3), ({"gaps": "bad"}, 1), ({"gaps": "unknown"}, 0), (None, 0)):
        assert runs.figures_words(of | {"window_trust": bad}).count("✕") == marks
    assert runs.figures_words(of | {"trust": {"gaps": "bad"}, "window_trust": {}}).count("✕") == 0  # of another window


PASSED = {"passed": True, "drive_writes": 2.1, "past_spare": True}
FRESH = {"passed": False, "drive_writes": 0.4, "past_spare": False}


@pytest.mark.parametrize(
    ("figures", "steady"),
    [
        ({}, None),
        ({"steady": {"verdicts": [PASSED | {"why": None}]}}, PASSED),
        ({"steady": {"verdicts": [FRESH]}}, FRESH),
        ({"steady": {"verdicts": [{"passed": None}]}}, {"passed": None, "drive_writes": None, "past_spare": None}),
        ({"rows": [], "steady": {"verdicts": []}}, None),
        ({"rows": [], "steady": {"verdicts": [PASSED, FRESH]}}, FRESH),
        ({"steady": {"verdicts": [{"passed": "x", "drive_writes": 1e400, "past_spare": []}]}}, dict.fromkeys(PASSED)),
        ({"steady": {"verdicts": "x"}}, None),
        ({"steady": [1]}, None),
    ],
)
def test_a_run_says_at_how_many_drive_writes_it_was_steady(tmp_path, capsys, figures, steady):
    make(tmp_path / "runs", "a", figures=FIGURES | figures)
    assert cli.main(["runs", str(tmp_path / "runs"), "--json"]) == 0
    assert checked("runs", json.loads(capsys.readouterr().out))["figures"]["steady"] == steady
    assert cli.main(["runs", str(tmp_path / "runs")]) == 0
    text = capsys.readouterr().out
    assert bool(runs.steady_words(steady)) == (steady is not None) and runs.steady_words(steady) in text
    assert (steady or {}).get("drive_writes") is None or f"{steady['drive_writes']:.2f} drive writes" in text


DAMAGE = st.sampled_from(["run.json", "events.jsonl", "figures.json", "labels.json"])
CONTENT = st.one_of(
    st.binary(max_size=60),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
        lambda kids: (
            st.lists(kids, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        *HEADER,
                        *FIGURES,
                        "rows",
                        "steady",
                        "steady_state",
                        "verdicts",
                        "title",
                        "tags",
                        "op_percent",
                        "utc_ns",
                    ]
                ),
                kids,
                max_size=4,
            )
        ),
    ).map(lambda value: json.dumps(value).encode()),
)


@pytest.fixture(scope="module")
def odd(tmp_path_factory) -> Path:
    return make(tmp_path_factory.mktemp("odd"), "a", figures=FIGURES)


@given(DAMAGE, CONTENT)
def test_no_folder_breaks_its_row(odd, name, content):
    original = (odd / name).read_bytes() if (odd / name).exists() else b""
    (odd / name).write_bytes(content)
    row = one_run.row(odd)
    assert row["state"] in STATES and {"id", "path", "key", "parts", *row} == {*archive_index.COLUMNS}
    json.dumps(row["figures"], allow_nan=False)
    index = Index(odd.parent, odd.parent / "cache")
    index.refresh()
    (run,) = index.find()
    assert run.path == "a" and json.dumps(run._asdict(), ensure_ascii=False).encode()
    index.close()
    (odd / name).write_bytes(original)


def test_a_folder_whose_name_is_no_text_is_found_like_any_other(root, capsys):
    os.rename(os.fsencode(root / "a"), os.fsencode(root) + b"/a\xff")
    index = Index(root)
    index.refresh()
    assert index.refresh() == 0 and os.fsdecode(b"a\xff") in names(index)
    (run,) = index.find(condition("state:complete"))
    assert (index.folder(index.get(run.id)) / "run.json").is_file()
    assert cli.main(["runs", "--runs", str(root), "\udcff"]) == 0
    os.rename(os.fsencode(root) + b"/a\xff", os.fsencode(root / "a"))
    assert index.refresh() == 2 and sorted(names(index)) == ["a", "b", "c"]


def test_an_index_that_cannot_be_written_is_in_memory(root, monkeypatch):
    first = Index(root)
    first.refresh()
    first.close()
    opened = Index._opened

    def read_only(self):
        db = opened(self)
        db.execute("PRAGMA query_only = ON")
        return db

    monkeypatch.setattr(Index, "_opened", read_only)
    make(root, "d")
    index = Index(root)
    assert index.refresh() == 4 and index.file.exists() and sorted(names(index)) == ["a", "b", "c", "d"]


def test_an_empty_folder_and_links_in_a_circle_are_said(tmp_path, capsys):
    assert cli.main(["runs", str(tmp_path)]) == 0 and "no run in" in capsys.readouterr().err
    (tmp_path / "circle").symlink_to("circle")
    assert cli.main(["runs", str(tmp_path)]) == 0
    assert cli.main(["runs", str(tmp_path / "circle"), "x"]) == 2


@pytest.mark.parametrize("title", ["\udcff", "a\x1b[31m", "\u202egnp", "x" * 121])
def test_titles_that_are_refused(root, title, capsys):
    assert cli.main(["label", str(root / "a"), "--title", title]) == 2 and labels.read(root / "a").title is None


def test_a_title_is_one_line(root):
    assert labels.change(root / "a", title=" fan\n off 👩‍🚀 ").title == "fan off 👩‍🚀"
    assert labels.change(root / "a", title=" ").title is None


def test_folders_of_reviews_are_looked_into_and_others_are_not(root):
    make(root / "night", "n1")
    (root / "night" / "review.json").write_text("{}")
    make(root / "plain", "p1")
    index = Index(root)
    index.refresh()
    assert {run.path for run in index.find()} == {"a", "b", "c", "night/n1"}


def test_a_run_of_another_user_hides_none(tmp_path, capsys, monkeypatch):
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text("{}")
    stat, open_ = os.stat, os.open

    def refuse(path, *more, real=stat, **how):
        if "theirs/" in str(path):
            raise PermissionError(13, "Permission denied")
        return real(path, *more, **how)

    monkeypatch.setattr(os, "stat", refuse)
    monkeypatch.setattr(os, "open", lambda path, *more, **how: refuse(path, *more, real=open_, **how))
    assert cli.main(["runs", "--json", "--runs", str(tmp_path)]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(Path(row["run"]).name, row["state"]) for row in rows] == [("theirs", "unreadable"), ("mine", "unreadable")]


def test_the_command(root, capsys, monkeypatch):
    assert cli.main(["label", str(root / "a"), "--title", "Night", "--tag", "Review", "--tag", "x"]) == 0
    assert cli.main(["label", str(root / "a"), "--untag", "x", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["tags"] == ["review"]
    (root / "a" / "labels.json").write_text(json.dumps({"title": "Night \x1b[31m", "tags": ["review"]}))
    assert cli.main(["runs", str(root), "tag:review"]) == 0
    out = capsys.readouterr().out
    assert "IOPS  4.250 W" in out and "[review]" in out and "\x1b" not in out
    assert cli.main(["runs", str(root), "state:died op:25", "--json"]) == 0
    (row,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert row["run"] == str(root / "c") and row["started"] == "2025-06-15 15:06"
    monkeypatch.chdir(root.parent)
    assert cli.main(["runs", "tag:none"]) == 0 and "none of 3 runs" in capsys.readouterr().err
    assert cli.main(["runs", "drve:990"]) == 2 and "do you mean 'drive'?" in capsys.readouterr().err
    assert cli.main(["runs", "--runs", "nowhere"]) == 2 and "nowhere" in capsys.readouterr().err
    assert cli.main(["label", "nowhere", "--tag", "x"]) == 2
    assert cli.main(["label", "./nowhere", "--tag", "x"]) == JournalError.exit_code
    assert cli.main(["label", str(root / "a"), "--tag", "no blanks"]) == 2
    assert cli.main(["label", str(root / "a"), "--tag", "x", "--untag", "x"]) == 2
    assert cli.main(["label", str(root / "a"), "--title", "x" * 121]) == 2


def test_labels_of_several_writers_are_all_kept(root):
    threads = [threading.Thread(target=labels.change, args=(root / "a",), kwargs={"add": [f"t{n}"]}) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(labels.read(root / "a").tags) == 12
    with pytest.raises(UsageError, match="at most 32 tags"):
        labels.change(root / "a", add=[f"more{n}" for n in range(30)])


def test_figures_are_worked_out_on_demand_and_a_report_believes_the_folder_still(tmp_path, capsys):
    run = synthetic_run.write(tmp_path / "runs", [900] * 5 + [300, 500] * 3, zoom_s=5)
    assert cli.main(["runs", str(tmp_path / "runs"), "--figures", "--json"]) == 0
    (row,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert row["figures"]["iops_mean"] == pytest.approx(400) and row["figures"]["why"] is None
    labels.change(run, add=["x"])
    from ssdrig.runs import integrity

    assert integrity.damage(run) == []
