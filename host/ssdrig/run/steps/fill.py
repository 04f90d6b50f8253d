"""fill: write the range sequentially with fio."""

from ssdrig.plan.kinds.fill import job
from ssdrig.run.pace import Pace


def carry_out(act, stage, number: int) -> dict:
    """Write; done when every byte is."""
    stage.bench.check()
    pace = Pace(act.path, bytes_to_do=act.amount_bytes)
    result = stage.fio(act, job(act, stage.bench.fio_target, stage.next_seed()), pace, number)
    return {"bytes": result.bytes}
