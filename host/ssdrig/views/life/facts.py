"""Facts of the view `life` for a headline."""

from collections.abc import Mapping

from ssdrig.base.uncertain import Uncertain
from ssdrig.reading.row import Table
from ssdrig.views.headline import Fact, lacking
from ssdrig.views.life import figures


def life(run: Table, show: Mapping, path: str) -> dict[str, Fact]:
    """Write amplification of the workload, and the life that follows from it: TBW, drive writes a day, share of its
    rating."""
    of = figures.of(run, path)
    why = {key: reason for key, _, reason in (words.partition(": ") for words in of.unknown)}
    unknown = next(iter(why.values()), "not known")
    waf, tbw = Uncertain(of.waf, of.waf_error), lacking(why.get("TBW", unknown))
    if of.tbw_bytes is not None and of.tbw_low_bytes is not None and of.tbw_high_bytes is not None:
        tbw = Uncertain(of.tbw_bytes, (of.tbw_high_bytes - of.tbw_low_bytes) / 2)
    dwpd = lacking(why.get("DWPD", unknown)) if of.dwpd is None else Uncertain(of.dwpd)
    share = lacking(why.get("share of the rating", unknown))
    if of.of_rating_percent is not None:
        share = Uncertain(of.of_rating_percent)
    return {
        "waf": Fact(lacking(unknown) if of.waf is None else waf, better="less"),
        "tbw": Fact(tbw, "B", better="more"),
        "dwpd": Fact(dwpd),
        "of_rating": Fact(share, "%"),
    }


FACTS = {"life": life}
