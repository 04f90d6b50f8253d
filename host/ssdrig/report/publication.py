"""What the reviewer adds to a review: review.toml in its folder, with prose, photos, facts of a teardown and prices."""

import base64
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from ssdrig.base.errors import UsageError
from ssdrig.base.words import do_you_mean
from ssdrig.plan import document, reviews
from ssdrig.report import price
from ssdrig.report.price import Price
from ssdrig.runs import integrity

NAME = "review.toml"
TEXTS = ("title", "by", "summary", "conclusion", "price_note")
LISTS = ("pros", "cons")
TABLES = ("specification", "test_system", "price", "teardown", "section")
KEYS = (*TEXTS, *LISTS, *TABLES, "photo")
MOST_PHOTOS, MOST_PHOTO_BYTES = 12, 400_000
KINDS = {b"\xff\xd8\xff": "jpeg", b"\x89PNG\r\n\x1a\n": "png", b"RIFF": "webp"}  # by how the files begin


@dataclass(frozen=True)
class Photo:
    """kind: of the image, "jpeg", "png" or "webp"; content: of its file"""

    kind: str
    content: bytes
    caption: str


@dataclass(frozen=True)
class Publication:
    """texts: by TEXTS
    lists: of texts, by LISTS
    prices: by the model of a drive
    specification: what the maker states, by its name, "Controller"
    test_system: by its name, "Mainboard"
    teardown: a fact by its name, "Controller"
    sections: prose by the title of a section
    photos: in their order"""

    texts: Mapping[str, str] = field(default_factory=dict)
    prices: Mapping[str, Price] = field(default_factory=dict)
    lists: Mapping[str, Sequence[str]] = field(default_factory=dict)
    specification: Mapping[str, str] = field(default_factory=dict)
    test_system: Mapping[str, str] = field(default_factory=dict)
    teardown: Mapping[str, str] = field(default_factory=dict)
    sections: Mapping[str, str] = field(default_factory=dict)
    photos: Sequence[Photo] = ()


def read(folder: Path) -> Publication:
    """The review.toml of a review's folder; without the file an empty one. Raises UsageError for an unknown key, a
    value of another kind, and a photo that is not an image in the folder."""
    path = folder / NAME
    if not path.exists() and not path.is_symlink():
        return Publication()
    tables = document.parse(document.load(path, NAME, "shorten or repair it, or take it away"), NAME)
    for key in tables:
        if key not in KEYS:
            raise UsageError(f"a key of {NAME}", repr(key), do_you_mean(key, KEYS))
    texts = {key: _text(tables[key], key) for key in TEXTS if key in tables}
    by_table = {key: _texts(tables.get(key, {}), key) for key in TABLES}
    titles = [section.title for section in reviews.sections()]
    for title in by_table["section"]:
        if title not in titles:
            raise UsageError(f"a section of the page in {NAME}", repr(title), do_you_mean(title, titles))
    prices = {model: price.parse(text) for model, text in by_table["price"].items()}
    photos = tables.get("photo", [])
    if not isinstance(photos, list) or len(photos) > MOST_PHOTOS:
        raise UsageError(f"at most {MOST_PHOTOS} [[photo]] in {NAME}", repr(photos)[:80], "leave some out")
    return Publication(
        texts,
        prices,
        {key: _list(tables[key], key) for key in LISTS if key in tables},
        by_table["specification"],
        by_table["test_system"],
        by_table["teardown"],
        by_table["section"],
        tuple(_photo(folder, photo) for photo in photos),
    )


def unused_prices(publication: Publication, models: Collection[str]) -> list[str]:
    """A line for each price of a model that no drive of the page has."""
    known = ", ".join(repr(model) for model in dict.fromkeys(models))
    unused = (model for model in publication.prices if model not in models)
    return [f"[price] of {NAME}: no drive of the page is a {model!r}; there are {known}" for model in unused]


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"a text as {key} of {NAME}", repr(value)[:80], f'{key} = "…"')
    return value.strip()


def _list(value: Any, key: str) -> list[str]:
    if not isinstance(value, list):
        raise UsageError(f"a list of texts as {key} of {NAME}", repr(value)[:80], f'{key} = ["…", "…"]')
    return [_text(entry, key) for entry in value]


def _texts(value: Any, key: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise UsageError(f"a table [{key}] in {NAME}", repr(value)[:80], f"write [{key}] on a separate line")
    return {name: _text(text, f"{key}.{name}") for name, text in value.items()}


def _photo(folder: Path, table: Any) -> Photo:
    if not isinstance(table, dict) or set(table) != {"file", "caption"}:
        raise UsageError(f"file and caption of each [[photo]] in {NAME}", repr(table)[:80], 'caption = "…"')
    name, caption = _text(table["file"], "file"), _text(table["caption"], "caption")
    expected = f"a photo in the review's folder, a JPEG, PNG or WebP of at most {MOST_PHOTO_BYTES // 1000} kB"
    if Path(name).name != name or name in (".", ".."):
        raise UsageError(expected, f"{name!r}, a path", "put it into the folder and name the file alone")
    try:
        content = integrity.content(folder.joinpath(name))
    except OSError as error:
        raise UsageError(expected, f"{name!r}: {error.strerror or error}", "correct its name") from error
    kind = next((kind for begin, kind in KINDS.items() if content.startswith(begin)), None)
    if kind is None or len(content) > MOST_PHOTO_BYTES:
        raise UsageError(expected, f"{name!r} of {len(content)} bytes", "save it as a smaller JPEG")
    return Photo(kind, content, caption)


def prose(text: str) -> str:
    """Paragraphs, which empty lines part."""
    parts = [" ".join(part.split()) for part in text.split("\n\n")]
    return "".join(f"<p>{escape(part)}</p>" for part in parts if part)


def beginning(publication: Publication) -> str:
    """The author and the summary."""
    texts = publication.texts
    by = f'<p class="soft">By {escape(texts["by"])}</p>' if "by" in texts else ""
    body = by + prose(texts.get("summary", ""))
    return f'<section class="prose" aria-label="Summary">{body}</section>' if body else ""


def device(publication: Publication) -> str:
    """Photos and facts of the teardown."""
    if not publication.photos and not publication.teardown:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>'
        for name, text in publication.teardown.items()
    )
    table = f'<div class="scroll"><table class="about">{rows}</table></div>' if rows else ""
    photos = "".join(_figure(photo) for photo in publication.photos)
    shown = f'<div class="photos">{photos}</div>' if photos else ""
    return f'<section aria-labelledby="device-h"><h2 id="device-h">The device</h2>{table}{shown}</section>'


def _figure(photo: Photo) -> str:
    data = base64.b64encode(photo.content).decode()
    caption = escape(photo.caption)
    return (
        f'<figure><img alt="{caption}" src="data:image/{photo.kind};base64,{data}"><figcaption>{caption}</figcaption>'
        "</figure>"
    )


def conclusion(publication: Publication) -> str:
    """The reviewer's last words, and what speaks for and against the drive; "" without any."""
    body = prose(publication.texts.get("conclusion", ""))
    lists = ""
    for key, title in zip(LISTS, ("For it", "Against it"), strict=True):
        entries = "".join(f"<li>{escape(text)}</li>" for text in publication.lists.get(key, ()))
        lists += f'<div class="{key}"><h3>{title}</h3><ul>{entries}</ul></div>' if entries else ""
    body += f'<div class="pros-cons">{lists}</div>' if lists else ""
    if not body:
        return ""
    return f'<section class="prose" aria-labelledby="end-h"><h2 id="end-h">Conclusion</h2>{body}</section>'
