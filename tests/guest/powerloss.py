"""Campaigns of power cuts on drives of the guest's kernel: carried out on this machine (far_drive.py), and judged once
more in other ways."""

import contextlib
import functools
import json
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from guest.far_drive import FarDrive
from guest.power import Switch
from ssdrig.plan.kinds import cut_mixes
from ssdrig.powerloss import campaign, layout, sessions, verdict
from ssdrig.powerloss.history import FLUSH, FUA, NEVER
from ssdrig.powerloss.promise import Promise
from ssdrig.runs import journal

MIB = 1 << 20
# fewer canaries, which take the guest some seconds; a campaign's name for what makes its layout
small_layout = functools.partial(layout.make, canaries=64)
ACKNOWLEDGED, STARVED_S = 50, 100.0
KEYS = {
    "aims": {"random": 1},
    "shapes": {},
    "streams": cut_mixes.SHARES,
    "mixes": {cut_mixes.USUAL: 1},
    "write": 0.15,
    "off_time": 0.05,
    "ready": 0,
    "control": 5,
    "bound": None,
    "only": 0,
}


def carry_out(drive: FarDrive, switch: Switch, runs: Path, cuts: int, stop: str = "last", counts=lambda: None, **keys):
    """So many cuts and the control session beside them: (run folder, what was found or raised, None: nothing).
    `counts`: what a SMART poll says of the drive. `keys`: of the step, in place of KEYS."""
    act = SimpleNamespace(path="cuts", range_bytes=4 * MIB, keys={**KEYS, "cuts": cuts, "stop": stop, **keys})
    nothing, target = (lambda *_, **__: None), drive.target((switch.command("off"), switch.command("on")))
    book = journal.create(runs, {"drive": {"serial": "of the guest"}})
    stage = SimpleNamespace(
        **{"book": book, "rig": None, "seed": 1, "outcome": None, "over_budget": nothing},
        stop=SimpleNamespace(second_raises=contextlib.nullcontext, check=nothing),
        bench=SimpleNamespace(target=target, drive={"capacity_bytes": drive.size_bytes}),
        teardown=SimpleNamespace(push=nothing),
        progress=SimpleNamespace(show=nothing, warn=nothing),
        live=SimpleNamespace(poll_smart=lambda reason: counts(), share=nothing),
    )
    try:
        campaign.carry_out(act, stage)
        outcome = stage.outcome
    except Exception as error:
        outcome = error
    finally:
        book.close("complete", None, 0)
    return book.path, outcome


def once_written(cut):
    """Cycle._cut, but a cut waits until the drive has acknowledged some commands: a starved guest has none by the time
    of the plan."""

    def patient(self, planned, made, writer):
        until = time.monotonic() + STARVED_S
        while writer.commands - writer.in_flight < ACKNOWLEDGED and time.monotonic() < until:
            time.sleep(0.01)
        return cut(self, planned, made, writer)

    return patient


def judged(run: Path) -> SimpleNamespace:
    """Of a campaign's folder: `records` of all sessions, `cuts` of those that are no control sessions, `promise`,
    `changed` (how often it was another later), `fua` (such writes acknowledged before their cut), `under_way` (cuts
    with a FLUSH that the drive had got, and that was answered after its power had returned), and how many cuts break a
    promise when they are judged `again`, and when what was answered after the return of power counts (`without_R1`)."""
    by_kind: dict[str, list] = {"powerloss.begin": [], "powerloss.promise": [], "session.judged": []}
    for event in journal.events(run):
        by_kind.get(event["kind"], []).append(event)
    begin, changed, records = by_kind.values()
    outcome = SimpleNamespace(promise=begin[0]["promise"] if begin else None, changed=len(changed), records=records)
    outcome.cuts = [record for record in records if not record["control"]]
    outcome.fua = outcome.under_way = outcome.again = outcome.without_R1 = 0
    for record in outcome.cuts:
        where = run / sessions.folder(record["cut"])
        rows, seen = sessions.rows_of(where), np.load(where / "seen.npz")
        promise = Promise(**json.loads((where / "verdict.json").read_bytes())["promise"])
        blocks = verdict.Blocks(*(seen[name] for name in verdict.Blocks._fields))
        answered = (rows["status"] == 0) & (rows["done_ns"] < record["on_ns"])
        last_ns = rows["done_ns"][answered].max(initial=0)
        late = (rows["kind"] == FLUSH) & (rows["status"] == 0) & (rows["done_ns"] >= record["on_ns"])
        outcome.fua += int((answered & (rows["flags"] & FUA > 0)).sum())
        outcome.under_way += bool((late & (rows["submit_ns"] < last_ns)).any())
        for name, on_ns in (("again", record["on_ns"]), ("without_R1", NEVER)):
            session = verdict.Session(rows, record["fired_ns"], on_ns, 0, 1)
            failed = len(verdict.judge(session, blocks, promise).failed())
            setattr(outcome, name, getattr(outcome, name) + bool(failed))
    return outcome
