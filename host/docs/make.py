"""Writes the generated pages: `python host/docs/make.py`. Each is made from the code alone, and
tests/project/test_docs.py fails when a committed page differs."""

import argparse
import importlib
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import rooms  # noqa: E402

from ssdrig import cli  # noqa: E402
from ssdrig.base.errors import exit_codes  # noqa: E402
from ssdrig.cli import COMMANDS, GROUPS, OF_THE_CLONE  # noqa: E402
from ssdrig.plan import grammar  # noqa: E402
from ssdrig.publish.lake import query  # noqa: E402
from ssdrig.views import terms  # noqa: E402
from ssdrig.virtual.device import powerfaults  # noqa: E402
from ssdrig.virtual.flash import charge_loss  # noqa: E402

MADE = "<!-- Made by host/docs/make.py; change the code, then run it. -->"
BEGIN, END = "<!-- made: {} -->", "<!-- end -->"


def pages() -> dict[Path, str]:
    """Path -> text of every generated page."""
    files = rooms.modules()
    uses = rooms.of_the_host()
    house, inside = rooms.house(uses), rooms.joined(uses)
    map_page = HERE / "develop/architecture.md"
    text = with_part(map_page.read_text(), "rooms", rooms.table(house, house, files))
    virtual = [name for name in inside if name.startswith("virtual/")]
    text = with_part(text, "virtual", rooms.table(inside, virtual, files))
    drive_page = HERE / "use/virtual.md"
    drive_text = with_part(with_part(drive_page.read_text(), "faults", faults()), "charge", charge())
    lake_page = HERE / "use/lake.md"
    return {
        lake_page: with_part(lake_page.read_text(), "questions", ready()),
        drive_page: drive_text,
        HERE / "develop/rooms.svg": rooms.picture(house),
        map_page: text,
        HERE / "reference" / "commands.md": commands(),
        HERE / "reference" / "figures.md": figures(),
        HERE / "reference" / "exit-codes.md": codes(),
        HERE / "reference" / "plans.md": plans(),
    }


def with_part(text: str, name: str, part: str) -> str:
    """The text with what stands between its markers of `name` replaced."""
    before, rest = text.split(BEGIN.format(name) + "\n")
    return before + BEGIN.format(name) + "\n" + part + "\n" + END + rest.split(END, 1)[1]


def ready() -> str:
    """The questions of `ssdrig query`."""
    rows = [
        f"| `{question.name}` | {cell(' '.join((question.title, question.more)).strip())} |"
        for question in query.all_of().values()
    ]
    return "\n".join(["| question | what it answers |", "|---|---|", *rows])


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def parser_of(name: str) -> argparse.ArgumentParser:
    """A command's own parser, as the command line makes it."""
    whole = cli.parser_of({name: importlib.import_module(COMMANDS[name][0])})
    below = next(action for action in whole._actions if isinstance(action, argparse._SubParsersAction))
    return below.choices[name]


def written(action: argparse.Action) -> str:
    """An argument as a person types it: `--op PERCENT`, `RUN ...`."""
    value = action.metavar or ("{" + ",".join(map(str, action.choices)) + "}" if action.choices else None)
    value = " ".join(value) if isinstance(value, tuple) else value or action.dest.upper()
    value += {"+": " ...", "*": " ..."}.get(str(action.nargs), "")
    if not action.option_strings:
        return f"[{value}]" if action.nargs in ("?", "*") else value
    if action.nargs == 0:
        return ", ".join(action.option_strings)
    return f"{', '.join(action.option_strings)} " + (f"[{value}]" if action.nargs == "?" else value)


def described(parser: argparse.ArgumentParser, level: int = 2, help: str = "") -> list[str]:
    """A command's section, and one for each of its own commands. argparse's own layout depends on the terminal and on
    the version of Python, so it is not used."""
    words = (parser.description or help).rstrip(".")
    out = [f"{'#' * level} {parser.prog}", "", f"{words[:1].upper()}{words[1:]}" + ("." if words else ""), ""]
    rows, below = [], []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help for choice in action._choices_actions}
            for name, child in action.choices.items():
                below += described(child, level + 1, helps.get(name) or "")
        elif action.dest != "help" and action.help != argparse.SUPPRESS:
            meaning = (action.help or "") % {**vars(action), "prog": parser.prog}
            meaning += " (required)" if action.required and action.option_strings else ""
            rows.append(f"| `{cell(written(action))}` | {cell(meaning)} |")
    if rows:
        out += ["| argument | meaning |", "|---|---|", *rows, ""]
    return out + below


