"""Verdicts as output of the OCP Test and Validation specification, version 2.0: JSON lines. Pure.

A run is a test run, a verdict a test step with its measurement, the validators of its limits, and a diagnosis: PASS,
FAIL, or UNKNOWN where nothing is claimed. (opencomputeproject/ocp-diag-core, json_spec.)"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence

from ssdrig.publish.verdicts.acceptance import CANNOT_TELL, FAIL, PASS, Case, worst
from ssdrig.publish.verdicts.junit import message

VERSION = {"major": 2, "minor": 0}
DIAGNOSIS = {PASS: "PASS", FAIL: "FAIL", CANNOT_TELL: "UNKNOWN"}
RESULT = {PASS: "PASS", FAIL: "FAIL", CANNOT_TELL: "NOT_APPLICABLE"}
DRIVE = "drive"  # its id among the hardware of the test run


def lines(run: Mapping, cases: Sequence[Case], utc: str | None, command: str, version: str) -> Iterator[str]:
    """The lines of one run. `run`: as junit.document() takes it; `utc`: now, as 2026-01-31T12:00:00Z; `command`: the
    words of this process; `version`: ssdrig's."""
    for number, artifact in enumerate(_artifacts(run, cases, command, version)):
        yield json.dumps({"sequenceNumber": number, "timestamp": utc, **artifact}, allow_nan=False)


def _artifacts(run: Mapping, cases: Sequence[Case], command: str, version: str) -> Iterator[dict]:
    yield {"schemaVersion": VERSION}
    yield {"testRunArtifact": {"testRunStart": _start(run, command, version)}}
    for number, case in enumerate(cases):
        for artifact in _step(case):
            yield {"testStepArtifact": {"testStepId": str(number), **artifact}}
    end = {"status": "COMPLETE", "result": RESULT[worst(cases)]}
    yield {"testRunArtifact": {"testRunEnd": end}}


def _start(run: Mapping, command: str, version: str) -> dict:
    drive = {"hardwareInfoId": DRIVE, "name": str(run.get("model") or "drive"), "partType": "SSD"}
    if run.get("serial"):
        drive["serialNumber"] = str(run["serial"])
    return {
        "name": "ssdrig check",
        "version": version,
        "commandLine": command,
        "parameters": {"run": str(run["run"]), "plan": str(run.get("plan"))},
        "dutInfo": {"id": str(run.get("serial") or run["run"]), "hardwareInfos": [drive]},
        "metadata": {"simulated": bool(run.get("simulated"))},
    }


def _step(case: Case) -> Iterator[dict]:
    yield {"testStepStart": {"name": case.name}}
    if case.value is not None and math.isfinite(case.value):
        bounds = (("GREATER_THAN_OR_EQUAL", case.least), ("LESS_THAN_OR_EQUAL", case.most))
        validators = [{"type": kind, "value": value} for kind, value in bounds if value is not None]
        measurement: dict = {
            "name": str(case.figure),
            "value": case.value,
            "validators": validators,
            "hardwareInfoId": DRIVE,
        }
        if case.unit:
            measurement["unit"] = case.unit
        if case.error is not None:
            measurement["metadata"] = {"expandedUncertainty": case.error, "coverageProbability": 0.95}
        yield {"measurement": measurement}
    kind = DIAGNOSIS[case.verdict]
    verdict = "-".join(["ssdrig", case.figure or "plan", (case.reason or kind).lower().replace(" ", "-")])
    diagnosis = {"verdict": verdict, "type": kind, "hardwareInfoId": DRIVE}
    if words := message(case):
        diagnosis["message"] = words
    yield {"diagnosis": diagnosis}
    yield {"testStepEnd": {"status": "COMPLETE"}}
