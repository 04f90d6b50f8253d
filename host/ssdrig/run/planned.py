"""What the options of `ssdrig run` come to on one drive, before anything starts: the plan with its steps and its price,
and the budget."""

from dataclasses import asdict, replace
from typing import NamedTuple

from ssdrig.base.errors import UsageError
from ssdrig.drive import inventory
from ssdrig.drive.inventory import Drive
from ssdrig.drive.wear import warranty
from ssdrig.drive.wear.endurance import Limits
from ssdrig.plan import expand, grammar
from ssdrig.run import able, bench, cutting, options, prepare, sync_marks
from ssdrig.run.budget import Budget


class Planned(NamedTuple):
    """`drive`, `limits` (what its maker warrants) and `raw` (--raw-nand in bytes, whether it is assumed): of a real
    drive."""

    prepared: prepare.Prepared
    budget: Budget
    rated_bytes: float | None = None
    drive: Drive | None = None
    limits: Limits | None = None
    raw: tuple[int | None, bool] = (None, False)


def on(args, drive: dict, capabilities: frozenset[str], rated_bytes: float | None = None) -> Planned:
    """On a drive as run.json describes it. Raises UsageError, JournalError."""
    variant, sets = options.parameters(args)
    prepared = prepare.prepare(
        args.plan, drive, variant, sets, options.seed(args, drive), capabilities, args.runs, args.finish
    )
    if getattr(args, "sync", False):
        sync_marks.refuse(prepared.acts)
        prepared = replace(prepared, sync=True)
    if not args.dry_run:
        able.terminal(prepared.acts)
        able.room(args.runs, prepared.cost.log_bytes[0])
    return Planned(prepared, prepare.budget(args.budget, prepared, rated_bytes), rated_bytes)


def on_virtual(args) -> Planned:
    """On the virtual drive that the options ask for, which is not started. Raises UsageError."""
    return on(args, options.virtual_drive(args), prepare.of_virtual(args.virtual))


def on_real(args) -> Planned:
    """On the real drive that the options name. Raises UsageError, UnsafeTarget, DriveError."""
    drive = inventory.find(args.drive)
    raw, assumed = options.raw_nand(args, drive.model, drive.capacity_bytes)
    if raw is None and any(share and share.raw for share in options.shares(args)):
        raise UsageError(
            "--raw-nand SIZE with --op: over-provisioning is a share of raw NAND, which no drive reports",
            "no --raw-nand",
            "take it from the data sheet, or use --op-of-user",
        )
    limits = warranty.limits_for(drive.model, drive.capacity_bytes)
    known = {**asdict(drive), **bench.rating(limits)}
    known |= {"raw_nand_bytes": raw, "raw_nand_assumed": assumed, "time_dilation": 1}
    needs = grammar.read(*grammar.find(args.plan)).asks
    known |= {"power_states": bench.states_of(drive), "placement_handles": bench.handles_of(drive, needs)}
    cutting.refuse(drive, args)
    can = able.of_real(drive, args.rig, needs, cutting.commands(args))
    try:
        prepared = on(args, known, can, warranty.rated_bytes(limits))
    except expand.Lacking as error:
        raise UsageError(error.expected, able.reasons(drive, error.needs) or error.seen, error.do) from error
    return prepared._replace(drive=drive, limits=limits, raw=(raw, assumed))
