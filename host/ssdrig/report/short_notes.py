"""The notes of a run as the terminal shows them: the percentiles that a run is too short for are one line."""

import re
from collections.abc import Iterable

from ssdrig.views.terms import BY_KEY

TOO_SHORT = re.compile(r"(?:^|: )(\w+): \d+ (?:s|I/Os) are too few for this percentile")


def of(notes: Iterable[str]) -> list[str]:
    """The notes in their order, then the line; the page and --json have each of them."""
    others, labels = [], []
    for note in notes:
        if match := TOO_SHORT.search(note):
            labels.append(BY_KEY[match[1]].label if match[1] in BY_KEY else match[1])
        else:
            others.append(note)
    if labels:
        others.append(f"not shown, the run is too short for them: {'; '.join(dict.fromkeys(labels))}")
    return others
