"""The judge of power loss against a drive that shares no code with it, and has its own truth of each cut
(tests/support/faulty_drive.py). The whole table: `PYTHONPATH=host:tests python -m support.model_campaign 60`."""

import pytest
from support import lazy_trims
from support.faulty_drive import Drive
from support.model_campaign import campaign, compared

MiB = 1 << 20
CLEAR = (
    "lie_always",
    "nonatomic",
    "flush_race",
    "fua_always",
    "torn_128k",
    "zero_page",
    "garbage_hdr",
    "unc",
    "torn_illegal",
)


def run(tmp_path, fault="", cuts=20, seed=1, mode="volatile", **how):
    drive = Drive(64 * MiB, seed, fault, mode)
    return drive, campaign(drive, tmp_path, cuts, seed, 16 * MiB, **how)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["volatile", "through", "plp"])
def test_an_honest_drive_under_the_legal_adversary_is_not_accused(tmp_path, mode):
    drive, found = run(tmp_path, cuts=40, seed=3, mode=mode)
    assert found.tally.outcome(tmp_path) is None and found.tally.suspicious == 0 and found.tally.cuts == 40
    assert compared(drive, found).false == 0 and found.commands > 5000
    assert sum(each["lost_volatile"] or 0 for each in found.sessions) > (1000 if mode == "volatile" else -1)


@pytest.mark.slow
@pytest.mark.parametrize("fault", CLEAR)
def test_damage_that_was_read_is_found_at_its_cut(tmp_path, fault):
    drive, found = run(tmp_path, fault, controls=0)
    of = compared(drive, found)
    assert of.false == of.wrong == of.missed == 0 and of.found == of.bad > 0
    assert found.tally.outcome(tmp_path).exit_code == 11
    assert found.tally.failing.least <= sum(bool(pages) for pages in drive.truth.values())
    assert found.tally.failing.most >= of.bad


@pytest.mark.parametrize(("window_bytes", "cuts", "seed"), [(64 * MiB, 30, 1), (2048 * MiB, 56, 9)])
def test_trims_that_take_effect_some_cuts_later_accuse_nobody(window_bytes, cuts, seed):
    found = lazy_trims.campaign(window_bytes, cuts, seed)
    assert (found.accused, found.suspicious) == (0, 0) and found.collected > 500


def test_a_judge_that_forgets_trims_accuses_that_drive():
    assert lazy_trims.campaign(2048 * MiB, 56, 9, forgets=True).accused > 1000
