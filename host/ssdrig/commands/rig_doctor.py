"""ssdrig rig doctor: the rig's self-test and its certificate."""

import argparse
import contextlib
import io
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ssdrig.base import latch
from ssdrig.base.errors import NoAnswer, RigError, SsdrigError, UsageError
from ssdrig.base.progress import Progress
from ssdrig.meter.pico import certificate, ports
from ssdrig.meter.pico.certificate import Check
from ssdrig.meter.pico.session import session
from ssdrig.rig import answers, bring_up, builds, doctor, stored_steps
from ssdrig.rig.checks import of_hello
from ssdrig.switch.pico import unless_on

MARK = r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}"
GOES_ON = "the readings so far are kept; the same command goes on from there"
WORDS = "test the rig itself, without a drive and then with a resistor, and keep its certificate"


def subcommand(words) -> None:
    """Add doctor to the parsers of `ssdrig rig`."""
    sub = words.add_parser("doctor", help=WORDS, description=WORDS)
    ports.add_argument(sub)
    sub.add_argument(
        "--resistor",
        type=float,
        metavar="OHM",
        help="a power resistor for the drive's connector, e.g. 10: shunt, wires",
    )
    sub.add_argument("--rail", type=int, default=0, metavar="N", help="rail that gets the resistor (default 0)")
    sub.add_argument(
        "--bring-up",
        action="store_true",
        help="the first power-up, step by step: asks for your meter's readings, then tests; stops at the first fault",
    )
    sub.add_argument("--build", metavar="NAME|FILE", help="with --bring-up: the build, as for rig setup")
    sub.add_argument(
        "--board",
        choices=bring_up.BOARDS,
        help="with --bring-up: what carries it, where that is not the build's documented one",
    )
    sub.add_argument(
        "--afresh", action="store_true", help="with --bring-up: from step 1, whatever an interrupted one has stored"
    )
    sub.add_argument(
        "--mark", default="", metavar="NAME", help="with --bring-up: the name written on this rig, if you build several"
    )
    sub.add_argument("--to", type=Path, metavar="FILE", help="also write the certificate here")
    sub.add_argument("--yes", action="store_true", help="do not ask: nothing is connected, then the resistor is")
    sub.add_argument("--json", action="store_true", help="print the certificate")
    sub.set_defaults(act=_doctor)


def check(args: argparse.Namespace) -> None:
    """Raises UsageError."""
    if args.resistor is not None and not 0.5 <= args.resistor <= 10_000:
        raise UsageError("--resistor from 0.5 to 10000 Ohm", f"{args.resistor:g}", "correct it")
    if args.bring_up != (args.build is not None):
        raise UsageError("--bring-up and --build together", "one of them", "name the build that you have soldered")
    if args.bring_up and args.yes:
        raise UsageError("--bring-up without --yes", "both", "it asks for your meter's readings")
    if args.board and not args.bring_up:
        raise UsageError("--board with --bring-up", "--board alone", "add --bring-up --build NAME")
    if args.afresh and not args.bring_up:
        raise UsageError("--afresh with --bring-up", "--afresh alone", "add --bring-up --build NAME")
    if args.mark and not args.bring_up:
        raise UsageError("--mark with --bring-up", "--mark alone", "add --bring-up --build NAME")
    if args.mark and not re.fullmatch(MARK, args.mark):
        raise UsageError("--mark of letters, digits and ._-, 40 at most", repr(args.mark), "correct it")
    if args.build is not None:
        builds.read(args.build)
    if args.to:
        certificate.keep_others(args.to)


