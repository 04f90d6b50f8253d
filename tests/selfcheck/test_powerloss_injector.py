"""The judge of power loss against a drive that shares no code with it, and has its own truth of each cut
(tests/support/faulty_drive.py). The whole table: `./ssdrig selfcheck powerloss-injector`."""

import pytest
from support import faulty_drive, lazy_trims, model_campaign, published_faults
from support.faulty_drive import Drive
from support.model_campaign import campaign, compared

from selfcheck import powerloss_injector
from ssdrig.plan.kinds import cut_mixes
from ssdrig.powerloss import campaign as campaign_module
from ssdrig.powerloss import exposure

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


def run(tmp_path, fault="", cuts=4, seed=1, mode="volatile", **how):
    drive = Drive(64 * MiB, seed, fault, mode)
    return drive, campaign(drive, tmp_path, cuts, seed, 16 * MiB, **how)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["volatile", "through", "plp"])
def test_an_honest_drive_under_the_legal_adversary_is_not_accused(tmp_path, mode):
    drive, campaign_ = run(tmp_path, cuts=8, seed=3, mode=mode)
    assert campaign_.tally.outcome(tmp_path) is None and campaign_.tally.suspicious == 0 and campaign_.tally.cuts == 8
    assert compared(drive, campaign_).false == 0 and campaign_.commands > 2000
    assert sum(session["lost_volatile"] or 0 for session in campaign_.sessions) > (100 if mode == "volatile" else -1)


@pytest.mark.slow
@pytest.mark.parametrize("fault", CLEAR)
def test_damage_that_was_read_is_found_at_its_cut(tmp_path, fault):
    drive, campaign_ = run(tmp_path, fault, controls=0)
    of = compared(drive, campaign_)
    assert of.false == of.wrong == of.missed == 0 and of.matched == of.bad > 0
    assert campaign_.tally.outcome(tmp_path).exit_code == 11
    assert campaign_.tally.failing.least <= sum(bool(pages) for pages in drive.truth.values())
    assert campaign_.tally.failing.most >= of.bad


@pytest.mark.slow
@pytest.mark.parametrize("fault", [*published_faults.OF_CUT, *published_faults.OF_DRIVE, *published_faults.WITHOUT_CUT])
def test_what_studies_saw_drives_do_is_found_where_it_was_read(tmp_path, fault):
    drive, campaign_ = run(tmp_path, fault, 9)
    of = compared(drive, campaign_)
    assert drive.exercised > 0 and of.false == of.wrong == 0
    assert of.matched == of.bad > 0 and campaign_.tally.outcome(tmp_path).exit_code == 11


@pytest.mark.slow
@pytest.mark.parametrize("habit", published_faults.ALLOWED)
def test_what_no_promise_forbids_is_not_accused(tmp_path, habit):
    drive, campaign_ = run(tmp_path, habit, 6)
    assert campaign_.tally.outcome(tmp_path) is None and not any(drive.truth.values())
    assert sum(session["lost_volatile"] or 0 for session in campaign_.sessions) > 0


