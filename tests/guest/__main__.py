"""`PYTHONPATH=host:tests .venv/bin/python -m guest -- CMD…` runs one command in a fresh guest; without CMD a shell's
lines are read from stdin. Leaves with the command's exit code."""

import sys
import tempfile
from pathlib import Path

from guest.kernel import NoKernel
from guest.machine import Machine


def main() -> int:
    argv = [word for word in sys.argv[1:] if word != "--"] or ["sh", "-ex"]
    stdin = "" if len(sys.argv) > 1 else sys.stdin.read()
    with tempfile.TemporaryDirectory(prefix="ssdrig-guest.", dir="/var/tmp") as folder:
        try:
            machine = Machine(Path(folder))
        except NoKernel as error:
            print(f"not run: {error}", file=sys.stderr)
            return 9
        with machine:
            print(f"guest: Linux {machine.kernel}, up after {machine.boot_s:.1f} s", file=sys.stderr)
            done = machine.run(*argv, stdin=stdin, timeout_s=600)
            sys.stdout.write(done.stdout)
            sys.stderr.write(done.stderr)
            print(f"guest: exit {done.exit_code} after {done.seconds:.1f} s", file=sys.stderr)
            return 255 if done.exit_code is None else done.exit_code


if __name__ == "__main__":
    raise SystemExit(main())
