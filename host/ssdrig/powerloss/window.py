"""How long a drive keeps acknowledged writes in its volatile cache: from the age of each at the cut, and whether it was
lost. A drive that writes its cache out after a rest loses younger data and keeps older data."""

from typing import NamedTuple

import numpy as np


class Window(NamedTuple):
    """`window_ms`: the age that parts lost writes from kept ones with the fewest exceptions; `wrong`: their share.
    `longest_ms`: age of the oldest write that was lost. None where nothing was lost, or nothing kept; `why`."""

    window_ms: float | None
    longest_ms: float | None
    wrong: float | None
    writes: int
    why: str = ""


def window(age_ms, lost) -> Window:
    """age_ms: of acknowledged writes without FUA that no FLUSH covered, at their cut; lost: which are gone."""
    age_ms, lost = np.asarray(age_ms, float), np.asarray(lost, bool)
    if not lost.any():
        return Window(None, None, None, len(lost), "no acknowledged write was lost")
    longest = float(age_ms[lost].max())
    if lost.all():
        return Window(None, longest, None, len(lost), "no write was old enough to be kept")
    order = np.argsort(age_ms, kind="stable")
    ages, gone = age_ms[order], lost[order]
    # with the first k called lost: those of them that were kept, and of the others that were lost
    wrong = np.concatenate([[0], np.cumsum(~gone)]) + np.concatenate([np.cumsum(gone[::-1])[::-1], [0]])
    best = np.flatnonzero(wrong == wrong.min())
    k = int(best[len(best) // 2])
    low, high = ages[max(0, k - 1)], ages[min(k, len(ages) - 1)]
    return Window(float(low + high) / 2, longest, float(wrong.min()) / len(lost), len(lost))
