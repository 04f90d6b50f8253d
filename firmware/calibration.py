"""Calibration of the rails, kept on the board through resets and new firmware. The host makes it and applies it (its
calibration.py defines its content); here it is stored and reported in H. Integers and text only: the board's floats are
single precision. Allocates, so it is not used while samples are taken.
"""

import json
import os

FILE = "calibration.json"  # {"0": object of rail 0, ...}


def load():
    """{number of the rail as text: its object}; empty if nothing was ever stored or the file is damaged."""
    try:
        with open(FILE) as file:
            stored = json.load(file)
        return stored if isinstance(stored, dict) else {}
    except (OSError, ValueError):
        return {}


def store(rail, calibration):
    """Keep the object of a rail, or forget it (None). The file is the old or the new one, whatever happens. OSError."""
    stored = load()
    if calibration is None:
        stored.pop(str(rail), None)
    else:
        stored[str(rail)] = calibration
    with open(FILE + ".new", "w") as file:
        json.dump(stored, file)
    os.rename(FILE + ".new", FILE)


def command(body, rails):
    """Execute `k`: body is JSON {"rail", "calibration": object or null}, rails the existing numbers. ValueError states
    why it was refused."""
    try:
        wanted = json.loads(body)
        rail, calibration = wanted["rail"], wanted["calibration"]
    except (ValueError, KeyError, TypeError):
        raise ValueError("no JSON object with rail and calibration")
    if rail not in rails:
        raise ValueError("no rail %s" % (rail,))
    if not (calibration is None or isinstance(calibration, dict)):
        raise ValueError("a calibration is an object or null")
    try:
        store(rail, calibration)
    except OSError as why:
        raise ValueError("the board's flash refuses: %s" % why)
