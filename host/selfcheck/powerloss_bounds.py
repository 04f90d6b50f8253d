"""What power-loss campaigns may claim: the bound on the chance per cut, and the rules that end a campaign, tried on
simulated campaigns whose true chance is known."""

from collections.abc import Callable, Sequence

import numpy as np

from selfcheck import Figure, at_least, at_most, exactly
from ssdrig.plan.rules import chance as statistics
from ssdrig.plan.rules.chance import Stop, Wald
from ssdrig.powerloss.campaign import WHOLE_EVERY, damage_spreads

CAMPAIGNS = 10_000
CUTS = (60, 299, 599)  # of a campaign, set beforehand
LOWEST, HIGHEST = 0.001, 0.1  # the true chance per cut
CUT_SHARE = 0.95  # of the sessions
LIMIT = 0.01  # of `--until`
MOST_CUTS, MOST_FAILING = 3000, 24  # of a campaign with a stop rule
NEEDED = {0.95: (299, 473, 628, 773), 0.99: (459, 662, 838, 1001)}  # Clopper-Pearson, p < 1 %, 0 to 3 failing


def covered(campaigns: int = CAMPAIGNS, seed: int = 1) -> float:
    """The share, in %, of campaigns whose bound is not below their true chance, drawn log-uniformly."""
    rng = np.random.default_rng(seed)
    true = np.exp(rng.uniform(np.log(LOWEST), np.log(HIGHEST), campaigns))
    cuts = rng.choice(CUTS, campaigns)
    failing = rng.binomial(cuts, true)
    bounds = [statistics.upper_bound(int(k), int(n)) for k, n in zip(failing, cuts, strict=True)]
    return 100 * float((np.array(bounds) >= true).mean())


def worst_covered() -> float:
    """The least coverage in %, exactly, of every number of cuts and of 200 true chances: no luck in it."""
    least = 1.0
    for cuts in CUTS:
        bounds = np.array([statistics.upper_bound(k, cuts) for k in range(cuts + 1)])
        for true in np.geomspace(LOWEST, HIGHEST, 200):
            low = int((bounds < true).sum())  # failing cuts whose bound does not cover
            least = min(least, 1.0 - (statistics.at_most(low - 1, cuts, float(true)) if low else 0.0))
    return 100 * least


def chance_of(word: str, ruling: Callable[[int, int], str | None], true: float) -> float:
    """The chance in %, exactly, that a campaign without other end ends with `word` within MOST_CUTS: its failing cuts
    are followed from cut to cut."""
    going_on, ended = np.zeros(MOST_FAILING + 1), 0.0
    going_on[0] = 1.0
    for n in range(1, MOST_CUTS + 1):
        going_on[1:] = (1 - true) * going_on[1:] + true * going_on[:-1]
        going_on[0] *= 1 - true
        for k in np.flatnonzero(going_on > 1e-15):
            verdict = ruling(int(k), n) if k <= n else None
            ended += going_on[k] if verdict == word else 0.0
            going_on[k] *= verdict is None
    return 100 * ended


def until(looks: Sequence[int]) -> Callable[[int, int], str | None]:
    """The ruling of a campaign that ends after so many cuts with 0, 1, 2 ... failing ones."""
    return lambda failing, cuts: "below" if failing < len(looks) and cuts >= looks[failing] else None


def peeking(chance: float) -> tuple[int, ...]:
    """The rule that ends as soon as the bound of a fixed number of cuts is low enough: what must not be done."""
    return tuple(statistics.cuts_needed(chance, k) for k in range(statistics.MOST_FAILING))


def until_covered(limit: float, most_cuts: int, bound: Callable[..., float] = statistics.bound_at_end) -> float:
    """The least coverage in %, exactly, of the bound stated at the end of a campaign that ends by looks(limit), or
    after most_cuts: of 60 true chances around the limit."""
    stops, least = statistics.looks(limit), 1.0
    for true in np.geomspace(limit / 3, 3 * limit, 60):
        going_on, missed = np.zeros(MOST_FAILING + 1), 0.0
        going_on[0] = 1.0
        for n in range(1, most_cuts + 1):
            going_on[1:] = (1 - true) * going_on[1:] + true * going_on[:-1]
            going_on[0] *= 1 - true
            for k in np.flatnonzero(going_on > 1e-12) if n in stops or n == most_cuts else ():
                if n == most_cuts or n >= stops[k]:
                    missed += going_on[k] * (bound(int(k), n, stops) < true)
                    going_on[k] = 0.0
        least = min(least, 1.0 - missed)
    return 100 * least


