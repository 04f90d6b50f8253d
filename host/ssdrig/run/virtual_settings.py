"""What of a virtual drive a plan's `set` step can change, through its admin socket: the NVMe features 02h and 0Ch. On a
SATA drive `alpm` represents them: its power states are those of the link, and 0Ch decides whether it goes there."""

from collections.abc import Sequence

from ssdrig.base.errors import DriveError
from ssdrig.drive import features
from ssdrig.virtual import adminclient

AWAKE = "max_performance"  # the kernel's word for a link that does not go to sleep; any other lets it
ASLEEP = ("min_power", "med_power_with_dipm")
FEATURE = {"power_state": features.POWER, "apst": features.APST, "alpm": features.APST}


def read(admin) -> dict:
    """{"nvme.power_state", "nvme.apst", "nvme.apst_table"}, as conditions.read() has them of a real drive."""
    settings: dict = {}
    if answer := _get(admin, features.POWER):
        settings["nvme.power_state"] = answer["value"] & 31
    if answer := _get(admin, features.APST):
        settings["nvme.apst"] = ("off", "on")[answer["value"] & 1]
        settings["nvme.apst_table"] = features.transitions(bytes.fromhex(answer["hex"]))
    return settings


def setting(admin, key: str) -> list[str]:
    """The value: a number, "on" or "off", a word of the kernel's for ALPM; of a table of 0Ch also its hex. Raises
    DriveError where the drive has no such thing."""
    answer = _get(admin, FEATURE[key]) if key in FEATURE else None
    if answer is None:
        raise DriveError(f"a virtual drive whose {key} can be set", "one that has no such thing", "leave the step out")
    bits = answer["value"]
    if key == "power_state":
        return [str(bits & 31)]
    if key == "apst":
        return [("off", "on")[bits & 1], answer["hex"]]
    return [ASLEEP[0] if bits & 1 else AWAKE]


def change(admin, key: str, value: str | int) -> None:
    """Set it and see that it is set. Raises DriveError."""
    now = setting(admin, key)
    _put(admin, key, [str(value), *now[1:]])


def put_back(admin, key: str, before: Sequence[str]) -> None:
    """Set what setting() had found. Raises DriveError."""
    _put(admin, key, before)


def _put(admin, key: str, wanted: Sequence[str]) -> None:
    word, fid = wanted[0], FEATURE[key]
    if key == "alpm" and word not in (AWAKE, *ASLEEP):
        raise DriveError(f"alpm to be one of {AWAKE}, {', '.join(ASLEEP)}", word, "choose one of its words")
    request: dict = {"op": "set_feature", "fid": fid}
    if key == "power_state":
        request["value"] = int(word)
    else:
        table = wanted[1] if len(wanted) > 1 else (_get(admin, fid) or {})["hex"]
        request |= {"value": int(word in ("on", *ASLEEP)), "hex": table}
    adminclient.ask(admin, request)
    seen = setting(admin, key)[0]
    if seen != word and not {seen, word} <= set(ASLEEP):
        raise DriveError(f"the virtual drive's {key} to be {word}", seen, "see the drive server's log")


def _get(admin, fid: int) -> dict | None:
    """None: the drive has no such feature."""
    try:
        return adminclient.ask(admin, {"op": "get_feature", "fid": fid})
    except DriveError as error:
        if "no feature" in error.seen:
            return None
        raise
