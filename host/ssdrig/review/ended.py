"""What a review came to, once its last plan has ended."""

import json

from ssdrig.progress import Progress
from ssdrig.review import book
from ssdrig.review.book import Review


def told(review: Review, args, show: Progress, code: int) -> int:
    """Says which plans were run, and how to go on where some were not. Returns the exit code."""
    done = book.done(review)
    if args.json:
        print(json.dumps(as_json(review, code)), flush=True)
    left = [each.name for each in review.plans if not each.why and not done[each.name].complete]
    for name in left:
        show.warn(f"{name}: {done[name].state}{f', {done[name].why}' if done[name].why else ''}")
    if left:
        show.warn(f"go on with: ./ssdrig review --resume {review.folder}")
    else:
        show.say(f"complete: {sum(one.complete for one in done.values())} plans")
    show.say(f"review folder: {review.folder}")
    return code


def as_json(review: Review, code: int) -> dict:
    """{"review", "level", "exit_code", "plans": [{"plan", "run", "state", "why"}]}."""
    done = book.done(review)
    plans = [
        {"plan": name, "run": str(one.run) if one.run else None, "state": one.state, "why": one.why}
        for name, one in done.items()
    ]
    return {"review": str(review.folder), "level": review.said["level"], "exit_code": code, "plans": plans}
