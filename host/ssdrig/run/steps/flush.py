"""flush: have the drive empty its write cache."""


def carry_out(act, stage, number: int) -> dict:
    with stage.stop.second_raises():
        stage.bench.flush()
    return {}
