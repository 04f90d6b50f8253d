"""Verdicts as JUnit XML, in the form that Jenkins, GitLab and GitHub's actions read. Pure.

A run is a testsuite and a verdict a testcase. A miss is a `failure`; "cannot tell" is an `error`, so that no
reader takes it for a pass."""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence

from ssdrig.publish.verdicts.acceptance import CANNOT_TELL, FAIL, Case

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def document(suites: Sequence[tuple[Mapping, Sequence[Case]]]) -> bytes:
    """The XML of the cases of several runs. A run: {"run", "plan", "utc", "model", "serial", "simulated"}."""
    top = ElementTree.Element("testsuites", {"name": "ssdrig check", **_counts([c for _, of in suites for c in of])})
    for run, cases in suites:
        suite = ElementTree.SubElement(top, "testsuite", {"name": _text(run["run"]), **_counts(cases)})
        if run.get("utc"):
            suite.set("timestamp", str(run["utc"]).removesuffix("Z"))
        properties = ElementTree.SubElement(suite, "properties")
        for key in ("plan", "model", "serial", "simulated"):
            ElementTree.SubElement(properties, "property", {"name": key, "value": _text(run.get(key))})
        for case in cases:
            _case(suite, f"ssdrig.{_text(run.get('plan'))}", case)
    ElementTree.indent(top)
    return ElementTree.tostring(top, "utf-8", xml_declaration=True) + b"\n"


def _case(suite: ElementTree.Element, group: str, case: Case) -> None:
    element = ElementTree.SubElement(suite, "testcase", {"classname": group, "name": _text(case.name), "time": "0"})
    if case.verdict == FAIL:
        ElementTree.SubElement(element, "failure", {"type": "limit", "message": _text(message(case))})
    elif case.verdict == CANNOT_TELL:
        about = {"type": _text(case.reason or "unknown"), "message": _text(message(case))}
        ElementTree.SubElement(element, "error", about)
    elif case.why:
        ElementTree.SubElement(element, "system-out").text = _text(message(case))


def message(case: Case) -> str:
    """The verdict's reason, with its limits."""
    pairs = (("at least", case.least), ("at most", case.most))
    bounds = [f"{name} {value:g}" for name, value in pairs if value is not None]
    limit = f"limit: {' and '.join(bounds)} {case.unit}".strip() if bounds else ""
    return "; ".join(filter(None, [case.why, limit]))


def _counts(cases: Sequence[Case]) -> dict[str, str]:
    verdicts = [case.verdict for case in cases]
    failures, unknown = verdicts.count(FAIL), verdicts.count(CANNOT_TELL)
    return {"tests": str(len(cases)), "failures": str(failures), "errors": str(unknown), "skipped": "0", "time": "0"}


def _text(value: object) -> str:
    """What XML can hold; a serial may have control characters."""
    return _NOT_XML.sub("\ufffd", "" if value is None else str(value))