def _doctor(args: argparse.Namespace) -> int:
    resistor = None if args.resistor is None else (args.rail, args.resistor)
    if args.bring_up:
        key = stored_steps.Key(builds.read(args.build), args.board, args.mark)
        questions = answers.Questions(answer, _say, answers.TRIES if sys.stdin.isatty() else 1)
        with stored_steps.held(key):
            try:
                made = brought_up(args.port, key, resistor, questions, args.afresh)
            except (KeyboardInterrupt, SsdrigError):
                if stored_steps.read(key).done:
                    _say(GOES_ON)
                raise
            path = certificate.keep(made, args.to)
            if made["passed"]:
                with contextlib.suppress(OSError):
                    stored_steps.forget(key)
            elif stored_steps.read(key).done:
                _say(f"supply off, repair what FAIL names; {GOES_ON}")
    else:
        port = ports.find(args.port)
        connect = (lambda words: None) if args.yes else _ask
        connect("take the drive off: nothing may be connected at the drive's connectors while its power is cut")
        made = carried_out(port, resistor, connect, lambda check: _say(check.words()))
        path = certificate.keep(made, args.to)
    if args.json:
        print(json.dumps(made))
    count = sum(check["ok"] is True for check in made["checks"])
    simulated = " (SIMULATED)" if made["simulated"] else ""
    _say(
        f"{'PASSED' if made['passed'] else 'FAILED'}: {count} checks, {len(made['failed'])} failed,"
        f" {len(made['not_looked_at'])} not looked at; certificate {made['id']} of rig {made['serial']}{simulated}:"
        f" {path}"
    )
    return 0 if made["passed"] else RigError.exit_code


def brought_up(
    port: str | None,
    key: stored_steps.Key,
    resistor: tuple[int, float] | None,
    questions: answers.Questions,
    afresh: bool = False,
) -> dict:
    """The certificate of a first power-up. A step by hand that fails is the last one: the board is not asked then.
    Raises NoAnswer, UsageError (steps of another rig), and what examined() does; each answer is stored.

    afresh: no step that is stored is offered"""

    def keep(done: list[bring_up.Done], serial: str | None = None) -> None:
        try:
            stored_steps.keep(key, done, serial)
        except OSError as error:
            if not refused:
                questions.show(f"  readings are not stored, in case of an interruption: {error.strerror}")
            refused.append(error)

    refused: list[OSError] = []
    questions.show("where each point is, and the tools: hardware/README.md, First power-up")
    questions.show(
        "Q04 is that of the rail: Q104 of rail 0, Q204 of rail 1; the readings of several rails go in one line"
    )
    stored = stored_steps.Stored([], None) if afresh else _continued(stored_steps.read(key), key, questions)
    done = bring_up.by_hand(key.build, questions, key.board, stored.done, keep)
    if bring_up.first_failed(done):
        serial = "-".join(["not-powered", *([key.mark] if key.mark else [])])
        return _of_steps({"serial": serial, "build": key.build["build"]}, done, resistor)

    def connect(words: str) -> None:
        questions.ask(f"{words}, then press Enter: ")

    def accept(hello: dict) -> None:
        bring_up.same_build(key.build, hello)
        bring_up.same_rig(stored.serial, hello)
        keep(done, hello.get("serial"))

    hello, checks = examined(ports.find(port), resistor, connect, lambda check: questions.show(check.words()), accept)
    checks += bring_up.of_voltmeter(done, checks)
    checks += bring_up.without_resistor(key.build, resistor[0] if resistor else None)
    if all(check.ok is not False for check in checks):
        checks += bring_up.red_lamps(key.build, questions, key.board)
        checks += bring_up.run_held(key.build, questions)
    return _of_steps(hello, bring_up.grouped(done, checks), resistor)


