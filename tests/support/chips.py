"""The SIMULATED sensor chips on CPython. They are MicroPython modules, whose folder is not in sys.path, because its
time.py would be."""

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BOARD = ROOT / "host/ssdrig/virtual/board"


def load(path: Path, **imports):
    """The module at `path`; what it imports is found by these names."""
    known = {name: sys.modules.get(name) for name in imports}
    sys.modules.update(imports)
    try:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        for name, module_before in known.items():
            if module_before is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module_before
    return module


ina_model = load(BOARD / "ina_model.py")
ina226_model = load(BOARD / "ina226_model.py", ina_model=ina_model)
ina228_model = load(BOARD / "ina228_model.py", ina_model=ina_model)
