"""The reviews of an archive: the plans of each, how far it is, and what its page is made of."""

from pathlib import Path

from ssdrig.base import files
from ssdrig.base.errors import SsdrigError
from ssdrig.base.terminal import printable
from ssdrig.reading import index, review_folder
from ssdrig.reading.review_folder import Done, Planned, Review
from ssdrig.runs import parts
from ssdrig.serve.pages import stamp

MOST_REVIEWS = 50
Rows = dict[str, tuple[tuple, dict]]  # id -> what a row was made of, and the row


def folders(root: Path) -> dict[str, Path]:
    """The latest MOST_REVIEWS review folders of an archive by their id, the latest first. A link is none of them: it
    may lead out of the archive. Raises OSError.

    root: of the archive"""
    paths = [
        path
        for path in root.iterdir()
        if not path.name.startswith(".") and not path.is_symlink() and (path / parts.REVIEW).is_file()
    ]
    latest = sorted(paths, key=lambda path: path.name, reverse=True)[:MOST_REVIEWS]
    return {index.id_of(path.name): path for path in latest}


def listed(root: Path, rows: Rows) -> list[dict]:
    """[{"id", "folder", "model", "serial", "simulated", "level", "started_utc_ms", "state", "complete", "of", "plans":
    [{"name", "state", "why", "run"}], "why"}] of folders(root). `state`: running, complete or interrupted; of a folder
    that cannot be read unreadable, with the reason in `why`; `of`: plans to run; `run`: id of the plan's run.

    rows: those of earlier calls, which are made again when a run of theirs changes"""
    reviews = []
    for review_id, folder in folders(root).items():
        running = files.is_locked(folder / "lock")
        try:
            made_of = (
                running,
                *((run.name, *stamp(run), files.is_locked(run / "lock")) for run in parts.all_runs(folder)),
            )
            if rows.get(review_id, (None,))[0] != made_of:
                review = review_folder.read(folder)
                rows[review_id] = made_of, _row(root, review, review_folder.done(review), running)
            row = rows[review_id][1]
        except (SsdrigError, OSError) as error:
            row = {"state": "unreadable", "why": printable(str(error)), "plans": []}
        reviews.append({"id": review_id, "folder": printable(str(folder))} | row)
    return reviews


def _row(root: Path, review: Review, done: dict[str, Done], running: bool) -> dict:
    drive, plans = review.document["drive"], [plan for plan in review.plans if not plan.why]
    complete = sum(done[plan.name].complete for plan in plans)
    started = review.document.get("started") or {}
    return {
        "model": drive.get("model"),
        "serial": drive.get("serial"),
        "simulated": bool(drive.get("preset")),
        "level": review.document["level"],
        "started_utc_ms": (started.get("utc_ns") or 0) // 10**6 or None,
        "state": "running" if running else "complete" if complete == len(plans) else "interrupted",
        "why": None,
        "complete": complete,
        "of": len(plans),
        "plans": [_plan(root, plan, done[plan.name], running) for plan in review.plans],
    }


def _plan(root: Path, plan: Planned, done: Done, running: bool) -> dict:
    to_come = running and not done.run and not plan.why
    state, why = ("to come", None) if to_come else (done.state, done.why)
    return {"name": plan.name, "state": state, "why": why, "run": _run_id(root, done.run)}


def _run_id(root: Path, run: Path | None) -> str | None:
    return index.id_of(str(run.relative_to(root))) if run else None