# the fault, and the mix or the streams without which nothing of it can be seen
OF_MIX = {"lie_dirty32M": cut_mixes.UNFLUSHED, "lie_load": cut_mixes.DEEP, "lie_idle": cut_mixes.IDLE}
OF_STREAM = {
    "lie_zeroes": ("zeroes",),
    "fua_dirtypage": ("fua-over",),
    "fua_big": ("fua-long",),
    "trim_neigh": ("trim-beside", "trim"),
    "lie_aftertrim": ("trim-beside", "trim"),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", OF_MIX)
def test_each_mix_finds_what_the_usual_one_does_not(tmp_path, fault):
    for name, is_accused in ((OF_MIX[fault], True), (cut_mixes.USUAL, False)):
        drive, of = run(tmp_path, fault, 4, controls=0, weights={name: 1})
        assert (compared(drive, of).matched > 0) is is_accused and compared(drive, of).false == 0
        assert compared(drive, of).matched == compared(drive, of).bad


@pytest.mark.slow
@pytest.mark.parametrize("fault", OF_STREAM)
def test_each_stream_finds_what_the_others_do_not(tmp_path, fault):
    for left_out in ((), OF_STREAM[fault]):
        shares = {name: 0 if name in left_out else share for name, share in cut_mixes.SHARES.items()}
        drive, of = run(tmp_path, fault, 5, controls=0, shares=shares)
        assert (drive.exercised > 0) is (not left_out) and compared(drive, of).false == 0
        assert compared(drive, of).matched == compared(drive, of).bad and (compared(drive, of).bad > 0) is (
            not left_out
        )


@pytest.mark.slow
def test_a_flush_that_covers_its_own_queue_alone_is_found_by_several_queues(tmp_path):
    for queues, shows in ((4, True), (1, False)):
        drive, of = run(tmp_path, "flush_own_queue", 4, controls=0, queues=queues)
        assert bool(drive.exercised) is (compared(drive, of).matched > 0) is shows and compared(drive, of).false == 0
        assert compared(drive, of).matched == compared(drive, of).bad


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "glitches"), [("brownout", 1), ("brownout", 0), ("", 1)])
def test_a_dip_that_is_no_reset_shows_what_no_cut_does_and_accuses_no_honest_drive(tmp_path, fault, glitches):
    drive, of = run(tmp_path, fault, 8, controls=0, shapes={"command": 1, model_campaign.GLITCH: glitches})
    exercised = bool(fault and glitches)
    assert bool(drive.exercised) is (compared(drive, of).matched > 0) is exercised
    assert compared(drive, of).false == compared(drive, of).wrong == 0
    assert of.tally.suspicious == 0 and (of.tally.outcome(tmp_path) is not None) is exercised
    dips = exposure.total(of.sessions).get("dips", {"n": 0})["n"]
    assert dips == 4 * glitches == 8 - of.tally.cuts


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["replay", "second_read"])
def test_a_power_cycle_without_a_write_shows_what_no_other_cut_does(tmp_path, monkeypatch, fault):
    """The window is too large to be read after each cut, but for the last one, and data at rest is not."""
    monkeypatch.setattr(campaign_module, "COLD_BYTES", 0)
    for aims, shows in (({"random": 1, "again": 1}, True), ({"random": 1}, False)):
        drive, of = run(tmp_path, fault, 6, controls=0, aims=aims, whole=lambda n: False)
        cuts = [session["aim"] for session in of.sessions[:-1] if session["failed"]]
        assert set(cuts) == ({"again"} if shows else set()) and compared(drive, of).false == 0
        assert of.sessions[0]["aim"] == "random" and all(session["judged"] for session in of.sessions)


@pytest.mark.slow
def test_a_lie_of_the_first_flush_since_power_returned_is_found_behind_a_cut_without_a_write(tmp_path):
    """Elsewhere the FLUSH after the reading is the first, and covers nothing."""
    for aims, shows in (({"random": 1, "again": 1}, True), ({"random": 1}, False)):
        drive, of = run(tmp_path, "lie_first_after_on", 8, controls=0, aims=aims)
        assert drive.exercised == 1 + compared(drive, of).matched  # of the fill
        assert compared(drive, of).matched == compared(drive, of).bad == 2 * shows and compared(drive, of).false == 0


@pytest.mark.slow
def test_data_at_rest_is_read_where_the_window_never_is_as_a_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(model_campaign, "damage_spreads", lambda *_: False)
    accused = []
    for cold_bytes in (0, 4 * MiB):
        monkeypatch.setattr(campaign_module, "COLD_BYTES", cold_bytes)
        how = {"weights": {"usual": 1}, "aims": {"random": 1}, "whole": lambda n: False}
        drive, of = run(tmp_path, "rollback_untouched", 10, controls=0, **how)
        assert compared(drive, of).false == compared(drive, of).wrong == 0
        accused.append(sum(len(of.accused[session["cut"]]) for session in of.sessions[:-1]))
    assert accused[1] > 2 * accused[0] + 4


@pytest.mark.slow
def test_the_table_of_faults_says_which_could_not_be_seen(monkeypatch):
    monkeypatch.setattr(faulty_drive, "FAULTS", ("lie_always", "lie_1in20", "grow"))
    figures = {figure.name: figure for figure in powerloss_injector.shown(cuts=3)}
    assert all(figure.met for figure in figures.values() if "exercised" not in figure.name) and len(figures) == 9
    assert figures["faults that no campaign exercised"].value == 1
    assert [figure.value for name, figure in figures.items() if name.startswith(("lie_always", "grow"))] == [100, 100]


@pytest.mark.parametrize(("window_bytes", "cuts", "seed"), [(64 * MiB, 30, 1), (2048 * MiB, 56, 9)])
def test_trims_that_take_effect_some_cuts_later_accuse_nobody(window_bytes, cuts, seed):
    score = lazy_trims.campaign(window_bytes, cuts, seed)
    assert (score.accused, score.suspicious) == (0, 0) and score.collected > 500


def test_a_judge_that_forgets_trims_accuses_that_drive():
    assert lazy_trims.campaign(2048 * MiB, 56, 9, forgets=True).accused > 1000


@pytest.mark.slow
def test_drive_that_refuses_flushes_too_once_it_is_read_only_is_found(tmp_path):
    """The FLUSH after each session ended the campaign with "the drive did not come back"."""
    _, campaign_ = run(tmp_path, "readonly_all", cuts=6, controls=0)
    assert campaign_.tally.outcome(tmp_path).exit_code == 11 and "READ_ONLY" in campaign_.sessions[-1]["findings"]
    assert not any(campaign_.accused.values())
