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
    found = [model_campaign.tried(*words) for words in in_turn(plan, BENCH)]
    figures, of_faults = [], found[len(model_campaign.MODES) :]
    for each in found[: len(model_campaign.MODES)]:
        said = each.failing[1] + each.suspicious + each.compared.false + (each.exit_code != 0)
        figures.append(exactly(f"honest, {each.mode}: {each.cuts} cuts: accusations", said, "", 0))
    for fault in faulty_drive.FAULTS:
        figures.append(_of_fault([each for each in of_faults if each.fault == fault]))
    false = sum(each.compared.false + each.compared.wrong for each in of_faults)
    seen = [each for each in of_faults if _observable(each)]
    missed = sum(not _is_found(each) for each in seen)
    never = len(faulty_drive.FAULTS) - len({each.fault for each in of_faults if each.exercised})
    return [
        *figures,
        exactly("blocks accused that were sound, or at another cut", false, "blocks", 0),
        exactly("campaigns with a fault that could be seen, and was not", missed, "campaigns", 0),
        exactly("faults that no campaign exercised", never, "faults", 0),
    ]


def _observable(of: "Tried") -> bool:
    return bool(of.compared.bad or of.events)


def _is_found(of: "Tried") -> bool:
    return of.exit_code in ((11, 12) if of.events else (11,)) and bool(of.compared.found or of.events)


def _of_fault(of: "list[Tried]") -> Figure:
    """The share of cuts whose damage was found at that cut, or in an interval that has it; of a fault of the drive as a
    whole, of the campaigns that found it."""
    bad, found = (sum(getattr(each.compared, name) for each in of) for name in ("bad", "found"))
    name = f"{of[0].fault}: {sum(each.exercised for each in of)} times"
    if bad:
        return at_least(f"{name}, {found} of {bad} cuts found", 100 * found / bad, "%", AT_ITS_CUT)
    if any(each.events for each in of):
        caught = sum(each.exit_code in (11, 12) for each in of)
        return at_least(f"{name}: {' '.join(of[0].names)}", 100 * caught / len(of), "%", AT_ITS_CUT)
    return Figure(f"{name}, nothing to be seen", math.nan, "%", "to compare", True)


BENCHES = {
    BENCH: ("honest drives and 68 faults of a drive that shares no code with the judge (about 30 min of CPU)", shown)
}
