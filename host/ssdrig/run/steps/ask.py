"""ask: wait for the user."""


def carry_out(act, stage, number: int) -> dict:
    """Go on once the person has pressed Enter; the wait is on the run's axis."""
    stage.progress.say(f"{act.path}: {act.keys['text']}\nEnter goes on, Ctrl-C ends the run")
    with stage.stop.second_raises():
        answer = stage.ask()
    return {"answer": answer}
