"""retain: write the data, read a twentieth of it, seal the drive with a manifest, switch its power off."""

from ssdrig.drive.wear.retention import REQUIREMENTS
from ssdrig.plan.kinds.keys import RANGE, Key
from ssdrig.plan.kinds.retention_words import RATED

KEYS = {"range": RANGE, "class": Key("word", RATED, words=(RATED, *REQUIREMENTS)), "rest": Key("pause", "60 s")}
NEEDS: set[str] = set()
