"""For tests of what is said of broken plans: the parts of small plans, and what reading a text ends in."""

import pytest

from ssdrig.base.errors import UsageError
from ssdrig.plan import grammar

HEAD = 'schema = 1\nname = "x"\ntitle = "X"\nsource = "none"\nabout = "A test."\n'
LOAD = 'name = "load"\ndo = "load"\npattern = "random"\nread = 0\nblock = "4 KiB"\n'
STEP = f'[[step]]\n{LOAD}time = "60 s"\n'
REPEAT = """
[[step]]
name = "rounds"
do = "repeat"
{0}
  [[step.step]]
  name = "point"
  do = "load"
  pattern = "random"
  block = "4 KiB"
  {1}
"""


def refused(text, variant=None, sets=None):
    """The sentence of the UsageError that a text ends in, without the marks around names of keys."""
    with pytest.raises(UsageError) as raised:
        grammar.read(text, "my.toml", variant, sets)
    words = str(raised.value)
    assert words.isprintable() and len(words) < 1200, words
    return words.replace("`", "")


def steps(text):
    return {step.path: step for step in grammar.every(grammar.read(HEAD + text, "my.toml").steps)}
