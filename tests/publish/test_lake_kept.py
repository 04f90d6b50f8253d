"""An export believes neither the place that it writes to nor the run folder that it reads."""

import io
import json

import pytest
import synthetic_run
from lake_runs import asked, counts, lake_of, run

from ssdrig import cli
from ssdrig.base.errors import JournalError, UsageError
from ssdrig.meter import reduced
from ssdrig.publish.lake import export, place, read, write
from ssdrig.reading import summary
from ssdrig.runs import journal


def test_an_export_looks_whether_the_place_has_kept_it(tmp_path, monkeypatch):
    """A place may say yes to all, as a proxy or a bucket of another kind does."""
    made, where = run(tmp_path, "mine", [500]), place.open_place(str(tmp_path / "lake"))
    sizes = place.Place.sizes
    monkeypatch.setattr(place.Place, "sizes", lambda *words: [None, *sizes(*words)[1:]])
    with pytest.raises(JournalError, match="all files of mine"):
        write.export(made, where, "berlin")
    assert counts(read.look(where))["run"] == 0
    monkeypatch.setattr(place.Place, "sizes", sizes)
    done = write.export(made, where, "berlin")
    again = write.export(made, where, "berlin")
    assert done.new and not again.new and done.bytes > 0 == again.bytes
    (tmp_path / "lake" / done.files[0]).unlink()  # by someone who tidied up
    assert write.export(made, where, "berlin").new and (tmp_path / "lake" / done.files[0]).exists()
    (tmp_path / "lake" / done.files[-1]).write_bytes(b"PAR1")
    with pytest.raises(JournalError, match="the row of a run"):
        write.export(made, where, "berlin")


@pytest.mark.parametrize("utc_ns", [None, "x", 10**30, float("nan"), {}])
def test_a_run_that_began_at_no_time_is_refused(tmp_path, utc_ns):
    made = run(tmp_path, "made", [500])
    header = json.loads((made / "run.json").read_text())
    header["started"]["utc_ns"] = utc_ns
    (made / "run.json").write_text(json.dumps(header))
    with pytest.raises(JournalError):
        write.export(made, place.open_place(str(tmp_path / "lake")), "berlin")


def test_a_row_is_read_by_no_thread_that_may_outlive_python(tmp_path, monkeypatch):
    """One process in six ended by SIGABRT behind its last word, on a busy machine: pyarrow's threads let go of Python's
    bytes when they please."""
    import pyarrow.parquet as pq

    made, where = run(tmp_path, "mine", [500]), place.open_place(str(tmp_path / "lake"))
    done, reading, how = write.export(made, where, "berlin"), pq.read_table, []
    monkeypatch.setattr(pq, "read_table", lambda *words, **more: (how.append(more), reading(*words, **more))[1])
    assert not write.export(made, where, "berlin").new and done.new
    assert how and all(options == {"use_threads": False, "pre_buffer": False} for options in how)


def test_how_a_run_ended_and_why_is_of_one_part(tmp_path):
    """The last part found no drive and did nothing: the figures are of the part before it, which died."""
    made = run(tmp_path, "made", [500, 500], state=None)
    part = made / "part-2"
    part.mkdir()
    header = json.loads((made / "run.json").read_text())
    (part / "run.json").write_text(json.dumps(header | {"resumed": {"part": 2}}))
    end = {"kind": "run.end", "state": "failed", "why": "the drive is gone", "exit_code": 4}
    synthetic_run.seal(part, [{"t_ns": header["started"]["t_ns"] + i, **e} for i, e in enumerate([START, end])])
    (row,) = asked(lake_of(tmp_path / "lake", made), "SELECT state, why, parts FROM run")
    assert row == {"state": "failed", "why": "the drive is gone", "parts": 2}


START = {"kind": "run.start"}
ODD = [{"plan": {"name": None, "scaled": 5}, "host": {"fio": 5}}, {"plan": {}, "host": None, "ssdrig": []}]


@pytest.mark.parametrize("odd", ODD)
def test_what_a_stranger_s_run_says_beside_what_is_measured_is_not_known(tmp_path, odd):
    made = run(tmp_path, "made", [500, 500])
    header = json.loads((made / "run.json").read_text())
    (made / "run.json").write_text(json.dumps(header | odd | {"plan": header["plan"] | odd["plan"]}))
    events = [{key: value for key, value in e.items() if key not in ("line", "crc")} for e in journal.events(made)]
    events[0] |= {"round": True, "step": 5}
    at = next(i for i, event in enumerate(events) if event["kind"] == "step.start")
    events[at] |= {"round": 1 << 80}
    events[at + 1] |= {"round": None}
    cut = {"kind": "session.judged", "judged": True, "cut": float("inf"), "off_s": float("nan"), "findings": 5}
    synthetic_run.seal(made, [*events[:-1], {"t_ns": events[-1]["t_ns"], **cut}, events[-1]])
    where = place.open_place(str(tmp_path / "lake"))
    write.export(made, where, export.lab_of(made))
    (row,) = asked(read.look(where), "SELECT plan, variant, host, fio, why FROM run")
    assert row["plan"] == "consistency" and {row["variant"], row["host"], row["why"]} == {None}
    (row,) = asked(read.look(where), "SELECT cut, off_s FROM cut")
    assert row == {"cut": None, "off_s": None}


class Bucket:
    """A file system that, as S3 does, has an object from the moment its stream is closed, whatever is in it, and
    refuses where `down`."""

    def __init__(self):
        self.objects: dict[str, bytes] = {}
        self.down = False

    def open_output_stream(self, path: str):
        return Upload(self, path)

    def delete_file(self, path: str) -> None:
        del self.objects[path]


