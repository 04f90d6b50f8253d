"""The folder of a campaign whose files were altered, in two hundred ways: what a report says of it is what was
written, or it names the file."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from zlib import crc32

import folder_fuzz
import pytest
import synthetic_cuts
import synthetic_run

from ssdrig.base.errors import JournalError
from ssdrig.powerloss import campaign, sessions
from ssdrig.reading import table
from ssdrig.runs import integrity, journal

CUTS, NUMBER = 10, 4
VALUES = {
    "dropped": ...,
    "null": None,
    "text": "x",
    "list": [],
    "sign": lambda value: -value - 1 if isinstance(value, int | float) else True,
    "next": lambda value: value + 1 if isinstance(value, int | float) else 1,
    "huge": 10**30,
    "NaN": float("nan"),
    "endless": float("inf"),
    "deep": [[[[[]]]]],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two campaigns; one of a run that was closed, one that was killed."""
    runs = tmp_path_factory.mktemp("runs")
    for seed, name in ((1, "cuts-1"), (2, "cuts-2")):
        synthetic_cuts.write(runs, CUTS, 0.5, seed, name)
    killed = shutil.copytree(runs / "cuts-1", runs / "killed")
    events = [event for event in journal.events(killed) if event["kind"] not in ("sums", "run.end")]
    header = f"{crc32((killed / 'run.json').read_bytes()):08x}"
    events = [event | {"run_json": header} if event["kind"] == "run.start" else event for event in events]
    synthetic_run.seal(killed, events)
    return SimpleNamespace(runs=runs, closed=runs / "cuts-1", other=runs / "cuts-2", killed=killed)


def report_of(run: Path) -> tuple[str, list[str]]:
    """(what a report has of the run and its campaign, what it says of the folder)."""
    loaded = table.load(run)
    shown = [loaded.data.header, *(row.result for row in loaded.rows)]
    return json.dumps(shown, default=str, sort_keys=True), loaded.data.notes


