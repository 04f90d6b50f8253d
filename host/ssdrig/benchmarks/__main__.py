"""`ssdrig bench NAME...`: run the named benchmarks and print name, value, unit and bar of each figure."""

import importlib
import inspect
import json
import pkgutil
import sys
import time

from ssdrig import benchmarks
from ssdrig.errors import UsageError


def registry() -> dict:
    """name -> (what it shows, function) of all modules of this package."""
    found: dict[str, tuple] = {}
    for module in pkgutil.iter_modules(benchmarks.__path__):
        if module.name != "__main__":
            found |= getattr(importlib.import_module(f"ssdrig.benchmarks.{module.name}"), "BENCHES", {})
    return found


def add_arguments(parser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="which figures (see --list); `all` for every one")
    parser.add_argument("--list", action="store_true", help="name all figures and what each shows")
    parser.add_argument("--json", action="store_true", help="one JSON object per figure on stdout")
    parser.add_argument("--seeds", type=int, metavar="N", help="of powerloss-recall: campaigns with each fault")


def command(args) -> int:
    """Exit code 0 when each limit is met, 1 when one is missed."""
    benches = registry()
    if args.list or not args.names:
        for name, (words, _) in benches.items():
            print(f"{name:18} {words}")
        return 0
    names = list(benches) if args.names == ["all"] else args.names
    unknown = [name for name in names if name not in benches]
    if unknown:
        raise UsageError(f"a name of: {', '.join(benches)}", ", ".join(unknown), "see ./ssdrig bench --list")
    met, how = True, {}
    if args.seeds is not None:
        seeded = [name for name in names if "seeds" in inspect.signature(benches[name][1]).parameters]
        if seeded != names or args.seeds < 1:
            seen = f"--seeds {args.seeds} with {', '.join(names)}"
            raise UsageError("--seeds of at least 1, of a bench that has seeds", seen, "leave --seeds out")
        how = {"seeds": args.seeds}
    for name in names:
        started = time.monotonic()
        for figure in benches[name][1](**how):
            met &= figure.met
            if args.json:
                print(json.dumps({"bench": name, **figure._asdict()}), flush=True)
            else:
                verdict = "ok" if figure.met else "SHORT"
                print(f"{figure.name:44} {figure.value:14,.6g} {figure.unit:12} {figure.bar:14} {verdict}", flush=True)
        print(f"[{name}: {time.monotonic() - started:.0f} s]", file=sys.stderr)
    return 0 if met else 1
