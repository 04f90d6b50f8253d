"""For tests: hardware/spice/simulate.py, and a committed picture against one that it makes now."""

import importlib.util
import re
import sys

import pytest
from conftest import ROOT

SPICE = ROOT / "hardware/spice"
NEAR_PIXELS, BESIDE = 3, 2
NUMBER = r"-?\d+(?:\.\d+)?"


def simulator():
    """simulate.py, loaded anew: a test may put something else in its place."""
    if str(SPICE) not in sys.path:
        sys.path.append(str(SPICE))
    spec = importlib.util.spec_from_file_location("simulate", SPICE / "simulate.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def curves(svg):
    return [
        [tuple(map(float, point.split(","))) for point in line.split()]
        for line in re.findall(r'polyline points="([^"]+)"', svg)
    ]


def frame(svg) -> tuple[list[str], str, list[float]]:
    """All but the curves: the texts, the drawing around them, and the numbers in that."""
    rest = re.sub(r'points="[^"]+"', "", svg)
    drawn = re.sub(r">[^<]*<", "><", rest)
    return re.findall(r">([^<]*)<", rest), re.sub(NUMBER, "#", drawn), list(map(float, re.findall(NUMBER, drawn)))


def compare(simulate, study):
    """AssertionError if the committed picture of the study is another than `simulate` makes. Another version of ngspice
    rings by some per mille more or less, which moves the lines of a scale with it."""
    committed, made = (simulate.HERE / f"{study}.svg").read_text(), simulate.picture(study)
    (*words, numbers), (*made_words, made_numbers) = frame(committed), frame(made)
    assert words == made_words and numbers == pytest.approx(made_numbers, abs=1)
    assert len(curves(made)) == made.count("<polyline") > 0
    for old, new in zip(curves(committed), curves(made), strict=True):
        apart = sorted(abs(a[1] - b[1]) for a, b in zip(old, new, strict=True))
        assert apart[int(0.98 * len(apart))] <= NEAR_PIXELS
        assert alike(old, new)


def alike(old, new) -> bool:
    """Whether all points of two curves lie on each other but one, at which a step may be sampled elsewhere."""
    return max(len(outside(old, new)), len(outside(new, old))) <= 1


def outside(curve, other):
    """The points of a curve that lie off another's, where a step or a peak may lie BESIDE points to its side."""
    heights = [y for _, y in other]
    near = [heights[max(0, i - BESIDE) : i + BESIDE + 1] for i in range(len(heights))]
    return [
        at
        for at, span in zip(curve, near, strict=True)
        if not min(span) - NEAR_PIXELS <= at[1] <= max(span) + NEAR_PIXELS
    ]
