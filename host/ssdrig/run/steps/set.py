"""set: change what the drive or the host is set to; the teardown puts it back, or, where the process is killed before,
the run's continuation (standing.changed) or the user (drive/unrestored.py)."""

from ssdrig.base.errors import DriveError, words_of
from ssdrig.drive import unrestored
from ssdrig.runs import parts


def carry_out(act, stage, number: int) -> dict:
    """Set each, verify it. The earlier value is in the journal and a duty of the teardown first."""
    for key, value in act.keys.items():
        before = stage.bench.setting(key)
        stage.book.event("set", key=key, value=value, before=before)
        try:
            unrestored.note(stage.bench.drive, parts.root(stage.book.path), key, before)
        except DriveError as error:  # the journal alone has the value then
            stage.book.event("note", text=words_of(error))
        stage.teardown.push(f"put {key} back", lambda key=key, before=before: put_back(stage, key, before))
        stage.bench.change(key, value)
    return {}


def put_back(stage, key: str, before: list[str]) -> None:
    """Undo a change and report it."""
    stage.bench.put_back(key, before)
    stage.book.event("put_back", key=key, value=before)
    unrestored.restored(stage.bench.drive, key, before)
