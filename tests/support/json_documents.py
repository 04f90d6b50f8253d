"""What a command prints with --json, against its schema in schemas/json: a JSON Schema (draft 2020-12) of a few words.
A schema with another word than these is refused, so that nothing it says goes unchecked. Readers of these documents
must bear fields that they do not know (fields may be added); here each field that is printed stands in its schema."""

import functools
import json
import math
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "schemas/json"
TYPES = {
    "null": lambda v: v is None,
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v),
    "string": lambda v: isinstance(v, str),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
}
WORDS = {"$schema", "title", "description", "type", "enum", "properties", "required", "items", "additionalProperties"}


def wrong(value, schema: dict, at: str = "$") -> Iterator[str]:
    """What of a value is not as its schema says. Raises ValueError for a schema with words that are not known here."""
    if set(schema) - WORDS:
        raise ValueError(f"{at}: {sorted(set(schema) - WORDS)}")
    kinds = schema.get("type", list(TYPES))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not any(TYPES[kind](value) for kind in kinds):
        yield f"{at}: {_short(value)} is no {' or '.join(kinds)}"
        return
    if value not in schema.get("enum", [value]):
        yield f"{at}: {_short(value)} is none of {schema['enum']}"
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from wrong(item, schema.get("items", {}), f"{at}[{i}]")
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        yield from (f"{at}: {name} is missing" for name in schema.get("required", ()) if name not in value)
        for name, item in value.items():
            if name in known or isinstance(others, dict):
                yield from wrong(item, known.get(name, others), f"{at}.{name}")
            elif "properties" in schema:
                yield f"{at}: {name} is in no schema"


def _short(value) -> str:
    return repr(value)[:60]


@functools.cache
def schema(name: str) -> dict:
    return json.loads((FOLDER / f"{name}.schema.json").read_text("utf-8"))


def figures(document: dict) -> dict:
    """What `report --json` prints of a run, or its figures.json, if it is as its schema says."""
    return checked("report", document)


def checked(name: str, document):
    """The document, if it is as its schema says."""
    errors = [*wrong(document, schema(name))]
    assert not errors, f"{name}.schema.json: {errors[:5]}"
    return document