def _continued(stored: stored_steps.Stored, key: stored_steps.Key, questions: answers.Questions) -> stored_steps.Stored:
    """The steps of an interrupted power-up that the builder goes on from."""
    done, nothing = stored.done, stored_steps.Stored([], None)
    if not done:
        return nothing
    last = done[-1]
    ended = [one.utc_ns for one in done if one.utc_ns is not None]
    at = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(max(ended) / 1e9)) if ended else "not yet"
    of = (
        f"rig {stored.serial}"
        if stored.serial
        else f"the rig marked {key.mark}"
        if key.mark
        else "a rig without a mark"
    )
    passed = last.utc_ns is not None and not last.failed
    under_way = last.step + 1 if passed else last.step
    questions.show(f"readings of this build, {of}; the last step ended: {at}")
    for one in done:
        for line in bring_up.summary(one.checks):
            questions.show(f"  step {one.step}: {line}")
    questions.show(
        "another rig: 1 (--mark NAME keeps two apart); after soldering: the step that reads what you touched"
    )
    how = "again" if last.failed else "where it stopped" if not passed else "which is next"
    words = f"go on at step {under_way}, {how} (Enter), or again from an earlier one (its number): "
    number = questions.answer(words, lambda text: _step(text, under_way))
    done = [one for one in done if one.step < number or one.step == number == under_way]
    if done:
        taken = sum(len(one.checks if one.step < number else one.again().checks) for one in done)
        questions.show(f"resumed at step {number}: {taken} readings are those of before")
    return stored_steps.Stored(done, stored.serial) if done else nothing


def _step(text: str, under_way: int) -> int:
    """The number of a step up to the one under way, the meaning of an empty line. Raises UsageError."""
    typed = text.strip().lower()
    if typed in ("", *answers.YES):
        return under_way
    if not typed.isdecimal() or not 1 <= int(typed) <= under_way:
        raise UsageError(f"a step from 1 to {under_way}, or Enter", repr(text.strip()), "1: all of them again")
    return int(typed)


def _of_steps(hello: dict, done: list[bring_up.Done], resistor: tuple[int, float] | None) -> dict:
    checks = [check for one in done for check in one.checks]
    return certificate.made(hello, checks, resistor, time.time_ns(), [one.document() for one in done])


def carried_out(port: str, resistor, connect: Callable[[str], None], say: Callable[[Check], None]) -> dict:
    """The certificate of the board at a port. Raises RigError, UsageError (no such rail)."""
    return certificate.made(*examined(port, resistor, connect, say), resistor, time.time_ns())


def examined(
    port: str,
    resistor,
    connect: Callable[[str], None],
    say: Callable[[Check], None],
    accept: Callable[[dict], None] = lambda hello: None,
) -> tuple[dict, list[Check]]:
    """The hello of the board at a port, and what the self-test finds. accept: gets the hello, raises UsageError for a
    board that is not to be looked at. Raises RigError, UsageError (no such rail)."""
    with session(port, stream=False) as rig_session:  # a board whose sensors are all silent reports why
        latch.refuse(latch.name_of(rig_session.hello, port))
        if resistor and resistor[0] not in [rail["rail"] for rail in rig_session.hello["rails"]]:
            raise UsageError("--rail with one of the rig's rails", f"{resistor[0]}", "see ./ssdrig rig info")
        hello = rig_session.hello
        accept(hello)
        try:
            rig_session.stream()
        except RigError as error:
            rails = [rail["rail"] for rail in hello["rails"]]
            checks = of_hello(hello) + list(doctor.silent(hello, [*rig_session.logs(), error.seen], rails))
            for check in checks:
                say(check)
        else:
            try:
                checks = doctor.examine(rig_session, say, resistor, connect)
            finally:
                unless_on(rig_session.rig, "`rig doctor`")
    return hello, checks


def answer(words: str) -> str:
    """A line that is typed. Raises NoAnswer at the end of standard input."""
    _say(words)
    # a photo's name may be any bytes; Python refuses to change this once a later line has arrived
    if isinstance(sys.stdin, io.TextIOWrapper) and sys.stdin.errors != "surrogateescape":
        sys.stdin.reconfigure(errors="surrogateescape")
    line = sys.stdin.readline()
    if not line:
        raise NoAnswer(f"an answer on standard input, to: {words.strip()}", "its end", "run it on a terminal")
    return line


def _ask(words: str) -> None:
    _say(f"{words}, then press Enter")
    if not sys.stdin.readline():
        raise NoAnswer("Enter on standard input", "its end", "run it on a terminal, or give --yes")


def _say(text: str) -> None:
    Progress().say(text)
