"""The judge of power-loss tests against a drive that shares no code with it, nor with the virtual drive, and knows what
it did at each cut: honest drives, and each of its faults. The drive and its campaign in model time belong to the tests
(tests/support), so this needs a clone. SIMULATED."""

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from selfcheck import Figure, at_least, exactly, in_turn

if TYPE_CHECKING:
    from support.model_campaign import Tried

BENCH = "powerloss-injector"
TESTS = Path(__file__).parents[2] / "tests"
CUTS, HONEST_CUTS = 60, 1000
AT_ITS_CUT = 95.0  # percent of the cuts that did damage which was read


def shown(cuts: int = CUTS, seeds: int = 1) -> list[Figure]:
    """`cuts` of each campaign with a fault; an honest drive has 1000 of them, or `cuts` where that is not CUTS."""
    sys.path[:0] = [str(TESTS), str(TESTS / "support")]
    from support import faulty_drive, model_campaign

    honest = HONEST_CUTS if cuts == CUTS else cuts
    plan = [(model_campaign.HONEST, honest, 1, mode) for mode in model_campaign.MODES]
    plan += [(f, cuts, seed, model_campaign.MODES[0]) for f in faulty_drive.FAULTS for seed in range(1, seeds + 1)]
    campaigns = [model_campaign.tried(*words) for words in in_turn(plan, BENCH)]
    figures, of_faults = [], campaigns[len(model_campaign.MODES) :]
    for campaign in campaigns[: len(model_campaign.MODES)]:
        accusations = campaign.failing[1] + campaign.suspicious + campaign.compared.false + (campaign.exit_code != 0)
        figures.append(exactly(f"honest, {campaign.mode}: {campaign.cuts} cuts: accusations", accusations, "", 0))
    for fault in faulty_drive.FAULTS:
        figures.append(_of_fault([campaign for campaign in of_faults if campaign.fault == fault]))
    false = sum(campaign.compared.false + campaign.compared.wrong for campaign in of_faults)
    seen = [campaign for campaign in of_faults if _observable(campaign)]
    missed = sum(not _is_found(campaign) for campaign in seen)
    never = len(faulty_drive.FAULTS) - len({campaign.fault for campaign in of_faults if campaign.exercised})
    return [
        *figures,
        exactly("blocks accused that were sound, or at another cut", false, "blocks", 0),
        exactly("campaigns with a fault that could be seen, and was not", missed, "campaigns", 0),
        exactly("faults that no campaign exercised", never, "faults", 0),
    ]


def _observable(of: "Tried") -> bool:
    return bool(of.compared.bad or of.events)


def _is_found(of: "Tried") -> bool:
    return of.exit_code in ((11, 12) if of.events else (11,)) and bool(of.compared.matched or of.events)


def _of_fault(of: "list[Tried]") -> Figure:
    """The share of cuts whose damage was found at that cut, or in an interval that has it; of a fault of the drive as a
    whole, of the campaigns that found it."""
    bad, matched = (sum(getattr(campaign.compared, name) for campaign in of) for name in ("bad", "matched"))
    name = f"{of[0].fault}: {sum(campaign.exercised for campaign in of)} times"
    if bad:
        return at_least(f"{name}, {matched} of {bad} cuts found", 100 * matched / bad, "%", AT_ITS_CUT)
    if any(campaign.events for campaign in of):
        caught = sum(campaign.exit_code in (11, 12) for campaign in of)
        return at_least(f"{name}: {' '.join(of[0].names)}", 100 * caught / len(of), "%", AT_ITS_CUT)
    return Figure(f"{name}, nothing to be seen", math.nan, "%", "to compare", True)


BENCHES = {
    BENCH: ("honest drives and 68 faults of a drive that shares no code with the judge (about 30 min of CPU)", shown)
}
