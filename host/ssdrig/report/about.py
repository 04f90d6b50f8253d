"""Drive, method and set-up of the test, as a table of the report: facts that all runs share once, then a row a run; and
the settings of drive and host, with those that deviate from a good set-up (reading/set_up.py). Pure."""

import datetime
import re
from collections.abc import Mapping, Sequence
from html import escape

from ssdrig.base.errors import SsdrigError
from ssdrig.base.words import counted, size
from ssdrig.plan import document
from ssdrig.reading import host_power, set_up
from ssdrig.reading.rundata import RunData
from ssdrig.reading.smart import unhealthy as reading_of
from ssdrig.report import words
from ssdrig.runs import imported
from ssdrig.views.terms import number

STATES = {
    "complete": ("✓", "complete"),
    "failed": ("✕", "failed"),
    "interrupted": ("■", "interrupted"),
    "died": ("†", "aborted: the process ended unexpectedly"),
    "running": ("…", "still running"),
}
NOT_KNOWN = "not recorded"
MOST_IDS = 6  # of runs, below a plot
NUMBER = re.compile(r"\d+(\.\d+)?( [kMGT]?B)?")


def started(data) -> str:
    """When a run began, UTC."""
    utc_s = data.header["started"]["utc_ns"] / 1e9
    return datetime.datetime.fromtimestamp(utc_s, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def days(runs: Sequence) -> str:
    """The day on which runs began, or the first and the last."""
    begun = sorted({started(data)[:10] for data in runs})
    return begun[0] if len(begun) == 1 else f"{begun[0]} to {begun[-1]}"


def source(runs: Sequence) -> str:
    """The line below a saved plot: plan and variant of the first run, where its method comes from, the runs.
    "consistency --variant quick, AnandTech 7074; run-1, run-2"."""
    plan = runs[0].header.get("plan") or {}
    try:
        method = document.parse(plan["text"], "run.json").get("source")
    except (SsdrigError, KeyError, TypeError, AttributeError):
        method = None
    variant = f" --variant {plan['variant']}" if plan.get("variant") else ""
    named = f"{plan.get('name') or 'unknown plan'}{variant}" + (f", {method}" if isinstance(method, str) else "")
    ids = [str(data.header["run"]) for data in runs]
    return f"{named}; {', '.join(ids[:MOST_IDS])}{' …' * (len(ids) > MOST_IDS)}"


def facts(data, figure: dict) -> dict[str, str]:
    """Facts of one run (analysis.RunData and its figures) that a reader of a test needs first, in the table's order."""
    drive, host, k = data.header["drive"], data.header.get("host") or {}, figure["time_dilation"] or 1
    before, _ = set_up.of(data.events)
    raw = figure["raw_nand_bytes"]
    out = {
        "Started": started(data),
        "Drive": str(drive.get("model") or "unknown drive"),
        "Serial": str(figure["serial"] or NOT_KNOWN),
        "Firmware": str(drive.get("firmware") or NOT_KNOWN),
        "Capacity": size(drive["capacity_bytes"]) if drive.get("capacity_bytes") else NOT_KNOWN,
        "Raw NAND": f"{size(raw)}{' (assumed)' * figure['raw_nand_assumed']}" if raw else "not known",
        "Tested": size(figure["tested_bytes"]) if figure["tested_bytes"] else NOT_KNOWN,
        "Link": link(drive, before),
        "Purge": str(figure["purge"] or "none recorded"),
        "Load": words.description(data, figure),
        "Length": f"{number(figure['duration_s'], 0)} s" if figure["duration_s"] else NOT_KNOWN,
        "Host": machine(host),
        "Load generator": str(host.get("fio") or NOT_KNOWN),
        "Rig": rig(data),
        "Calibration": calibration(data),
        "Made with": f"ssdrig {data.header.get('ssdrig')}",
    }
    if figure["preset"]:
        out["SIMULATED preset"] = str(figure["preset"])
    if k != 1:
        out["Time-dilated"] = f"1 s of drive time took {k:g} s; all figures are in drive time"
    return out


def link(drive: Mapping, before: Mapping) -> str:
    """ "NVMe, PCIe 4.0 x4": the link as the drive reported it and as it was before the run."""
    conditions = before.get("found") or {}
    speed, lanes = conditions.get("link.current_link_speed"), conditions.get("link.current_link_width")
    link = f"{speed}{f' ×{lanes}' if lanes else ''}" if speed else ""
    kind = str(drive.get("interface") or "")
    parts = [f"SIMULATED, over {kind}" if drive.get("preset") and kind else kind, str(drive.get("link") or link)]
    return ", ".join(filter(None, parts)) or NOT_KNOWN


def machine(host: Mapping) -> str:
    known = [host.get("cpu"), f"{host['cpus']} CPUs" if host.get("cpus") else None]
    known.append(f"kernel {host['kernel']}" if host.get("kernel") else None)
    return ", ".join(str(value) for value in known if value) or NOT_KNOWN


def rig(data) -> str:
    """Chips, firmware, bus clocks and certificate of the instrument."""
    if data.header.get("rig") is None:
        return "none: power was not measured"
    if made := imported.of(data.header):
        return f"{made['source']}, imported from {made.get('file')}; {made.get('clock')}"
    hello = _hello(data)
    rails = [f"{rail.name} {(rail.facts or {}).get('chip', '')}".strip() for rail in data.rails if rail.facts]
    parts = [hello.get("board"), f"firmware {hello['firmware']}" if hello.get("firmware") else None, ", ".join(rails)]
    parts += [f"{bus['bus']} at {bus['Hz'] / 1000:.0f} kHz" for bus in hello.get("buses") or ()]
    certificate = next((event for event in data.events if event["kind"] == "rig.certificate"), None)
    if certificate:
        age = (
            f"{certificate['id']}, {certificate['age_s'] / 86400:.0f} days old"
            if certificate["id"]
            else f"none ({certificate['why']})"
        )
        parts.append(f"certificate {age}")
    simulated = "SIMULATED " if data.header["rig"].get("simulated") else ""
    return simulated + (", ".join(str(part) for part in parts if part) or "without a hello")


def calibration(data) -> str:
    """What each rail was calibrated by, or that the limits of the data sheet stand for it."""
    if made := imported.of(data.header):
        return f"accuracy {made.get('accuracy_words')}"
    rails = dict.fromkeys(_of_rail(rail.facts) for rail in data.rails if rail.facts)
    return "; ".join(rails) or NOT_KNOWN


def _of_rail(facts: Mapping) -> str:
    facts_of_rail = facts.get("calibration") or {}
    if isinstance(stated := facts.get("accuracy"), Mapping) and not stated.get("chip"):
        return f"not known: {stated['unknown']}" if stated.get("unknown") else "limits that the meter's maker states"
    known = [
        f"{quantity} on {of.get('date', 'an unknown day')} with {of.get('meter', 'no named meter')}"
        for quantity in ("V", "I")
        if isinstance(of := facts_of_rail.get(quantity), Mapping)
    ]
    return "; ".join(known) or "none: limits of the chip's data sheet and of the shunt"


def _hello(data) -> Mapping:
    return next((event.get("hello") or {} for event in reversed(data.events) if event["kind"] == "rig.hello"), {})


def unfinished(state: str, why: str | None) -> str:
    """The warning of a run that is not complete, or whose end has a reason."""
    nothing = "The run still goes on" if state == "running" else "No reason was recorded"
    return f'<p class="warn">{escape(why or nothing)}. The figures cover the recorded part only.</p>'


def unhealthy(runs: Sequence) -> str:
    """A line for each run whose last reading of SMART is not "ok", with the reasons; a drive in such a state may not
    perform as its model does."""
    out = []
    for data in runs:
        words = reading_of(data)
        if words:
            out.append(f'<p class="warn">{escape(words)}.</p>')
    return "".join(dict.fromkeys(out))


def unfit(runs: Sequence[RunData], names: Sequence[str]) -> str:
    """The first deviation of host and drive from a good set-up and the number of others, as a line of a page's head;
    "" without any.

    names: of the runs; of one run it is not shown"""
    lines = _deviations([(name, *_settings_of(run)) for name, run in zip(names, runs, strict=True)])
    if not lines:
        return ""
    more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
    return f'<p class="warn">Not as it should be: {escape(lines[0])}{more}. <a href="#host">Host and drive</a></p>'


def section(runs: Sequence, figures: Sequence[dict], names: Sequence) -> str:
    """Facts that all runs share, then those in which they differ."""
    facts_of = [facts(data, figure) for data, figure in zip(runs, figures, strict=True)]
    keys = list(dict.fromkeys(key for row in facts_of for key in row))
    own = [key for key in keys if len({row.get(key) for row in facts_of}) > 1]
    out = ['<section aria-labelledby="about-h"><h2 id="about-h">Test set-up</h2>']
    rows = "".join(
        f'<tr><th scope="row">{escape(key)}</th><td class="prose">{escape(facts_of[0][key])}</td></tr>'
        for key in keys
        if key not in own
    )
    if rows:
        out.append(f'<div class="scroll"><table class="about">{rows}</table></div>')
    heads = "".join(f'<th scope="col">{escape(words_)}</th>' for words_ in ("Run", "State", *own))
    out.append(f'<div class="scroll"><table class="about of-runs"><thead><tr>{heads}</tr></thead><tbody>')
    for i, (figure, shown, (_, _, label, _)) in enumerate(zip(figures, facts_of, names, strict=True)):
        sign, state_words = STATES.get(figure["state"], ("?", figure["state"]))
        state = f'<span class="state {escape(figure["state"])}"><b aria-hidden="true">{sign}</b> '
        state += f"{escape(state_words)}</span>"
        warn = unfinished(figure["state"], figure["why"]) if figure["state"] != "complete" else ""
        cells = "".join(f'<td class="prose">{escape(shown.get(key) or "–")}</td>' for key in own)
        out.append(
            f'<tr data-run="{i}"><th scope="row">{escape(label)}<small><code>{escape(figure["run"])}</code></small>'
            f'</th><td class="prose">{state}{warn}</td>{cells}</tr>'
        )
    return "".join(out) + "</tbody></table></div></section>"


def host_sections(runs: Sequence[RunData], names: Sequence[str]) -> str:
    """The set-up of each run that has its conditions; unfit() leads to the first."""
    return "".join(map(host_section, runs, names)).replace("<section>", '<section id="host">', 1)


def host_section(data: RunData, name: str = "") -> str:
    """ "" for a run without its conditions. A run of several parts has those of its main part."""
    before, after, header = _settings_of(data)
    if not before:
        return ""
    title = "Host and drive" + (f": {name}" if name else "")
    wrong = _wrong(before, after, header)
    body = f"{_wrong_words(wrong)}{_conditions(before, after, header)}{host_power_table(data.events)}"
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def host_power_table(events: Sequence[dict]) -> str:
    """Mean power of the host in each step, by zone and by its BMC; "" where none was read."""
    steps = host_power.of_steps(events)
    zones = list(dict.fromkeys(zone for step in steps for zone in step.power_W))
    if not zones:
        return ""
    head = "".join(f'<th scope="col">{escape(zone)} <span class="unit">W</span></th>' for zone in zones)
    out = ['<h3>Power of the host</h3><p class="soft">Mean of each step by RAPL, every 10 s, and of the whole host as']
    out.append(" its BMC reports it. It is not part of the drive's power.</p>")
    out.append('<div class="scroll"><table><thead><tr><th scope="col">Step</th><th scope="col">Covers <span')
    out.append(f' class="unit">s</span></th>{head}</tr></thead><tbody>')
    for step in steps:
        watts = "".join(f"<td>{number(step.power_W.get(zone), 2)}</td>" for zone in zones)
        out.append(f'<tr><th scope="row">{escape(step.path)}</th><td>{number(step.covered_s, 0)}</td>{watts}</tr>')
    return "".join(out) + "</tbody></table></div>"


def hosts_of_review(runs: Mapping[str, RunData]) -> str:
    """The settings of a review's runs, by their names: each deviation from a good set-up once, and the table of the
    first run."""
    conditions = [(name, *_settings_of(run)) for name, run in runs.items()]
    known = [(name, before, after, header) for name, before, after, header in conditions if before]
    if not known:
        return ""
    name, *first = known[0]
    table = f"<details><summary>Settings during {escape(name)}</summary>{_conditions(*first)}</details>"
    return f'<section id="host"><h2>Host and drive</h2>{_wrong_words(_deviations(known))}{table}</section>'


def _deviations(conditions: Sequence[tuple[str, dict, dict, dict]]) -> list[str]:
    """Each deviation from a good set-up once, with the names of its runs; numbers apart, alike ones are one."""
    wrong: dict[str, list[str]] = {}
    for name, before, after, header in conditions:
        for line in _wrong(before, after, header) if before else ():
            wrong.setdefault(line, []).append(name)
    alike: dict[str, dict[str, list[str]]] = {}  # numbers left out: lines
    for line, names in wrong.items():
        alike.setdefault(NUMBER.sub("", line), {})[line] = names
    lines = []
    for of in alike.values():
        (line, names), more = next(iter(of.items())), sum(map(len, of.values()))
        others = f"; alike in {counted(more - len(names), 'other run')}" if len(of) > 1 else ""
        lines.append(f"{line} ({', '.join(names)}{others})" if len(conditions) > 1 else line)
    return lines


def _settings_of(data: RunData) -> tuple[dict, dict, dict]:
    """The events `conditions` before and after the run, and its header."""
    return *set_up.of(data.events), data.header


def _wrong(before: Mapping, after: Mapping, header: Mapping) -> list[str]:
    link = (header.get("drive") or {}).get("link") or ""
    cpus, simulated = (header.get("host") or {}).get("cpus"), bool(header.get("simulated"))
    return set_up.wrong(before, after, cpus, simulated, link)


def _wrong_words(wrong: Sequence[str]) -> str:
    if not wrong:
        return '<p class="soft">Nothing seen that was not as it should be.</p>'
    items = "".join(f"<li>{escape(line)}</li>" for line in wrong)
    return f'<p class="warn">Not as it should be:</p><ul class="warn">{items}</ul>'


def _conditions(before: Mapping, after: Mapping, header: Mapping) -> str:
    host = header.get("host") or {}
    lines = [
        set_up.Line(label, str(host[key]), "")
        for label, key in (("fio", "fio"), ("Python", "python"), ("CPUs", "cpus"))
        if host.get(key)
    ]
    lines += set_up.lines(before, after)
    later = any(line.after for line in lines)
    heads = ["", "before the run", *(["after it"] if later else [])]
    head = "".join(f'<th scope="col" class="prose">{escape(title)}</th>' for title in heads)
    body = "".join(
        f'<tr><th scope="row">{escape(line.words)}</th><td class="prose">{escape(line.before)}</td>'
        + (f'<td class="prose">{escape(line.after)}</td>' if later else "")
        + "</tr>"
        for line in lines
    )
    table = f'<table class="steps"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    out = f'<div class="scroll">{table}</div>'
    if lacking := set_up.unknown(before):
        out += f'<p class="soft">Not known: {escape("; ".join(lacking))}.</p>'
    return out + ("" if after else '<p class="soft">The run ended without a second reading.</p>')
