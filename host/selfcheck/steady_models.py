"""Is the rule that ends a load past the cliff, and not much later than need be? Models of drives, which share no code
with the rule, write at a fresh level until their spare area is used up, then at one or two other levels; an oracle that
knows the last level says how much had to be written. The models are drawn from wide ranges: those that the rule's
constants were chosen on from one seed, those that are checked here from another."""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import selfcheck
from selfcheck import Figure, at_least, at_most, exactly
from ssdrig.plan import values
from ssdrig.plan.rules import ends
from ssdrig.plan.rules.spare import Spare

TUNED_ON, CHECKED_ON = 1, 20_261_128  # seeds
MODELS = 400
GB, GIB = 1e9, 1 << 30
BLOCK = 4096
RECORD_S = 60
LEVEL = 0.05  # of the last level: within it the oracle calls it reached
SEEN = 0.7  # a fall to less of the fresh level is seen by any rule that looks for one
REVIEWED = (  # GB sold, GiB of raw NAND: drives of the reviews
    (200, 336),  # Micron P400m
    (480, 768),  # M500DC
    (800, 1024),
    (240, 256),  # Atlas, X300s, Seagate 600 and 600 Pro: by the next power of two
    (256, 256),
    (480, 512),
    (400, 512),
)
UNTIL = values.until([{"steady": "pts", "value": "iops"}], "until")
STEP_S = 30  # the rule is asked so often
LARGE_GB = (1000, 4000, 30_000)


@dataclass(frozen=True)
class Model:
    """A drive after a sequential fill: 4 KiB random writes per second as a function of what was written. Bytes, and
    shares of the fresh level. `plateau`: bytes until the spare area is used up; `dip`: level and bytes of a recovery
    after the first drop; `ramp`: bytes in which the difference to the last level falls to 1/e."""

    name: str
    capacity: float
    raw: float
    plateau: float
    fresh_iops: float
    last: float
    dip: tuple[float, float] | None
    ramp: float
    cache: tuple[float, float]  # bytes of an SLC cache, its level
    noise: float
    stalls: tuple[float, float, float]  # every s, lasting s, level
    hiccup: tuple[float, float, float]  # at bytes of the plateau, lasting s, level
    raw_known: bool
    seed: int

    @property
    def kind(self) -> str:
        return "recovery" if self.dip else "ramp" if self.ramp else "two levels"

    @property
    def evidence(self) -> bool:
        """Whether anything says that the spare area is used up, before two drive writes do."""
        return self.raw_known or max(self.last, self.dip[0] if self.dip else 0) < SEEN

    @property
    def held(self) -> float:
        """Share of the level that its stalls leave."""
        every, lasting, low = self.stalls
        return 1 - (1 - low) * min(1.0, lasting / every) if every else 1.0

    @property
    def settled(self) -> float:
        """Bytes after which the level is within LEVEL of the last one."""
        if self.dip:
            return self.plateau + self.dip[1]
        first = 1 - self.last
        return self.plateau + (self.ramp * max(0.0, math.log(first / (LEVEL * self.last))) if self.ramp else 0)

    def level(self, wrote: float, t: int) -> float:
        """Once so much is written; `t`: seconds since the hiccup began, below 0 before."""
        if wrote < self.cache[0]:
            return self.cache[1]
        if wrote < self.plateau:
            return self.hiccup[2] if 0 <= t < self.hiccup[1] else 1.0
        if self.dip and wrote < self.plateau + self.dip[1]:
            return self.dip[0]
        if self.ramp:
            return self.last + (1 - self.last) * math.exp(-(wrote - self.plateau) / self.ramp)
        return self.last

    def seconds(self) -> Iterator["np.ndarray"]:
        """I/Os of each second, STEP_S at a time."""
        chance, wrote, t, hiccup_s = np.random.default_rng(self.seed), 0.0, 0, -1
        every, lasting, low = self.stalls
        while True:
            iops = self.fresh_iops * chance.lognormal(-(self.noise**2) / 2, self.noise, STEP_S)
            for i in range(STEP_S):
                if hiccup_s >= 0 or wrote > self.hiccup[0]:
                    hiccup_s += 1
                iops[i] *= self.level(wrote, hiccup_s)
                if every and (t + i) % every < lasting and wrote > self.cache[0]:
                    iops[i] *= low
                wrote += iops[i] * BLOCK
            t += STEP_S
            yield iops


