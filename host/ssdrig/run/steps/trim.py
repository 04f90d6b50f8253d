"""trim: discard the range."""


def carry_out(act, stage, number: int) -> dict:
    """Discard; the time until the drive has answered is the step's."""
    stage.bench.check()
    with stage.stop.second_raises():
        stage.progress.show("trim")
        stage.bench.trim(act.range_bytes)
    return {"bytes_trimmed": act.range_bytes}