def first_covered(true: float, campaigns: int = CAMPAIGNS, seed: int = 4) -> float:
    """The share of campaigns, in %, that end at their first failing cut or after 599, and whose bound covers."""
    rng = np.random.default_rng(seed)
    at = rng.geometric(true, campaigns)
    bounds = [statistics.upper_bound(int(n <= CUTS[-1]), int(min(n, CUTS[-1]))) for n in at]
    return 100 * float((np.array(bounds) >= true).mean())


def censored(campaigns: int = CAMPAIGNS, seed: int = 6) -> tuple[float, float, int]:
    """Campaigns in which the damage of a failing cut is read after it with some chance, else with all of the window:
    (share in %, whose bound covers; the mean width of what was found, most less least; campaigns that count more or
    fewer failing cuts than there were)."""
    rng = np.random.default_rng(seed)
    cover, width, wrong = 0, 0, 0
    for _ in range(campaigns):
        true, read = float(np.exp(rng.uniform(np.log(LOWEST), np.log(HIGHEST)))), float(rng.random())
        sessions, tally, failing, cuts = int(rng.choice(CUTS)), statistics.Failing(), 0, 0
        broken, whole, hidden = 0, 0, False
        for number in range(1, sessions + 1):
            cut = bool(rng.random() < CUT_SHARE)
            fails = cut and rng.random() < true
            seen = fails and rng.random() < read
            failing, cuts, hidden = failing + bool(fails), cuts + cut, hidden or bool(fails and not seen)
            of_it = number % WHOLE_EVERY == 0 or number == sessions
            of_it = of_it or damage_spreads(int(seen), broken)
            first = number if seen else whole + 1
            interval = (first, number, whole + 1 if hidden and of_it else number) if seen or hidden and of_it else None
            tally.add(number, cut, cut, interval)
            broken += interval is not None
            whole, hidden = (number, False) if of_it else (whole, hidden)
        cover += statistics.upper_bound(tally.most, cuts) >= true
        width += tally.most - tally.least
        wrong += not tally.least <= failing <= tally.most
    return 100 * cover / campaigns, width / campaigns, wrong


def bounds() -> list[Figure]:
    wrong = sum(
        statistics.cuts_needed(LIMIT, k, confidence) != cuts
        for confidence, row in NEEDED.items()
        for k, cuts in enumerate(row)
    )
    clean, wald = Stop(until=LIMIT), Wald()
    peeked = chance_of("below", until(peeking(LIMIT)), LIMIT)
    covers, width, wrong_counts = censored()
    return [
        at_least(f"campaigns of {CAMPAIGNS} whose bound covers the true chance", covered(), "%", 95),
        at_least("the least coverage of 600 chances and sizes, exactly", worst_covered(), "%", 95),
        at_least("the same where damage is found some cuts later", covers, "%", 95),
        *(
            at_least(f"coverage of the bound of `--until p<1%`, {n} cuts at most", until_covered(LIMIT, n), "%", 95)
            for n in (400, CUTS[-1], 1000)
        ),
        Figure("of these: most less least failing cuts, mean", width, "cuts", "for comparison", True),
        exactly("of these: campaigns whose failing cuts are not from least to most", wrong_counts, "campaigns", 0),
        exactly("cuts needed that differ from 299/473/628/773 and 459/662/838/1001", wrong, "numbers", 0),
        at_most("Wald's test rejects a drive of 0.1 %", chance_of("reject", wald.ruling, wald.good), "%", 5),
        at_most("Wald's test accepts a drive of 1 %", chance_of("accept", wald.ruling, wald.bad), "%", 5),
        at_most(
            "`--until p<1%` claims it of a drive of 1 %",
            chance_of("below", until(statistics.looks(LIMIT)), LIMIT),
            "%",
            5,
        ),
        Figure("the same if it looked after every cut", peeked, "%", "for comparison", True),
        Figure(
            "clean cuts that `--until p<1%` takes",
            float(next(n for n in range(1, 1000) if clean.why(0, n))),
            "cuts",
            "for comparison",
            True,
        ),
        at_least("`--stop first`: bounds that cover a chance of 1 %", first_covered(LIMIT), "%", 95),
    ]


BENCHES = {"powerloss-bounds": ("bounds and stop rules of power-loss campaigns, against known chances", bounds)}