def drawn(seed: int, count: int) -> Iterator[Model]:
    """Models; what they have in common with each other is only the ranges."""
    chance = random.Random(seed)
    for i in range(count):
        if i % 2:
            gb, gib = chance.choice(REVIEWED)
            capacity, raw = gb * GB, gib * float(GIB)
        else:
            either = (chance.choice(LARGE_GB), math.exp(chance.uniform(math.log(120), math.log(32_000))))
            capacity = chance.choice(either) * GB
            raw = capacity / (1 - chance.uniform(0.07, 0.50))
        spare = raw - capacity
        last = chance.uniform(0.1, 0.65) if spare < 0.2 * capacity else chance.uniform(0.15, 0.95)
        taken = chance.uniform(0, 0.3) if spare > 0.1 * capacity and last < SEEN else 0  # by firmware
        plateau = spare * (1 - taken)
        most_MBps = 500 if capacity < GB * 1000 and chance.random() < 0.7 else 3000
        fresh = math.exp(chance.uniform(math.log(80e6), math.log(most_MBps * 1e6))) / BLOCK
        fresh = max(fresh, plateau / BLOCK / 10_000)  # the plateau lasts at most 3 h
        fresh = min(fresh, max(plateau / BLOCK / 120, 20_000))  # and two minutes at least
        dip, ramp, kind = None, 0.0, chance.random()
        if kind < 0.33:
            dip = last * chance.uniform(0.4, 0.85), plateau * chance.uniform(0.03, 1.0)
        elif kind < 0.55:
            ramp = plateau * chance.uniform(0.02, 0.5)
        cache = chance.choice(((0.0, 1.0), (capacity * chance.uniform(0.002, 0.03), chance.uniform(1.3, 4.0))))
        stalls = (0.0, 0.0, 1.0)
        if chance.random() < 0.5:
            stalls = (chance.randint(15, 300), chance.randint(1, 12), chance.uniform(0.05, 0.6))
        hiccup = (math.inf, 0.0, 1.0)
        if chance.random() < 0.25:
            hiccup = (plateau * chance.uniform(0.3, 0.95), chance.randint(10, 120), chance.uniform(0.2, 0.7))
        yield Model(
            f"{round(capacity / GB)} GB of {round(raw / GIB)} GiB",
            capacity,
            raw,
            plateau,
            fresh,
            last,
            dip,
            ramp,
            (min(cache[0], 0.5 * plateau), cache[1]),
            chance.uniform(0.01, 0.3),
            stalls,
            hiccup,
            chance.random() < 0.5,
            chance.getrandbits(32),
        )


@dataclass(frozen=True)
class Course:
    """What became of a model: bytes at which the rule and the oracle ended it; `fresh`: the rule
    ended it on the fresh plateau; `level`: what the rule called steady, over the last level."""

    model: Model
    ended: float
    oracle: float
    fresh: bool
    level: float | None

    @property
    def excess_percent(self) -> float:
        return 100 * (self.ended / self.oracle - 1)


def run(model: Model, until=UNTIL) -> Course:
    """One model until the rule holds, or far beyond."""
    raw = round(model.raw) if model.raw_known else None
    watch = ends.Watch(until, round(model.capacity), Spare(round(model.capacity), raw, round(model.capacity)))
    counts = np.empty(0)
    oracle, ended, fresh, level = 0.0, 0.0, False, None
    most = 1.3 * (model.capacity + model.settled) + 900 * model.fresh_iops * BLOCK
    for more in model.seconds():
        counts = np.concatenate([counts, more])
        edges = np.concatenate([[0.0], np.cumsum(counts)]) * BLOCK
        settled = int(np.searchsorted(edges, model.settled)) + 5 * RECORD_S
        if not oracle and settled < len(edges):
            oracle = float(edges[settled])
        if not ended and watch.met(counts, round(edges[-1])):
            ended, fresh = float(edges[-1]), bool(edges[-1] < model.plateau)
            level = watch.verdict["average"] / (model.fresh_iops * model.last * model.held)
        if oracle and (ended or edges[-1] > most):
            return Course(model, ended or float(edges[-1]), oracle, fresh, level)
    raise AssertionError("a model has no last second")


def courses(seed: int, count: int) -> list[Course]:
    return [run(model) for model in selfcheck.in_turn(list(drawn(seed, count)), "steady-models")]


def steady_models() -> list[Figure]:
    courses_ = courses(CHECKED_ON, MODELS)
    seen = [course for course in courses_ if course.model.evidence]
    excess = np.array([course.excess_percent for course in seen])
    right = [course.level is not None and abs(course.level - 1) <= 0.2 for course in courses_ if not course.model.dip]
    distinct = len({course.model.name for course in courses_})
    return [
        at_least("different drives", distinct, "", 0.5 * MODELS),
        exactly("verdicts on the fresh plateau", sum(course.fresh for course in courses_), "", 0),
        exactly("models that never were steady", sum(course.level is None for course in courses_), "", 0),
        at_most("more writing than the oracle, worst of 95 %", float(np.percentile(excess, 95)), "%", 25),
        at_least("steady level within 20 % of the last", 100 * sum(right) / len(right), "% of models", 95),
    ]


BENCHES = {"steady-models": ("the rule ends a load past the cliff, and soon", steady_models)}