def values_of(document: dict) -> list[tuple[tuple, str]]:
    """Each place of a document with each kind of alteration, evenly spread over both."""
    places = folder_fuzz.places(document)
    return [(places[n % len(places)], name) for n, name in enumerate([*VALUES] * (len(places) // len(VALUES) + 4))]


def altered(document: dict, at: tuple, name: str) -> dict:
    altered_ = json.loads(json.dumps(document))
    inner = altered_
    for key in at[:-1]:
        inner = inner[key]
    value = VALUES[name]
    if value is ...:
        inner.pop(at[-1])
    else:
        inner[at[-1]] = value(inner[at[-1]]) if callable(value) else value
    return altered_


def of_bytes(data: bytes, other: bytes):
    """The bytes of a file, altered without a thought for what they say."""
    half = len(data) // 2
    yield from {
        "empty": b"",
        "cut short": data[:half],
        "longer": data + b"\n{}",
        "doubled": data + data,
        "a bit": data[:half] + bytes([data[half] ^ 4]) + data[half + 1 :],
        "zeros": bytes(len(data)),
        "another run's": other,
        "reversed": data[::-1],
    }.items()


def of_lines(data: bytes):
    """events.jsonl without a line, with one twice, with two in the other's place."""
    lines = data.splitlines(keepends=True)
    judged = [n for n, line in enumerate(lines) if b"session.judged" in line]
    for n in (0, judged[0], judged[-1], len(lines) - 2, len(lines) - 1):
        yield f"line {n} dropped", b"".join(lines[:n] + lines[n + 1 :])
    first, second = judged[:2]
    yield "a line twice", b"".join([*lines[: first + 1], *lines[first:]])
    lines[first], lines[second] = lines[second], lines[first]
    yield "two lines exchanged", b"".join(lines)


def alterations(made):
    """(kind, function that alters a folder) of a closed run, which has the sums of its files."""
    where = sessions.folder(NUMBER)
    proofs = next(path for path in sorted(made.closed.glob("powerloss/*/proofs.json")))
    names = [f"{where}/{name}" for name in ("verdict.json", "history.bin.z", "seen.npz", "waveform.npz")]
    for name in ("run.json", "events.jsonl", *names, str(proofs.relative_to(made.closed))):
        data = (made.closed / name).read_bytes()
        other = (made.other / name).read_bytes() if (made.other / name).exists() else b"{}"
        for kind, content in (*of_bytes(data, other), *(of_lines(data) if name == "events.jsonl" else ())):
            yield f"{name} {kind}", lambda run, name=name, content=content: (run / name).write_bytes(content)
        yield f"{name} gone", lambda run, name=name: (run / name).unlink()
    header = json.loads((made.closed / "run.json").read_text())
    for at, kind in values_of(header):
        content = json.dumps(altered(header, at, kind))
        yield f"run.json {at} {kind}", lambda run, content=content: (run / "run.json").write_text(content)
    yield "a session exchanged", lambda run: exchanged(run / sessions.folder(1), run / sessions.folder(2))
    yield "a session doubled", lambda run: shutil.copytree(run / where, run / sessions.folder(CUTS + 1))
    yield "a session gone", lambda run: shutil.rmtree(run / where)


def exchanged(one: Path, other: Path) -> None:
    for name in ("verdict.json", "history.bin.z"):
        first, second = (one / name).read_bytes(), (other / name).read_bytes()
        (one / name).write_bytes(second)
        (other / name).write_bytes(first)


def resealed(run: Path, number: int, at: tuple, kind: str) -> None:
    """A verdict that says something else, with a sum that fits."""
    path = run / sessions.folder(number) / "verdict.json"
    content = json.loads(path.read_text())
    content.pop("crc32")
    path.write_bytes(sessions.sealed(altered(content, at, kind)))


def of_killed(made):
    """The same of a run that was not closed: nothing but its own files vouches for them."""
    where = sessions.folder(NUMBER)
    content = json.loads((made.killed / where / "verdict.json").read_text())
    for key in content["record"]:
        for kind in ("dropped", "next", "text"):
            at = ("record", key)
            yield f"record {key} {kind}", lambda run, at=at, kind=kind: resealed(run, NUMBER, at, kind)
    for at in (("run",), ("sums",), ("sums", "seen.npz"), ("record",)):
        for kind in ("dropped", "next", "null"):
            yield f"verdict {at} {kind}", lambda run, at=at, kind=kind: resealed(run, NUMBER, at, kind)
    for name in ("verdict.json", "history.bin.z", "seen.npz", "waveform.npz"):
        data, other = ((run / where / name).read_bytes() for run in (made.killed, made.other))
        for kind, new in of_bytes(data, other):
            yield f"{name} {kind}", lambda run, name=name, new=new: (run / where / name).write_bytes(new)
        yield f"{name} gone", lambda run, name=name: (run / where / name).unlink()
    header = json.loads((made.killed / "run.json").read_text())
    for at, kind in values_of(header)[:20]:
        new = json.dumps(altered(header, at, kind))
        yield f"run.json {at} {kind}", lambda run, new=new: (run / "run.json").write_text(new)


def is_silent(run: Path, alter, whole: str, notes: list[str]) -> bool:
    """Whether a report gives other figures of the altered folder than were written, and says nothing of it."""
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(run.parent / "source", run)
    alter(run)
    if integrity.damage(run):
        return False
    lost, wrong = sessions.doubts([run])
    if lost or wrong:
        return False
    try:
        report, now = report_of(run)
    except JournalError:
        return False
    return report != whole and not {*now} - {*notes}


@pytest.mark.parametrize("state", ["closed", "killed"])
def test_altered_campaign_is_refused_or_named(made, tmp_path, state):
    shutil.copytree(getattr(made, state), tmp_path / "source")
    whole, notes = report_of(tmp_path / "source")
    ways = dict((alterations if state == "closed" else of_killed)(made))
    silent = [kind for kind, alter in ways.items() if is_silent(tmp_path / "run", alter, whole, notes)]
    assert not silent and len(ways) >= 100, silent
    assert not integrity.damage(tmp_path / "source") and sessions.doubts([tmp_path / "source"]) == ([], [])


def test_report_names_what_does_not_fit(made, tmp_path):
    run = shutil.copytree(made.killed, tmp_path / "run")
    resealed(run, NUMBER, ("record", "commands"), "next")
    (run / sessions.folder(2) / "seen.npz").unlink()
    notes = report_of(run)[1]
    assert any(f"{sessions.folder(NUMBER)}/verdict.json" in note and "commands" in note for note in notes)
    assert any(f"{sessions.folder(2)}/seen.npz" in note for note in notes)


def begun(made, tmp_path, change=lambda run: None, **now):
    """A campaign that goes on with this folder, as far as it looks at it; what it says of it."""
    run = shutil.copytree(made.killed, tmp_path / "run")
    change(run)
    lines: list = []
    event = next(event for event in journal.events(run) if event["kind"] == sessions.BEGIN)
    keys = {name: now.get(name, event.get(name)) for name in ("cuts", "streams", "mixes")}
    it = object.__new__(campaign._Campaign)
    it.folders, it.run, it.keys = [run], now.get("run", event["run"]), keys
    it.contents = SimpleNamespace(window_bytes=now.get("window_bytes", event.get("window_bytes")))
    it.stage = SimpleNamespace(progress=SimpleNamespace(warn=lines.append))
    it._tell = lambda kind, **more: lines.append(kind)
    it._same_campaign(now.get("seed", event["seed"]))
    return lines


def test_campaign_goes_on_in_the_folder_that_it_wrote(made, tmp_path):
    assert begun(made, tmp_path) == []


def test_campaign_that_has_lost_a_file_says_so(made, tmp_path):
    note, words = begun(made, tmp_path, lambda run: (run / sessions.folder(2) / "seen.npz").unlink())
    assert note == "note" and f"{sessions.folder(2)}/seen.npz" in words


@pytest.mark.parametrize("key", ["run", "seed", "cuts", "streams", "mixes", "window_bytes"])
def test_campaign_does_not_go_on_as_another_one(made, tmp_path, key):
    with pytest.raises(JournalError, match=key):
        begun(made, tmp_path, **{key: 12345})


def test_campaign_does_not_go_on_with_a_verdict_that_its_journal_has_otherwise(made, tmp_path):
    with pytest.raises(JournalError, match="failed"):
        begun(made, tmp_path, lambda run: resealed(run, NUMBER, ("record", "failed"), "sign"))
