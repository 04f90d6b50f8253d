"""review.toml: what the reviewer adds to a review."""

import os

import pytest

from ssdrig.base.errors import UsageError
from ssdrig.report import publication

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
WHOLE = """title = "The <i>Alpha</i>"
by = "A. Reviewer"
summary = "First.\\n\\nSecond."
conclusion = "Buy it."
price_note = "of 2026-11-20"
pros = ["Cheap", "Cool"]
cons = ["Slow"]
[specification]
DRAM = "none"
[test_system]
CPU = "A <fast> one"
[price]
"SIMULATED Alpha" = "89.90 USD"
[teardown]
Controller = "E18"
[section]
Power = "It sleeps."
[[photo]]
file = "front.png"
caption = "Front & back"
"""


def written(folder, text, **files):
    (folder / publication.NAME).write_text(text)
    for name, content in files.items():
        (folder / f"{name}.png").write_bytes(content)
    return folder


def test_all_that_it_may_have(tmp_path):
    of = publication.read(written(tmp_path, WHOLE, front=PNG))
    assert of.texts["by"] == "A. Reviewer" and of.prices["SIMULATED Alpha"].amount.value == 89.9
    assert of.lists == {"pros": ["Cheap", "Cool"], "cons": ["Slow"]}
    assert of.specification == {"DRAM": "none"} and of.test_system == {"CPU": "A <fast> one"}
    assert of.teardown == {"Controller": "E18"} and of.sections == {"Power": "It sleeps."}
    assert [(photo.kind, photo.content) for photo in of.photos] == [("png", PNG)]
    html = publication.beginning(of) + publication.device(of) + publication.conclusion(of)
    assert (
        "<p>First.</p><p>Second.</p>" in html and "Front &amp; back" in html and 'src="data:image/png;base64,' in html
    )


def test_without_it_nothing_is_added(tmp_path):
    of = publication.read(tmp_path)
    assert of == publication.Publication()
    assert publication.beginning(of) + publication.device(of) + publication.conclusion(of) == ""


@pytest.mark.parametrize(
    "text",
    [
        'titel = "x"',
        "title = 3",
        'title = ""',
        'price = "3 USD"',
        'pros = "cheap"',
        "cons = [3]",
        "[specification]\nDRAM = 1",
        '[price]\n"a" = 3',
        '[price]\n"a" = "cheap"',
        '[section]\n"Pover" = "x"',
        '[[photo]]\nfile = "../a.png"\ncaption = "x"',
        '[[photo]]\nfile = "none.png"\ncaption = "x"',
        '[[photo]]\nfile = "words.png"\ncaption = "x"',
        '[[photo]]\nfile = "pipe.png"\ncaption = "x"',
        '[[photo]]\nfile = "large.png"\ncaption = "x"',
        '[[photo]]\nfile = "words.png"',
        "photo = 3",
    ],
)
def test_what_is_wrong_in_it_is_refused(tmp_path, text):
    os.mkfifo(tmp_path / "pipe.png")
    large = PNG + bytes(publication.MOST_PHOTO_BYTES)
    with pytest.raises(UsageError):
        publication.read(written(tmp_path, text, words=b"no image", large=large))


def test_a_file_that_would_block_is_refused(tmp_path):
    os.mkfifo(tmp_path / publication.NAME)
    with pytest.raises(UsageError):
        publication.read(tmp_path)


@pytest.mark.parametrize("content", [b"#" * (65 << 10), b'title = "\xff"'])
def test_a_file_that_cannot_be_read_is_called_by_its_name(tmp_path, content):
    (tmp_path / publication.NAME).write_bytes(content)
    with pytest.raises(UsageError) as raised:
        publication.read(tmp_path)
    assert publication.NAME in raised.value.expected and "plan" not in raised.value.expected + str(raised.value.do)


def test_price_of_a_model_that_no_drive_has_is_named_with_those_that_there_are(tmp_path):
    of = publication.read(written(tmp_path, '[price]\n"Alhpa" = "9 USD"\n"Beta" = "8 USD"'))
    (line,) = publication.unused_prices(of, ["Alpha", "Beta", "Alpha"])
    assert "'Alhpa'" in line and line.endswith("'Alpha', 'Beta'")
    assert publication.unused_prices(of, ["Alhpa", "Beta"]) == []