class Upload(io.BytesIO):
    def __init__(self, bucket: Bucket, path: str):
        super().__init__()
        self.bucket, self.path = bucket, path

    def close(self) -> None:
        if not self.closed:
            if self.bucket.down:
                raise OSError("503 Slow Down")
            self.bucket.objects[self.path] = self.getvalue()
        super().close()


@pytest.fixture
def bucket():
    made = Bucket()
    return made, place.Place(made, "lake", False, "s3://lake")


def put(where, name: str, *pieces) -> None:
    with where.writing(name) as f:
        for piece in pieces:
            if isinstance(piece, BaseException):
                raise piece
            f.write(piece)


def test_a_bucket_that_fails_keeps_what_it_had(bucket):
    of, where = bucket
    put(where, "run", b"old")
    of.down = True
    with pytest.raises(JournalError):
        put(where, "run", b"new")
    assert of.objects == {"lake/run": b"old"}
    of.down = False
    put(where, "run", b"new")
    assert of.objects == {"lake/run": b"new"}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device"), ValueError()])
def test_what_ends_in_the_middle_is_never_in_a_bucket(bucket, error, monkeypatch):
    of, where = bucket
    put(where, "run", b"old")
    seen = []
    closing = Upload.close
    monkeypatch.setattr(Upload, "close", lambda self: (closing(self), seen.append({**of.objects})))
    with pytest.raises((type(error), JournalError)):
        put(where, "run", b"half", error)
    with pytest.raises((type(error), JournalError)):
        put(where, "another", b"half", error)
    assert of.objects == {"lake/run": b"old"} and not any(b"half" in objects.values() for objects in seen)


@pytest.mark.parametrize(("parts", "there"), [(1, True), (2, False)])
def test_of_several_parts_whose_end_is_not_confirmed_none_is_left(bucket, monkeypatch, parts, there):
    """One part is there whole, or not at all."""
    of, where = bucket
    monkeypatch.setattr(place, "PART_BYTES", 2)
    closing = Upload.close

    def unconfirmed(self):
        if not self.closed:
            closing(self)
            raise OSError("timed out")

    monkeypatch.setattr(Upload, "close", unconfirmed)
    with pytest.raises(JournalError):
        put(where, "run", b"xx" * parts)
    assert ("lake/run" in of.objects) is there


def test_two_labs_that_export_one_run_at_once_do_not_both_have_it(tmp_path, monkeypatch):
    """Each looks before the other has written: then neither has it, says so, and the next one gets it."""
    made, where = run(tmp_path, "made", [500]), place.open_place(str(tmp_path / "lake"))
    earlier, labs = write.earlier, ["rome"]

    def meanwhile(*words):
        digest = earlier(*words)
        if labs:
            write.export(made, where, labs.pop())
        return digest

    monkeypatch.setattr(write, "earlier", meanwhile)
    with pytest.raises(UsageError, match="of lab rome"):
        write.export(made, where, "berlin")
    assert counts(read.look(where))["run"] == 1 and counts(read.look(where))["event"] > 0
    assert not write.export(made, where, "rome").new


def test_a_run_that_is_resumed_while_it_is_exported_is_one_error(tmp_path, monkeypatch):
    """The figures would be of a part that was not there when the export began; it was a traceback."""
    made, digest_of = run(tmp_path, "made", [500, 500], first_io=True), write.digest_of

    def meanwhile(*words):
        digest, part = digest_of(*words), made / "part-2"
        if not part.exists():
            run(tmp_path, "later", [400, 400], first_io=True).rename(part)
            header = json.loads((made / "run.json").read_text())
            (part / "run.json").write_text(json.dumps(header | {"resumed": {"part": 2}}))
        return digest

    monkeypatch.setattr(write, "digest_of", meanwhile)
    where = place.open_place(str(tmp_path / "lake"))
    with pytest.raises(JournalError, match="changed meanwhile"):
        write.export(made, where, "berlin")
    assert not [path for path in (tmp_path / "lake").rglob("*") if path.is_file()]
    assert write.export(made, where, "berlin").new


@pytest.mark.parametrize(("words", "code"), [("export {}/runs --parquet {}/lake", 8), ("runs {}/runs --figures", 0)])
def test_a_run_that_goes_away_meanwhile_hides_none_of_the_others(tmp_path, monkeypatch, capsys, words, code):
    runs = tmp_path / "runs"
    runs.mkdir()
    gone, stays = run(runs, "1", [500], later_s=0), run(runs, "2", [500], later_s=9)

    def meanwhile(folder, *_):
        if folder == gone and gone.exists():
            gone.rename(tmp_path / "elsewhere")

    monkeypatch.setattr(reduced.samples, "need_some", meanwhile)
    assert cli.main(words.format(tmp_path, tmp_path).split()) == code
    done = (stays / "figures.json").exists() or counts(read.look(place.open_place(str(tmp_path / "lake"))))["run"]
    assert "No such file" in capsys.readouterr().err and done


@pytest.mark.parametrize("name", ["points.cursor", "figures.json", "summary.bin"])
def test_what_another_command_writes_meanwhile_is_no_change_of_the_run(tmp_path, monkeypatch, name):
    """As `push` writes its place for each batch: for a moment the file lies there under a name of its own."""
    made, made_of = run(tmp_path, "made", [500]), write._written
    where, key = place.open_place(str(tmp_path / "lake")), summary._key(made)

    def meanwhile(*words):
        (made / f".{name}.part").write_bytes(b"half")
        return made_of(*words)

    monkeypatch.setattr(write, "_written", meanwhile)
    assert write.export(made, where, "berlin").new
    assert not write.export(made, where, "berlin").new and summary._key(made) == key
