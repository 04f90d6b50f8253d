"""Which runs may be ranked against each other. A figure of a run that ended early, or that was measured under other
conditions, is shown but neither ranked nor compared, and the page says why."""

from ssdrig.base.overprovisioning import whole_MiB
from ssdrig.report.words import LEAST_PERCENT, block

STATES = {"failed": "failed", "interrupted": "interrupted", "died": "aborted", "running": "still running"}


def _seconds(duration_s: float | None) -> str:
    return "no length" if duration_s is None else f"{duration_s:g} s"


def conditions(data, figure: dict) -> dict:
    """What must be equal in two runs (analysis.RunData and its figures) that are ranked: name -> (value, words)."""
    method, drive = data.header["method"], data.header["drive"]
    op, raw = method.get("op_percent"), drive.get("raw_nand_bytes")
    tested, user = method.get("tested_bytes"), figure["op_user_percent"]
    whole = drive.get("capacity_bytes") if op is None else raw and whole_MiB(raw, 100 - op)
    if op is None and user is not None and user >= LEAST_PERCENT:
        whole = tested  # over-provisioning of the user capacity, which the label says
    share = round(100 * tested / whole) if tested and whole else None
    return {
        "test": (method.get("name"), str(method.get("name"))),
        "load": (figure["duration_s"], _seconds(figure["duration_s"])),
        "window": (figure["zoom_s"], f"from {figure['zoom_s']} s"),
        "tested share": (share, f"{share} %"),
        "queue depth": (method.get("queue_depth"), str(method.get("queue_depth"))),
        "block size": (method.get("block_bytes"), block(method.get("block_bytes"))),
    }


def reason(data, figure: dict, other: dict) -> str | None:
    """Why a run cannot be ranked with one under the conditions `other`; None if it can."""
    if figure["state"] != "complete":
        words = STATES.get(figure["state"], figure["state"])
        whole_s = figure["duration_s"]
        of = "" if whole_s is None else f" of {_seconds(whole_s).removesuffix(' s')}"
        return f"{words} after {len(data.iops)}{of} s"
    own = conditions(data, figure)
    unlike = [
        f"{name} {own[name][1]}, reviewed run {words}"
        for name, (value, words) in other.items()
        if own[name][0] != value
    ]
    return "; ".join(unlike) or None


def reasons(runs: list, figures: list[dict]) -> list[list[str | None]]:
    """reasons[r][i]: why run i cannot be ranked when run r is reviewed; None if it can."""
    pairs = list(zip(runs, figures, strict=True))
    return [[reason(*pair, conditions(*reviewed)) for pair in pairs] for reviewed in pairs]
