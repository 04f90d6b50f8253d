"""recall: find the manifest of a sealed drive, read all its data once, report lost and slow parts."""

from ssdrig.base.errors import UsageError
from ssdrig.drive.wear.retention import REQUIREMENTS
from ssdrig.plan.kinds.keys import Key
from ssdrig.plan.kinds.retention_words import NONE, SEALED

KEYS = {
    "storage": Key("file", NONE),
    "celsius": Key("text", NONE),
    "hours": Key("text", NONE),
    "manifest": Key("file", NONE),
    "label": Key("text", NONE),
    "class": Key("word", SEALED, words=(SEALED, *REQUIREMENTS)),
    "rest": Key("pause", "0 s"),
    "after": Key("pause", "60 s"),
    "passes": Key("count", 1),
    "pause": Key("pause", "24 h"),
}
NEEDS: set[str] = set()


def waits_s(keys) -> float:
    """Seconds besides the reading."""
    return keys["rest"] + keys["passes"] * keys["after"] + (keys["passes"] - 1) * keys["pause"]


def check(keys, where: str) -> None:
    """Raises UsageError for invalid numbers, and for two descriptions of the storage."""
    for key in ("celsius", "hours"):
        try:
            keys[key] == NONE or float(keys[key])
        except ValueError:
            seen = f"{key} = {keys[key]} in {where}"
            raise UsageError(f"a number for {key}", seen, "correct it") from None
    if keys["celsius"] != NONE and keys["storage"] != NONE:
        raise UsageError("`storage` or `celsius`", f"both in {where}", "leave one out")
    if keys["hours"] != NONE and keys["celsius"] == NONE:
        raise UsageError("`celsius` together with `hours`", f"`hours` alone in {where}", "add the temperature")
