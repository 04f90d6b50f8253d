"""The table of a run as `report --json` gives it (schemas/json/report.schema.json)."""

from ssdrig.reading import drive_latency, gaps, host_power, little, whole_run
from ssdrig.reading.filling import recoveries
from ssdrig.reading.row import FRAME, Row, Table
from ssdrig.views import headline
from ssdrig.views.life.figures import lives


def of_row(row: Row) -> dict:
    """A row's figures, with what its step has found."""
    return {
        "path": row.act.path,
        "do": row.act.do,
        "round": row.round,
        "point": dict(row.act.point),
        "part": row.part,
        "state": row.state,
        "why": row.why,
        "t0_s": row.t0_s,
        "t1_s": row.t1_s,
        "windows": row.windows,
        "found": {key: value for key, value in row.result.items() if key not in FRAME} or None,
        "kernel": row.kernel,
        "episodes": row.episodes,
        "notes": row.notes,
    }


def of_table(table: Table) -> dict:
    """All rows of a run, and the plan, drive and state of the run as a whole."""
    plan, drive = table.data.header["plan"], table.data.header["drive"]
    return {
        "run": table.data.header["run"],
        "state": table.data.state,
        "why": table.data.why,
        "simulated": bool(table.data.header.get("simulated")),
        **{key: drive.get(key) for key in ("model", "serial", "preset")},
        "raw_nand_assumed": bool(drive.get("raw_nand_assumed")),
        "plan": {key: plan.get(key) for key in ("name", "variant", "scaled", "params")},
        "headline": headline.as_json(table),
        "whole_run": whole_run.of(table),
        "rows": [of_row(row) for row in table.rows],
        "trust": table.trust,
        "steady": {"achieved": table.achieved, "verdicts": [verdict.as_json() for verdict in table.verdicts]},
        "little": little.summary(table.rows),
        "gaps": [gap._asdict() for gap in gaps.of_rows(table.rows)],
        "cache_recovery": recoveries(table.plan.shows, table.rows),
        "life": [{"of": path} | life._asdict() for path, life in lives(table)],
        "host_power": [step.as_json() for step in host_power.of_steps(table.data.events)],
        "drive_latency": [stretch.as_json() for stretch in drive_latency.of(table)],
        "notes": table.data.notes,
    }
