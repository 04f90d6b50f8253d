"""Carry a review out: one bench for all of its plans, each plan its own run; an interrupted one goes on. A
plan that fails does not stop the others; a drive, a rig or a run folder that is lost is."""

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ssdrig.base.errors import INTERRUPTED, DriveError, JournalError, RigError, SsdrigError
from ssdrig.base.progress import Progress
from ssdrig.plan import history
from ssdrig.plan.history import Left
from ssdrig.plan.rules import laid
from ssdrig.plan.state import UNKNOWN
from ssdrig.reading import review_folder
from ssdrig.reading.review_folder import Done, Review
from ssdrig.run import cut_short, given_again, prepare, resume, run, run_json
from ssdrig.run.bench import Bench
from ssdrig.run.budget import Budget
from ssdrig.run.cut_short import Story
from ssdrig.run.review.order import Item, chained, host_s, item_of, on
from ssdrig.run.teardown import Stop
from ssdrig.runs import journal, parts

ENDS = (INTERRUPTED, DriveError.exit_code, RigError.exit_code, JournalError.exit_code)  # of a run: so ends the review


@dataclass
class Carrying:
    """A review being executed. `now`: what the run before has left of the drive, if known."""

    review: Review
    here: Bench
    can: frozenset[str]
    args: argparse.Namespace
    show: Progress
    stop: Stop
    budget: Budget
    now: Left = Left()
    by: str = ""
    since_ns: int = 0

    def all(self) -> int:
        """Every plan that is not complete, in order. Returns the exit code: 0, that of the first plan that failed, or
        that of the one with which the review ended."""
        done, code = review_folder.done(self.review), 0
        items = self._items(done)
        whole = sum(1 for plan in self.review.plans if not plan.why)
        for i, item in enumerate(items):
            self.show.say(f"review: plan {whole - len(items) + i + 1} of {whole}, {item.name}")
            assert item.prepared
            first = next((act for act in item.prepared.acts if act.do in ("fill", "load") and not act.not_run), None)
            if first and (why := self.budget.why_not(first)):
                self.show.warn(f"the review ends before {item.name}: {why}")
                return code
            end = self._one(item, done[item.name], rest_s(items[i + 1 :]))
            if end["exit_code"]:
                self.show.warn(f"{item.name}: {end['state']}: {end['why']}")
            code = code or end["exit_code"]
            if self.stop.count or end["exit_code"] in ENDS:
                return end["exit_code"] or code
            if end["state"] == "complete" and end["why"]:  # the budget
                self.show.warn(f"the review ends in {item.name}: {end['why']}")
                return code
        return code

    def _items(self, done: Mapping[str, Done]) -> list[Item]:
        """The remaining plans, each with the acts it will skip."""
        todo = [planned for planned in self.review.plans if not planned.why and not done[planned.name].complete]
        prepared = [on(item_of(planned), self.here.drive, self.can, self.args.runs, planned.seed) for planned in todo]
        for item in prepared:
            if not item.prepared:
                self.show.warn(f"{item.name} is not run: {item.why}")
        return chained([item for item in prepared if item.prepared])

    def _one(self, item: Item, was: Done, after_s: tuple[float, float]) -> dict:
        """One plan, or the rest of it. Returns the end of its run."""
        assert item.prepared
        story = self._story(was)
        if story and story.past.at < len(story.acts):
            folder, end = self._rest(story, after_s)
        else:
            folder, end = self._whole(item, after_s)
        self.now, self.by, self.since_ns = self._left(folder, end), folder.name, time.monotonic_ns()
        return end

    def _whole(self, item: Item, after_s: tuple[float, float]) -> tuple[Path, dict]:
        prepared = item.prepared
        assert prepared
        count = history.may_leave_out(self._found(), prepared.acts, prepared.plan)
        if count:
            saves = ", ".join(dict.fromkeys(act.path for act in prepared.acts[:count] if not act.not_run))
            self.show.say(f"{item.name}: {saves} left out, the drive is as {self.by} has left it")
        of = {"review": {"folder": self.review.folder.name, "plan": item.name}}

        def begin(header: dict) -> journal.Journal:
            return journal.create(self.review.folder, header | of)

        if count:
            prepared = prepare.leave_out(
                prepared, count, self.by, laid.last(journal.events(self.review.folder / self.by))
            )
        return run.carry_out(self.args, prepared, self.here, self.show, self.stop, self.budget, begin, after_s=after_s)

    def _story(self, was: Done) -> Story | None:
        """An interrupted run that can be resumed; None without one."""
        if was.run is None:
            return None
        try:
            story = cut_short.read(was.run)
        except SsdrigError as error:
            self.show.warn(f"{was.run.name} is begun again: {error}")
            return None
        if given_again.files(story.acts):
            self.show.warn(f"{was.run.name} starts again: its plan reads a file, and a review names none")
            return None
        return story

    def _rest(self, story: Story, after_s: tuple[float, float]) -> tuple[Path, dict]:
        polled = cut_short.reading_of(cut_short.snapshot_of(self.here.poll(None)))
        powered = story.parts[-1][0].get("host", {}).get("boot_id") == run_json.boot_id() is not None
        now, void = cut_short.left(story.past, story.before, polled, story.ours, powered or self.here.simulated)
        prepared, todo = resume.rest_of(story, self.here.drive, now, void)
        resume.fits(story, prepared, self.can)
        self.show.say("\n".join(resume.in_words(story, todo)))
        part: list[Path] = []
        args = (story, self.args, prepared, todo, self.here, self.show, self.stop, self.budget, part, after_s)
        return resume.carry_out(*args)

    def _left(self, folder: Path, end: dict) -> Left:
        """What a run has left of the drive, by its plan and its events; nothing is known of one that did not end."""
        if end["exit_code"] or end["why"] or parts.of(folder)[1:]:
            return Left()
        try:
            story = cut_short.read(folder)
        except SsdrigError:
            return Left()
        not_steady = {
            str(event["step"]) for event in story.parts[0][1] if event["kind"] == "steady" and not event.get("passed")
        }
        return history.left(story.acts, not_steady).at_the_end()

    def _found(self) -> Left:
        """The part of its state still valid: no rest, and nothing else has written meanwhile."""
        folder = self.review.folder / self.by
        rested_s = (time.monotonic_ns() - self.since_ns) / 1e9 / self.here.drive["time_dilation"]
        if self.now.state == UNKNOWN or rested_s > laid.RESTS_S:
            return Left()
        story = cut_short.read(folder)
        polled = cut_short.reading_of(cut_short.snapshot_of(self.here.poll(None)))
        remaining, _ = cut_short.left(story.past, story.before, polled, story.ours, True)
        return Left() if remaining == UNKNOWN else self.now


def rest_s(items: Sequence[Item]) -> tuple[float, float]:
    """Host seconds of these plans, (least, most)."""
    times_s = [host_s(item.shortened) for item in items if item.prepared]
    return sum(least for least, _ in times_s), sum(most for _, most in times_s)