def commands() -> str:
    """reference/commands.md, from each command's parser."""
    rows = [(group, name) for group, names in GROUPS.items() for name in names if name in COMMANDS]
    rows += [("", name) for name in COMMANDS if name not in {listed for _, listed in rows}]
    names = "\n".join(f"| {group} | [`{name}`](#ssdrig-{name}) | {COMMANDS[name][1]} |" for group, name in rows)
    lines = [
        MADE,
        "# Commands",
        "",
        "Results go to stdout, progress and messages to stderr. Exit codes: [exit-codes.md](exit-codes.md).",
        "`./ssdrig test [PYTEST-ARGUMENT ...]`: " + OF_THE_CLONE["test"] + ";",
        "`./ssdrig setup`: " + OF_THE_CLONE["setup"] + ".",
        "",
        "Quantities take units: `90` or `90s`, `5m`, `2h`; `8GiB`, `240GB`; `300mA`, `470uF`. A RUN is a folder,",
        "`latest`, an id or the last four digits of an id.",
        "",
        "| | command | does |",
        "|---|---|---|",
        names,
        "",
    ]
    for name in COMMANDS:
        section = described(parser_of(name))
        shown = getattr(importlib.import_module(COMMANDS[name][0]), "EXAMPLES", ())
        lines += [
            *section[:4],
            *(f"    ./ssdrig {words}    # {what}" for words, what in shown),
            *([""] if shown else []),
        ]
        lines += section[4:]
    return "\n".join(lines)


def figures() -> str:
    """reference/figures.md, from views/terms.py."""
    return (
        f"{MADE}\n# Figures\n\nWhat `report` prints and shows. Each figure belongs to a window of"
        f" the load; [methods.md](../how/methods.md) explains windows, notes and null.\n\n{terms.markdown()}\n"
    )


def charge() -> str:
    """Table of the constants of the model of retention."""
    it = charge_loss
    rows = [
        ("e1, e2", f"{it.E1:g}, {it.E2:g}", "RBER that is corrected at once, and by retries"),
        ("retries", f"{it.RETRIES}", f"the n-th from e1 · (e2 / e1)^((n − 1) / {it.RETRIES}) on"),
        ("σ", f"{it.SIGMA:g}", "of the logarithm of a page's factor"),
        ("k, a", f"{it.WEAR:g}, {it.A:g}", "wear"),
        ("h0, b", f"{it.H0:g} h, {it.B:g}", "age"),
        ("c, hc", f"{it.EARLY:g}, {it.EARLY_H:g} h", "loss within hours"),
        ("decoding", f"{it.ECC_NS / 1000:g} µs", "once more, of each retry"),
        ("pSLC", f"{it.SLC_SHARE:g}", "of the RBER of other cells"),
        *(
            (f"r0, {name}", f"{it.r0(name):.2e}", f"class time {it.class_hours(name):.0f} h at 30 °C")
            for name in it.UBER
        ),
    ]
    lines = ["| | value | |", "|---|---|---|", *(f"| {name} | {value} | {of} |" for name, value, of in rows)]
    return "\n".join(lines)


def faults() -> str:
    """The table of the virtual drive's faults, from virtual/device/powerfaults.py."""
    rows = ["| fault | p | other parameters | it does | it leads to |", "|---|---|---|---|---|"]
    for fault in powerfaults.FAULTS:
        others = ", ".join(f"`{name}` {usual}" for name, (usual, _, _) in fault.parameters.items())
        rows.append(f"| `{fault.name}` | {fault.p:g} | {others} | {fault.words} | {', '.join(fault.leads_to)} |")
    return "\n".join(rows)


CODES = (
    "What a command's exit code says: 0 means that all was done. Each kind of error has a code of its own, so that a",
    "script can tell a drive that is gone from a mistake in the command line; the words of the error are on stderr.",
)


def codes() -> str:
    """reference/exit-codes.md, from errors.py."""
    rows = [f"| {code} | {words} | {meaning} |" for code, (words, meaning) in sorted(exit_codes().items())]
    return "\n".join([MADE, "# Exit codes", "", *CODES, "", "| code | word | meaning |", "|---|---|---|", *rows, ""])


def plans() -> str:
    """reference/plans.md, from the shipped plans: what each of them is for, in its own words."""
    read = [grammar.read(*grammar.find(name)) for name in grammar.shipped()]
    lines = [
        MADE,
        "# Plans",
        "",
        "The tests that come with ssdrig, each with what it shows and where its method comes from. `./ssdrig run NAME`",
        "carries one out, `--variant` another form of it, `--dry-run` says what it takes; `./ssdrig plans show NAME`",
        "prints the whole file. What they measure, side by side: [methods.md](../how/methods.md).",
        "",
        *[f"* [`{plan.name}`](#{plan.name}): {plan.title}" for plan in read],
    ]
    for plan in read:
        variants = ", ".join(f"`{name}`" for name in plan.variants) or "none"
        lines += ["", f"## {plan.name}", "", f"**{plan.title}.** {plan.about}", "", f"Source: {plan.source}", ""]
        lines += [f"Needs {', '.join(plan.needs) or 'nothing'}; variants: {variants}."]
    return "\n".join([*lines, ""])


def main() -> None:
    for path, text in pages().items():
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            print(path.relative_to(HERE.parents[1]))


if __name__ == "__main__":
    main()
