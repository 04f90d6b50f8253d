"""`os` with a urandom whose first answer is set by the cable, so that a boot's truth can be found by its number."""

from uos import *
from uos import urandom as _urandom

first = None


def urandom(n):
    global first
    if first is not None and len(first) == n:
        answer, first = first, None
        return answer
    return _urandom(n)
