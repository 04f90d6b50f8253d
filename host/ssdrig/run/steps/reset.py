"""reset: reset all zones of a zoned drive."""


def carry_out(act, stage, number: int) -> dict:
    """Reset; done when each zone reports that it is empty."""
    stage.bench.check()
    with stage.stop.second_raises():
        stage.progress.show("reset")
        return stage.bench.reset_zones()
