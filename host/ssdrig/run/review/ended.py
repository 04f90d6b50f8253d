"""What a review came to, once its last plan has ended: its page, and how to go on where something is left."""

import json
from pathlib import Path

from ssdrig.base.errors import INTERRUPTED, words_of
from ssdrig.base.progress import Progress
from ssdrig.base.words import size
from ssdrig.reading import review_folder
from ssdrig.reading.review_folder import Review
from ssdrig.report import review_page
from ssdrig.run.teardown import Stop


def told(review: Review, args, show: Progress, code: int, stop: Stop) -> int:
    """Make the page, unless a signal has stopped the review or stops it now; print the plans that ran, and how to
    continue where some were not. Returns the exit code."""
    done, asked = review_folder.done(review), stop.count
    page = None if code == INTERRUPTED else _page(review, args, show, stop)
    code = code or INTERRUPTED * (stop.count > asked)
    if args.json:
        print(json.dumps(as_json(review, code, page)), flush=True)
    left = [planned.name for planned in review.plans if not planned.why and not done[planned.name].complete]
    for name in left:
        show.warn(f"{name}: {done[name].state}{f', {done[name].why}' if done[name].why else ''}")
    if left:
        show.warn(f"go on with: ./ssdrig review --resume {review.folder}")
    else:
        show.say(f"complete: {sum(one.complete for one in done.values())} plans")
    show.say(f"review folder: {review.folder}\nreport:        ./ssdrig report {review.folder}")
    return code


def _page(review: Review, args, show: Progress, stop: Stop) -> Path | None:
    """All of the review is in its folder by now, so nothing that goes wrong here is its. A signal ends it."""
    out = Path(args.out or review.folder / "report.html")
    show.show("the page")
    try:
        with stop.next_raises("the page"):
            review_page.write(review.folder, None if args.against is None else list(map(Path, args.against)), out)
    except KeyboardInterrupt:
        show.warn(f"page: stopped by {stop.name}; make it with ./ssdrig report {review.folder}")
        return None
    except Exception as error:
        show.warn(f"page: not to be had, {words_of(error)}; make it with ./ssdrig report {review.folder}")
        return None
    show.say(f"page: {out.resolve()} ({size(out.stat().st_size)})")
    return out


def as_json(review: Review, code: int, page: Path | None) -> dict:
    """{"review", "level", "exit_code", "page", "plans": [{"plan", "run", "state", "why"}]}."""
    done = review_folder.done(review)
    plans = [
        {"plan": name, "run": str(one.run) if one.run else None, "state": one.state, "why": one.why}
        for name, one in done.items()
    ]
    document = {"review": str(review.folder), "level": review.said["level"], "exit_code": code}
    return document | {"page": str(page) if page else None, "plans": plans}
