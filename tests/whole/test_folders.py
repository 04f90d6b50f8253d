"""A run folder is data: whatever stands in run.json or review.json, no program is started, nothing is written outside
of the folder and nobody sees a traceback."""

import contextlib
import json
import os
import random
import shutil
import signal
from pathlib import Path

import browser_serving
import folder_fuzz
import pytest

from ssdrig import cli
from ssdrig.base.errors import JournalError
from ssdrig.reading import one_run, review_folder
from ssdrig.runs import integrity, journal

SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 11))]
CASES = 200  # of each seed
SERVED = 60
APART = {integrity.FIGURES, integrity.SUMMARY}  # what a report leaves in a run folder


@pytest.mark.parametrize("seed", SEEDS)
def test_an_altered_folder_starts_nothing_and_writes_nothing_outside(tmp_path, monkeypatch, seed):
    rng = random.Random(seed)
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    outside.mkdir()
    (outside / "bait").write_text("bait")
    inside.mkdir()
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "TMPDIR", "HOME"):
        (inside / name).mkdir()
        monkeypatch.setenv(name, str(inside / name))
    monkeypatch.setattr("tempfile.tempdir", str(inside / "TMPDIR"))
    monkeypatch.delenv("SSDRIG_INFLUX", raising=False)
    sources = {shape: folder_fuzz.folder_of(shape, inside / f"of-{shape}") for shape in folder_fuzz.SHAPES}
    sources["review"] = folder_fuzz.review_of(inside / "of-review")
    wrong: list = []
    codes: list[int] = []
    with folder_fuzz.stubbed(monkeypatch, wrong):
        for number in range(CASES):
            shape = rng.choice(sorted(sources))
            run = inside / "work" / f"{number}" / sources[shape].name
            shutil.copytree(sources[shape], run)
            files = [*run.rglob("run.json"), *run.rglob("review.json")]
            for _ in range(rng.choice([1, 1, 2, 5])):
                file = rng.choice(files)
                document = json.loads(file.read_text())
                at = rng.choice([*folder_fuzz.places(document), ("drive", "target"), ("drive", "power_off")])
                changed = folder_fuzz.altered(document, at, folder_fuzz.hostile(rng, outside))
                file.write_text(json.dumps(changed, ensure_ascii=True))
            words, deeds = folder_fuzz.words_of(rng, shape, run, inside / "out"), []
            codes.append(folder_fuzz.one(words, inside, deeds))
            wrong += [(number, shape, at, words[0], deed) for deed in deeds]
            shutil.rmtree(inside / "work")
    assert [path.name for path in outside.iterdir()] == ["bait"] and (outside / "bait").read_text() == "bait"
    assert not wrong, "\n".join(map(str, wrong[:40])) + f"\n{len(wrong)} in all"
    assert codes.count(folder_fuzz.STARTED) > 0 and codes.count(0) > 20  # what is not refused is tried, too


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_altered_folders_that_are_served_start_nothing_and_fail_no_request(tmp_path, seed):
    rng = random.Random(seed)
    root, outside = tmp_path / "runs", tmp_path / "outside"
    outside.mkdir()
    sources = [folder_fuzz.folder_of(shape, tmp_path / f"of-{shape}") for shape in folder_fuzz.SHAPES]
    for number in range(SERVED):
        source = rng.choice(sources)
        shutil.copytree(source, run := root / f"{source.name}-{number}")
        document = json.loads((run / "run.json").read_text())
        for _ in range(rng.choice([1, 1, 2, 5])):
            document = folder_fuzz.altered(
                document, rng.choice(folder_fuzz.places(document)), folder_fuzz.hostile(rng, outside)
            )
        (run / "run.json").write_text(json.dumps(document))
        if not rng.randrange(4):  # events that nobody wrote
            lines = [
                {
                    "t_ns": rng.randrange(10**12),
                    "kind": kind,
                    **dict.fromkeys(fields, folder_fuzz.hostile(rng, outside)),
                }
                for kind, fields in integrity.FIELDS.items()
            ]
            (run / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        if not rng.randrange(8):
            os.truncate(run / rng.choice(["run.json", "events.jsonl", "rig.bin"]), 10 << 30)
    before = {*root.rglob("*")}
    with browser_serving.Serving(root, "--control") as served:
        listed = served.get("/api/runs?limit=500")["runs"]
        assert len(listed) == SERVED
        statuses = {served.ask("GET", path)[0] for path in ("/api/drives", "/api/rigs", "/api/hello", "/")}
        for run in listed:
            for method, path, body in (
                ("HEAD", f"/api/live/{run['id']}", None),
                ("GET", f"/api/drives/{run['id']}", None),
                ("GET", f"/api/course/{run['id']}", None),
                ("GET", f"/api/earlier/{run['id']}", None),
                ("POST", f"/api/live/{run['id']}/act", {"act": "note", "text": "typed"}),
                ("POST", f"/api/live/{run['id']}/act", {"act": "stop"}),
            ):
                statuses.add(served.ask(method, path, body)[0])
            with contextlib.suppress(AssertionError), contextlib.closing(served.stream(run["id"])) as messages:
                next(messages, None)
        for run in rng.sample(listed, 3):
            statuses.add(served.ask("POST", "/api/compare", {"runs": [run["id"]]})[0])
        resident = next(x for x in Path(f"/proc/{served.process.pid}/status").read_text().splitlines() if "VmHWM" in x)
        assert int(resident.split()[1]) < 600_000
        os.killpg(served.process.pid, signal.SIGTERM)
        assert "Traceback" not in served.process.communicate()[1]
    assert 200 in statuses and not any(status >= 500 for status in statuses), statuses
    assert not [*outside.iterdir()] and {path.name for path in {*root.rglob("*")} - before} <= APART


@pytest.mark.parametrize("odd", ["a pipe", "a device", "a link out"])
def test_a_review_with_what_is_no_file_of_its_own_is_refused_at_once(tmp_path, odd):
    review = folder_fuzz.review_of(tmp_path)
    file = review / "review.json"
    outside = tmp_path / "outside.json"
    file.rename(outside)
    if odd == "a pipe":
        os.mkfifo(file)
    else:
        file.symlink_to("/dev/zero" if odd == "a device" else outside)
    with pytest.raises(JournalError):
        review_folder.read(review)


def test_a_command_that_lacks_memory_says_so_without_a_traceback(tmp_path, monkeypatch, capsys):
    def lacks(path):
        raise MemoryError

    monkeypatch.setattr(integrity, "content", lacks)
    assert cli.main(["push", str(tmp_path), "--influx", "http://127.0.0.1:9/x"]) == JournalError.exit_code
    assert "memory" in capsys.readouterr().err


def test_a_pipe_in_the_place_of_a_lock_holds_no_list_up(tmp_path):
    os.mkfifo(tmp_path / "lock")
    assert not journal.lock_is_held(tmp_path)


def test_the_last_event_of_a_file_with_a_hole_is_looked_for_near_its_end_only(tmp_path, monkeypatch):
    monkeypatch.setattr(one_run, "LAST_BYTES", 10)
    monkeypatch.setattr(one_run, "MOST_BYTES", 1 << 20)
    book = tmp_path / "events.jsonl"
    book.touch()
    os.truncate(book, 1 << 40)
    assert one_run.last_event(tmp_path) is None
