"""purge: empty the drive and verify it."""


def carry_out(act, stage, number: int) -> dict:
    """Empty the drive; the effect is read back (drive/purge.py)."""
    with stage.stop.second_raises():
        stage.progress.show("purge")
        stage.book.event("purge", **stage.bench.purge(stage.progress))
    return {}
