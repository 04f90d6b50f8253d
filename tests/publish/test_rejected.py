"""rejected.jsonl: what nobody of ours wrote there, and copies of a folder."""

import os

import pytest

from ssdrig.publish.influx.link import Answer
from ssdrig.publish.influx.outbox import Outbox
from ssdrig.publish.influx.sender import Rejected

ANSWER = Answer(400, "no")


@pytest.mark.parametrize(
    "line", [b"[" * 200_000, b'{"to": "a"}', b'{"to": "a", "line": NaN}', b"9" * 5000, b"\xff", b"null", b'"to"']
)
def test_line_that_is_no_entry_ends_nothing(tmp_path, line):
    (tmp_path / "rejected.jsonl").write_bytes(line + b"\n")
    rejected = Rejected(tmp_path, "a")
    assert rejected.add(b"power x=1 1\n", ANSWER) == 1
    assert Rejected(tmp_path, "a").holds(b"power x=1 1") and rejected.forget() >= 1


def test_push_of_a_copy_of_hard_links_leaves_the_run_it_was_made_of(tmp_path):
    """`cp -al runs backup`: both folders have the same files."""
    names = ("points.lp", "rejected.jsonl")
    run, copy = tmp_path / "run", tmp_path / "copy"
    for folder in (run, copy):
        folder.mkdir()
    with Outbox(run) as outbox:
        outbox.append(b"power x=1 1\n")
    Rejected(run, "a").add(b"power x=1 1\n", ANSWER)
    before = {name: (run / name).read_bytes() for name in names}
    for name in names:
        os.link(run / name, copy / name)
    with Outbox(copy) as outbox:
        outbox.append(b"power x=2 2\n")
    Rejected(copy, "a").add(b"power x=2 2\n", ANSWER)
    assert {name: (run / name).read_bytes() for name in names} == before
    assert (copy / "points.lp").read_bytes() == b"power x=1 1\npower x=2 2\n"
    assert os.stat(copy / "points.lp").st_mode & 0o777 == 0o600 and len(Rejected(copy, "a")) == 2
