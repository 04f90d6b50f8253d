"""choose: pick operating points by what the repeat has measured."""

from ssdrig.plan.rules import choose


def carry_out(act, stage, number: int) -> dict:
    """Pick them (plan/rules/choose.py), for the acts of a repeat over `at` that come later; the picks and the skipped
    acts was not is recorded, with the reason."""
    wanted, value = act.keys["points"], act.keys["value"]
    points = {choice.label: choice.point for choice in act.choices}
    stage.picked = choose.picks(wanted, points, value, stage.seen)
    rows = [pick._asdict() | {"of": len(points)} for pick in stage.picked.values()]
    stage.book.event("choose", step=act.path, value=value, points=rows)
    return {}
