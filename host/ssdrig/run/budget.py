"""How much a run may write: "5 TB", or "2 %" of the rated endurance. It ends at the next boundary of a point before it
would write more."""

from dataclasses import dataclass

from ssdrig.base import words
from ssdrig.base.errors import UsageError
from ssdrig.plan import quantity
from ssdrig.plan.expand import MAY_WRITE, Act


@dataclass
class Budget:
    """`most_bytes` None: no budget."""

    most_bytes: int | None
    written_bytes: int = 0

    def why_not(self, act: Act) -> str | None:
        """Why an act must not begin; None: it may."""
        if self.most_bytes is None or act.do not in MAY_WRITE or act.keys.get("read") == 100:
            return None
        amount = act.keys["slice_bytes"] if act.do == "wear" else act.amount_bytes or 0  # it ends between two slices
        amount = act.range_bytes if act.do == "cuts" else amount  # the fill of its window; it ends between two cuts
        least_bytes = amount * (1 - act.keys.get("read", 0) / 100)
        if self.written_bytes >= self.most_bytes or self.written_bytes + least_bytes > self.most_bytes:
            return (
                f"the budget of {words.size(self.most_bytes)}: {words.size(self.written_bytes)} are written, and"
                f" {act.label} comes next"
            )
        return None

    def wrote(self, act: Act, size: int) -> None:
        """An act has moved this many bytes."""
        self.written_bytes += self.share(act, size)

    @staticmethod
    def share(act: Act, size: int) -> int:
        """How many of the bytes that an act has moved were written."""
        return int(size * (1 - act.keys.get("read", 0) / 100)) if act.do in MAY_WRITE else 0

    def left_bytes(self) -> int | None:
        """What may still be written; None: without end."""
        return None if self.most_bytes is None else max(0, self.most_bytes - self.written_bytes)


def parse(text: str, rated_bytes: float | None) -> Budget:
    """ "5 TB" or "2 %" of the rated endurance. Raises UsageError, also where a share is asked of a drive whose rating
    is not known."""
    try:
        if text.rstrip().endswith("%"):
            percent = quantity.parse(text.strip(), "range").percent
            if rated_bytes is None:
                raise UsageError(
                    "a drive whose rated endurance is known, to use a budget in percent",
                    "no rating of this model",
                    "give --budget in bytes, such as 5 TB, or add the model to warranty.toml",
                )
            return Budget(int(rated_bytes * percent / 100))
        return Budget(quantity.parse(text.strip(), "bytes"))
    except ValueError as error:
        raise UsageError('--budget "5 TB" or "2 %"', repr(text), "write a number and its unit") from error
