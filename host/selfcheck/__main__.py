"""`ssdrig selfcheck NAME...`: run the named benchmarks and print name, value, unit and limit of each figure."""

import ast
import importlib
import json
import pkgutil
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import selfcheck
from ssdrig.base.errors import JournalError, UsageError
from ssdrig.base.terminal import wrapped
from ssdrig.base.words import do_you_mean

WIDE = (240, 24)  # when it goes to a file there is no line to wrap
EXAMPLES = (("selfcheck", "what there is"), ("selfcheck energy wa", "two of them"))
COUNTS = {
    "seeds": "powerloss-recall, powerloss-injector: number of campaigns with each fault",
    "cuts": "powerloss-aim, powerloss-long, powerloss-injector: number of cuts, for a shorter check",
    "kills": "powerloss-kill: number of kills, for a shorter check",
    "plans": "busy, plans: check only the first N plans",
    "pairs": "busy-claims, powerloss-ready: number of pairs of runs",
    "rows": "plans: rows measured before, which are not measured again; new rows are appended",
}
FILES = {"rows"}  # of COUNTS: those that are a file


def takes() -> dict[str, set[str]]:
    """The names of all checks, and which of COUNTS each takes: read from the source, because their modules
    import packages that the set-up may have yet to install."""
    parameters: dict[str, set[str]] = {}
    for path in sorted(Path(selfcheck.__file__).parent.glob("*.py")):
        texts, functions, benches = {}, {}, ast.Dict([], [])
        for node in ast.parse(path.read_bytes()).body:
            if isinstance(node, ast.FunctionDef):
                functions[node.name] = {argument.arg for argument in node.args.args}
            elif isinstance(node, ast.Assign) and isinstance(name := node.targets[0], ast.Name):
                if isinstance(node.value, ast.Constant):
                    texts[name.id] = node.value.value
                elif name.id == "BENCHES" and isinstance(node.value, ast.Dict):
                    benches = node.value
        for key, value in zip(benches.keys, benches.values, strict=True):
            named = texts[key.id] if isinstance(key, ast.Name) else ast.literal_eval(key or "")
            bench = value.elts[1] if isinstance(value, ast.Tuple) else value
            parameters[named] = functions.get(ast.unparse(bench), set()) & {*COUNTS}
    return parameters


def registry() -> dict:
    """name -> (what it shows, function) of all modules of this package."""
    benches: dict[str, tuple] = {}
    for module in pkgutil.iter_modules(selfcheck.__path__):
        if module.name != "__main__":
            benches |= getattr(importlib.import_module(f"selfcheck.{module.name}"), "BENCHES", {})
    return benches


def add_arguments(parser) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="what to check (default: list them); `all`: everything"
    )
    parser.add_argument("--list", action="store_true", help="list the names and what each shows")
    parser.add_argument("--json", action="store_true", help="print one JSON object per figure on stdout")
    for option, words in COUNTS.items():
        kind = {"metavar": "FILE"} if option in FILES else {"type": int, "metavar": "N"}
        parser.add_argument(f"--{option}", **kind, help=words)


def figures(name: str, bench: Callable[..., list], how: dict[str, int | str]) -> list:
    """What a bench returns. Raises JournalError where a run, or another process that it looks at, has failed."""
    try:
        return bench(**how)
    except subprocess.CalledProcessError as error:
        ended = f"signal {-error.returncode}" if error.returncode < 0 else f"exit code {error.returncode}"
        words = error.cmd if isinstance(error.cmd, str) else shlex.join(map(str, error.cmd))
        expected = f"what `selfcheck {name}` looks at to be carried out"
        raise JournalError(expected, f"{ended} of {words}", "see its output above") from error


def check(args) -> None:
    """Raises UsageError for a name that is no check's, and for a count that a check does not take."""
    known = takes()
    unknown = [name for name in args.names if name not in known]
    if unknown and args.names != ["all"]:
        do = do_you_mean(unknown[0], known)
        raise UsageError("names of `./ssdrig selfcheck --list`", ", ".join(unknown), do)
    names = list(known) if args.names == ["all"] else args.names
    for option in COUNTS:
        if (given := getattr(args, option)) is None:
            continue
        seen, do = f"--{option} {given} with {', '.join(names) or 'no name'}", f"leave --{option} out"
        if not names or not all(option in known[name] for name in names):
            raise UsageError(f"--{option} with a bench that has {option}", seen, do)
        if option not in FILES and given < 1:
            raise UsageError(f"--{option} of at least 1", seen, do)


def command(args) -> int:
    """Exit code 0 when each limit is met, 1 when one is missed."""
    check(args)
    benches = registry()
    if args.list or not args.names:
        columns, width = shutil.get_terminal_size(WIDE).columns, max(map(len, benches)) + 1
        for name, (words, _) in benches.items():
            print(wrapped(words, columns, f"{name:{width}} ", " " * (width + 1)))
        return 0
    names = list(benches) if args.names == ["all"] else args.names
    met = True
    how = {option: given for option in COUNTS if (given := getattr(args, option)) is not None}
    for name in names:
        started = time.monotonic()
        for figure in figures(name, benches[name][1], how):
            met &= figure.met
            if args.json:
                print(json.dumps({"bench": name, **figure._asdict()}), flush=True)
            else:
                verdict = "ok" if figure.met else "SHORT"
                print(f"{figure.name:44} {figure.value:14,.6g} {figure.unit:12} {figure.bar:14} {verdict}", flush=True)
        print(f"[{name}: {time.monotonic() - started:.0f} s]", file=sys.stderr)
    return 0 if met else 1
