"""Ready-made queries: questions/NAME.sql, described by the comment in its first lines."""

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).with_name("questions")


class Question(NamedTuple):
    name: str
    title: str
    more: str  # what else there is to know; "" if nothing
    sql: str


def all_of() -> dict[str, Question]:
    """By name."""
    questions = (of(path.stem, path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.sql")))
    return {question.name: question for question in questions}


def of(name: str, text: str) -> Question:
    lines = text.splitlines()
    comment = [
        line.removeprefix("--").strip() for line in lines[: next(i for i, x in enumerate(lines) if x[:2] != "--")]
    ]
    return Question(name, comment[0], " ".join(comment[1:]), "\n".join(lines[len(comment) :]))
